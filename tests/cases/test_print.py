"""What the print connector prints: every change on a line of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import CaseRunner
from headwater.testing.catch_up import await_caught_up
from headwater.testing.engine import LocalEngine
from headwater.testing.kafka import Record

SCRIPT = """
CREATE TABLE clicks (id STRING, who STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv', 'value.fields-include' = 'EXCEPT_KEY');
CREATE TABLE shown (who STRING, n BIGINT) WITH ('connector' = 'print', 'print-identifier' = 'totals');
INSERT INTO shown SELECT who, COUNT(*) FROM clicks GROUP BY who;
"""
BATCHES = [
    ([("1", "ann"), ("2", "bob")], {"totals> +I[ann, 1]", "totals> +I[bob, 1]"}),
    ([("2", "ann")], {"totals> -U[ann, 1]", "totals> +U[ann, 2]", "totals> -D[bob, 1]"}),
    ([("1", None), ("2", None)], {"totals> -D[ann, 2]"}),
]


def test_changes_are_printed_with_their_kinds(
    case_runner: CaseRunner, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka, topic = case_runner.kafka(), f"clicks-{tmp_path.name}"
    kafka.create({topic: 1})
    engine = LocalEngine(case_runner.spark, str(tmp_path), {"clicks": topic, "kafka": kafka.bootstrap_servers})
    try:
        engine.run(SCRIPT, "print")
        for messages, lines in BATCHES:
            await_caught_up(engine, kafka, {topic: 1}, 60)
            engine.pause()
            kafka.produce(Record(topic, key.encode(), who.encode() if who else None) for key, who in messages)
            engine.resume()
            await_caught_up(engine, kafka, {topic: 1}, 60)
            assert set(capsys.readouterr().out.splitlines()) == lines
    finally:
        engine.stop()
