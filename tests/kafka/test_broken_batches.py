"""A batch that breaks off in the middle: what an exactly-once sink has of it, and what a SELECT has shown of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka_lab import Lab

from headwater.connectors.result import ResultSink
from headwater.errors import BadRecordError, KafkaUnavailableError
from headwater.execution.job import Job
from headwater.testing.kafka import Record

Until = Callable[[Callable[[], object], Job | None], None]
ROWS = 20_000


@pytest.mark.parametrize("statement", ["SELECT n FROM source", "SELECT n + 0 FROM source WHERE n >= 0"])
def test_an_exactly_once_sink_has_all_of_a_batch_or_nothing(lab: Lab, until: Until, statement: str) -> None:
    """The writer has had thousands of rows when a message that cannot be read ends its input."""
    source, sink = lab.topic("in"), lab.topic("out")
    lab.produce(source, [{"n": n} for n in range(ROWS - 2_000)])
    lab.kafka.produce([Record(source, None, b"{broken", 0)])
    lab.produce(source, [{"n": n} for n in range(ROWS - 2_000, ROWS)])

    def started(bad: str) -> Job:
        session = lab.session("state")
        session.sql(
            "SET 'headwater.source.chunk-rows' = '1000';"
            + lab.ddl("source", "n INT", topic=source, scan__startup__mode="earliest-offset", scan__bad_records=bad)
            + lab.ddl("target", "n INT", topic=sink, sink__delivery_guarantee="exactly-once")
            + f"INSERT INTO target {statement};"
        )
        [job] = session.jobs
        return job

    failing = started("fail")
    until(lambda: failing.error is not None, None)
    assert isinstance(failing.error, BadRecordError)
    assert lab.values(sink) == []
    # The same batch: its intent is written, and is executed again.
    going = started("skip")
    until(lambda: going.progress().lag == 0 and going.progress().rows_in, going)
    going.stop()
    assert sorted(row["n"] for row in lab.values(sink)) == list(range(ROWS))


def test_a_select_shows_rows_of_a_repeated_batch_once(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first attempt fails after it has shown what one of two tasks has read."""
    source = lab.topic("in", partitions=2)
    for partition in range(2):
        lab.produce(source, [{"n": 10 * partition + n} for n in range(5)], partition=partition)
    show, calls = ResultSink.show, []

    def failing(self: ResultSink, chunk: bytes) -> int:
        calls.append(chunk)
        if len(calls) == 2:
            raise KafkaUnavailableError("simulated")
        return show(self, chunk)

    monkeypatch.setattr(ResultSink, "show", failing)
    session = lab.session()
    session.sql(lab.ddl("source", "n INT", topic=source, scan__startup__mode="earliest-offset"))
    session.sql("SET 'execution.runtime-mode' = 'batch'")
    assert sorted(session.sql("SELECT n FROM source").rows()) == [(n,) for n in [*range(5), *range(10, 15)]]
    assert len(calls) == 3
