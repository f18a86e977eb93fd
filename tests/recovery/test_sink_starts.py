"""What a sink makes sure of before it writes, and when it writes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.broker import Broker
from headwater.testing import CaseRunner
from headwater.testing.catch_up import NotCaughtUp, await_caught_up, await_failure
from headwater.testing.engine import LocalEngine
from headwater.testing.faults import Fault
from headwater.testing.kafka import Kafka, Record

ONCE = """
CREATE TABLE source (id INT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${source}', 'format' = 'csv',
  'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE sink (id INT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'format' = 'csv',
  'properties.bootstrap.servers' = '${kafka}', 'sink.delivery-guarantee' = 'exactly-once'%s);
INSERT INTO sink SELECT id, %s FROM source;
"""
COUNTED = """
CREATE TABLE counts (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '${counts}', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'raw', 'value.format' = 'csv');
INSERT INTO counts SELECT who, COUNT(*) FROM source GROUP BY who;
"""
HELD_BACK = """
CREATE TABLE source (who STRING) WITH ('connector' = 'kafka', 'topic' = '${source}', 'format' = 'csv',
  'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE sink (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'raw', 'value.format' = 'csv',
  'sink.buffer-flush.max-rows' = '3', 'sink.buffer-flush.interval' = '1 h');
INSERT INTO sink SELECT who, COUNT(*) FROM source GROUP BY who;
"""
SECONDS = 120.0


class Stage:
    """Two topics, and engines on one checkpoint."""

    def __init__(self, broker: Broker, runner: CaseRunner, names: dict[str, str], place: Path) -> None:
        self.kafka = Kafka(broker.bootstrap_servers)
        self.topics = dict.fromkeys(names.values(), 1)
        self.kafka.create(self.topics)
        self._names = names
        self._make = lambda: LocalEngine(runner.spark, str(place), {**names, "kafka": broker.bootstrap_servers})

    def engine(self, script: str) -> LocalEngine:
        engine = self._make()
        engine.run(script, "script")
        return engine

    def produce(self, *values: str) -> None:
        self.kafka.produce([Record(self._names["source"], None, value.encode()) for value in values])

    def written(self) -> list[bytes | None]:
        topic = self._names["sink"]
        end = self.kafka.ends({topic: 1})[topic, 0]
        return [record.value for record in self.kafka.read(topic, {}, {0: end})]

    def catch_up(self, engine: LocalEngine) -> None:
        await_caught_up(engine, self.kafka, self.topics, SECONDS)


@pytest.fixture
def stage(broker: Broker, case_runner: CaseRunner, unique_topic: Callable[[str], str], tmp_path: Path) -> Stage:
    names = {name: unique_topic(name) for name in ("source", "sink", "counts")}
    return Stage(broker, case_runner, names, tmp_path)


def test_a_batch_that_is_half_done_is_finished_only_by_the_same_query(stage: Stage) -> None:
    engine = stage.engine(ONCE % ("", "who"))
    stage.catch_up(engine)
    engine.crash_next(Fault.UNCOMMITTED)
    stage.produce("1,ann", "2,bob")
    assert await_failure(engine, SECONDS).crashed
    engine.stop()
    changed = stage.engine(ONCE % ("", "UPPER(who)"))
    assert "was written in part by another query." in await_failure(changed, SECONDS).error
    changed.stop()
    same = stage.engine(ONCE % ("", "who"))
    stage.catch_up(same)
    same.stop()
    assert sorted(map(str, stage.written())) == ["b'1,ann'", "b'2,bob'"]
    after = stage.engine(ONCE % ("", "UPPER(who)"))
    stage.produce("3,carol")
    stage.catch_up(after)
    after.stop()
    assert stage.written()[-1] == b"3,CAROL"


def test_a_batch_that_was_begun_keeps_its_split_assignment(stage: Stage) -> None:
    """Another 'scan.parallelism' holds from the next batch on: each writer must get the rows it had before."""
    engine = stage.engine(ONCE % ("", "who"))
    stage.catch_up(engine)
    engine.crash_next(Fault.UNCOMMITTED)
    stage.produce("1,ann", "2,bob", "3,carol", "4,dave")
    assert await_failure(engine, SECONDS).crashed
    engine.stop()
    after = stage.engine((ONCE % ("", "who")).replace("'scan.startup", "'scan.parallelism' = '3', 'scan.startup"))
    stage.produce("5,eve", "6,fay")
    stage.catch_up(after)
    after.stop()
    assert sorted(map(str, stage.written())) == [
        f"b'{row}'" for row in ("1,ann", "2,bob", "3,carol", "4,dave", "5,eve", "6,fay")
    ]


@pytest.mark.parametrize("fault", [pytest.param(Fault.UNWRITTEN, marks=pytest.mark.long), Fault.UNCOMMITTED])
def test_a_batch_that_was_begun_is_finished_in_chunks_of_another_size(stage: Stage, fault: Fault) -> None:
    """Of two jobs: one that copies exactly once, and one with state. Some messages are refused by column readers."""
    ids, script = range(1, 8), "SET 'headwater.source.chunk-rows' = '%d';" + ONCE % ("", "who") + COUNTED
    engine = stage.engine(script % 2)
    stage.catch_up(engine)
    engine.crash_next(fault)
    stage.produce(*(f'{n},"a""{n % 2}"' if n % 3 else f"{n},b" for n in ids))
    stage.catch_up(engine)
    assert [job.crashed for job in engine.jobs()] == [True, True]
    engine.stop()
    after = stage.engine(script % 5)
    stage.produce("8,c")
    stage.catch_up(after)
    counted = sorted(after.table("counts"))
    after.stop()
    written = sorted(str(value, "utf-8").partition(",")[0] for value in stage.written() if value is not None)
    assert written == [str(n) for n in [*ids, 8]]
    assert counted == [('a"0', "2"), ('a"1', "3"), ("b", "2"), ("c", "1")]


def test_a_transaction_must_not_take_longer_than_the_broker_allows(stage: Stage) -> None:
    engine = stage.engine(ONCE % (", 'properties.transaction.timeout.ms' = '3600000'", "who"))
    error = await_failure(engine, SECONDS).error
    assert "'properties.transaction.timeout.ms' of table 'sink' is more than the broker allows." in error
    assert "Asked for: 3600000 ms. The broker's 'transaction.max.timeout.ms': 900000 ms." in error
    engine.stop()


def test_changes_are_held_back_until_enough_of_them_wait(stage: Stage) -> None:
    engine = stage.engine(HELD_BACK)
    stage.produce("ann")
    time.sleep(1)  # enough for a batch, if one were to be made of it
    stage.produce("ann", "ann")
    stage.catch_up(engine)
    stage.produce("bob")
    with pytest.raises(NotCaughtUp):
        await_caught_up(engine, stage.kafka, stage.topics, 1)
    engine.stop()
    assert stage.written() == [b"ann,3"]
