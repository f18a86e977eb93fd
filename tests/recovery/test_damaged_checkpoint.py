"""A checkpoint that lacks something is refused with the name of the file, or continued from what is complete; it is
never taken for an empty one."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_view import CheckpointView

from headwater.testing import CaseRunner
from headwater.testing.catch_up import await_caught_up, await_failure
from headwater.testing.engine import LocalEngine
from headwater.testing.kafka import Kafka, Record

SCRIPT = """
SET 'headwater.batch.max-rows' = '4';
CREATE TABLE clicks (who STRING) WITH ('connector' = 'kafka', 'topic' = '${source}', 'format' = 'csv',
  'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE counts (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'raw', 'value.format' = 'csv');
INSERT INTO counts SELECT who, COUNT(*) FROM clicks GROUP BY who;
"""
PEOPLE = ("ann", "bob", "cid", "dan")
SECONDS = 60.0


class Counting:
    """Runs of one job on one checkpoint. Everybody is counted three times per run, in three batches."""

    def __init__(self, runner: CaseRunner, topics: dict[str, str], directory: Path) -> None:
        self._kafka: Kafka = runner.kafka()
        self._kafka.create(dict.fromkeys(topics.values(), 1))
        self._topics = topics
        self._runner = runner
        self._root = directory
        self.checkpoint = CheckpointView(directory / "counts")

    def run(self) -> None:
        engine = self._started()
        await_caught_up(engine, self._kafka, dict.fromkeys(self._topics.values(), 1), SECONDS)
        engine.stop()

    def error(self) -> str:
        """Why a run fails."""
        engine = self._started()
        failed = await_failure(engine, SECONDS)
        engine.stop()
        return failed.error

    def counts(self) -> dict[str, int]:
        topic = self._topics["sink"]
        end = self._kafka.ends({topic: 1})[topic, 0]
        lines = [(record.value or b"").decode().split(",") for record in self._kafka.read(topic, {}, {0: end})]
        return {who: int(n) for who, n in lines}

    def _started(self) -> LocalEngine:
        self._kafka.produce([Record(self._topics["source"], None, who.encode()) for who in PEOPLE * 3])
        variables = {**self._topics, "kafka": self._kafka.bootstrap_servers}
        engine = LocalEngine(self._runner.spark, str(self._root), variables)
        engine.run(SCRIPT, "counting")
        return engine


@pytest.fixture
def counting(case_runner: CaseRunner, unique_topic: Callable[[str], str], tmp_path: Path) -> Counting:
    made = Counting(case_runner, {"source": unique_topic("clicks"), "sink": unique_topic("counts")}, tmp_path)
    made.run()
    assert made.counts() == dict.fromkeys(PEOPLE, 3)
    return made


def test_missing_state_is_an_error_that_names_the_file(counting: Counting) -> None:
    location, commit = counting.checkpoint.location, counting.checkpoint.newest_commit()
    assert commit is not None
    removed = next((location / "state").glob("*/*"))
    names = [name for name in commit.names if (location / name).is_relative_to(removed)]
    shutil.rmtree(removed)
    error = counting.error()
    assert any(f"File '{name}' of the checkpoint is missing." in error for name in names)
    assert counting.counts() == dict.fromkeys(PEOPLE, 3)


def test_a_state_file_that_was_cut_short_is_an_error_that_names_it(counting: Counting) -> None:
    location, commit = counting.checkpoint.location, counting.checkpoint.newest_commit()
    assert commit is not None
    for name in commit.names:
        (location / name).write_bytes((location / name).read_bytes()[:-8])
    error = counting.error()
    assert any(f"File '{name}' of the checkpoint has " in error for name in commit.names)
    assert counting.counts() == dict.fromkeys(PEOPLE, 3)


def test_a_log_without_its_first_entry_is_no_new_checkpoint(counting: Counting) -> None:
    first = counting.checkpoint.entries()[0]
    (counting.checkpoint.location / first.name).unlink()
    assert f"File '{first.name}' of the checkpoint is missing." in counting.error()
    assert counting.counts() == dict.fromkeys(PEOPLE, 3)


def test_a_commit_stands_without_its_intent(counting: Counting) -> None:
    intent = [entry for entry in counting.checkpoint.entries() if entry.kind == "intent"][-1]
    (counting.checkpoint.location / intent.name).unlink()
    counting.run()
    assert counting.counts() == dict.fromkeys(PEOPLE, 6)


def test_an_intent_without_its_commit_is_executed_again(counting: Counting) -> None:
    commit = counting.checkpoint.entries()[-1]
    assert commit.kind == "commit"
    (counting.checkpoint.location / commit.name).unlink()
    counting.run()
    assert counting.counts() == dict.fromkeys(PEOPLE, 6)
