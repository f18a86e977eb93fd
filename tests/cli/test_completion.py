"""What Tab completes in the user's own shell, asked as bash and zsh ask."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from headwater import cli
from headwater.broker import Broker
from headwater.control import client
from headwater.testing.kafka import Kafka

Complete = Callable[[str], list[str]]
TABLES = """\
CREATE TABLE clicks (who STRING) WITH (
  'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = '127.0.0.1:1', 'format' = 'json'
);
CREATE TABLE made (n INT) WITH ('connector' = 'datagen');
"""


@pytest.fixture
def complete(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Complete:
    monkeypatch.chdir(tmp_path)

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_HEADWATER_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
        with pytest.raises(SystemExit):
            cli.app(args=[], prog_name="headwater")
        captured = capsys.readouterr()
        assert captured.err == ""
        return captured.out.split()

    return ask


def test_jobs_that_are_running(complete: Complete, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [("totals", True), ("visits", True), ("ended", False)]
    found = [SimpleNamespace(job=SimpleNamespace(name=name, is_running=runs)) for name, runs in jobs]
    monkeypatch.setattr(client, "running_jobs", lambda: found)
    assert complete("headwater stop ") == ["totals", "visits"]
    assert complete("headwater status v") == ["visits"]


def test_connectors_and_formats(complete: Complete) -> None:
    assert complete("headwater options upsert") == ["upsert-kafka"]
    assert {"kafka", "json", "session"} <= set(complete("headwater options "))


def test_topics_of_the_broker(complete: Complete, broker: Broker, unique_topic: Callable[[str], str]) -> None:
    name = unique_topic("completed")
    Kafka(broker.bootstrap_servers).create({name: 1})
    for command in ("read", "write", "describe", "delete"):
        assert complete(f"headwater topic {command} --broker {broker.bootstrap_servers} completed") == [name]


def test_tables_of_a_script(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / "tables.sql").write_text(TABLES, encoding="utf-8")
    assert complete("headwater topic read --ddl tables.sql ") == ["clicks"]


def test_a_broker_that_is_away_completes_nothing(complete: Complete) -> None:
    assert complete("headwater topic read --broker 127.0.0.1:1 ") == []
