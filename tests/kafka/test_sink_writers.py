"""A sink by itself: rows become messages, and the workers write them where the table says, as often as it says."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pytest
from kafka_lab import Lab

from headwater.connectors.kafka.write.pool import KEPT
from headwater.protocol.batch_ids import BatchId
from headwater.testing import CaseRunner
from sink_lab import TASKS, SinkLab

PARTITIONS = 4
GUARANTEES = ("none", "at-least-once", "exactly-once")
THREADS_OF_A_PRODUCER = 5  # main, internal, bootstrap, broker, coordinator
BATCH = BatchId(1, "digest")

MakeSink = Callable[..., SinkLab]


class ByFirst:
    """By the field that is named 'first'."""

    def partition(
        self, record: Mapping[str, Any], key: bytes | None, value: bytes | None, topic: str, partitions: int
    ) -> int:
        return int(record["first"]) % partitions


@pytest.fixture
def sink(lab: Lab, case_runner: CaseRunner) -> Iterator[MakeSink]:
    """Makes a started sink for a table with these columns and options, with a topic of its own."""
    made: list[SinkLab] = []

    def make(columns: str, *, start: Mapping[str, Any] | None = None, **options: str) -> SinkLab:
        options.setdefault("topic", lab.topic("written", PARTITIONS))
        made.append(SinkLab(case_runner.spark(), lab.kafka, lab.ddl("`t`", columns, **options)))
        made[-1].topic = options["topic"]
        made[-1].start(**(start or {}))
        return made[-1]

    yield make
    for one in made:
        one.sink.close()


def values(lab: SinkLab) -> list[Any]:
    return [record.value and json.loads(record.value) for record in lab.messages(lab.topic, PARTITIONS)]


def partitions(lab: SinkLab) -> dict[int, list[Any]]:
    found: dict[int, list[Any]] = {}
    for record in lab.messages(lab.topic, PARTITIONS):
        found.setdefault(record.partition or 0, []).append(json.loads(record.value or b"")["id"])
    return found


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_rows_are_written_in_their_tasks(sink: MakeSink, guarantee: str) -> None:
    lab = sink("id INT, who STRING", sink__delivery_guarantee=guarantee)
    rows = lab.rows("id INT, who STRING", [(i, f"user {i}") for i in range(1000)], tasks=TASKS)
    assert lab.sink.writers is None
    assert lab.sink.encode(rows).rdd.getNumPartitions() == TASKS
    assert lab.write(rows, BATCH) == 1000
    assert lab.write(lab.rows("id INT, who STRING", []), BatchId(2, "digest")) == 0
    assert sorted(value["id"] for value in values(lab)) == list(range(1000))


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_upserts_and_deletes_of_a_key_stay_in_order(sink: MakeSink, guarantee: str) -> None:
    options = {"connector": "upsert-kafka", "sink.delivery-guarantee": guarantee, "sink.parallelism": "3"}
    lab = sink("who STRING, n INT, PRIMARY KEY (who) NOT ENFORCED", **options)
    changes = [(f"k{i % 7}", n, 3 if n == 9 else 2) for n in range(10) for i in range(7)]
    rows = lab.rows("who STRING, n INT, __hw_kind TINYINT", changes, tasks=1)
    assert lab.write(rows, BATCH) == 70
    seen: dict[bytes, list[Any]] = {}
    for record in lab.messages(lab.topic, PARTITIONS):
        seen.setdefault(record.key or b"", []).append(record.value and json.loads(record.value)["n"])
    assert len(seen) == 7
    assert all(found == [*range(9), None] for found in seen.values())


def test_one_writer_where_rows_are_not_deterministic(sink: MakeSink) -> None:
    lab = sink("id INT", start={"deterministic": False}, sink__delivery_guarantee="exactly-once")
    assert lab.sink.writers == 1
    assert lab.sink.facts()["writers"] == 1
    assert lab.write(lab.rows("id INT", [(i,) for i in range(10)]), BATCH) == 10
    lab = sink("id INT", start={"deterministic": False})
    assert lab.sink.writers is None


def test_a_pending_batch_keeps_its_number_of_writers(sink: MakeSink) -> None:
    pending = {"pending": BATCH, "remembered": {"writers": 3}}
    options = {"sink.delivery-guarantee": "exactly-once", "sink.parallelism": "2"}
    assert sink("id INT", start=pending, **options).sink.writers == 3
    assert sink("id INT", start={**pending, "rerouted": True}, **options).sink.writers == 2
    assert sink("id INT", start={"remembered": {"writers": 3}}, **options).sink.writers == 2


def test_each_task_has_its_partition(sink: MakeSink) -> None:
    lab = sink("id INT", sink__partitioner="fixed")
    lab.write(lab.rows("id INT", [(i,) for i in range(6)], tasks=3), BATCH)
    assert partitions(lab) == {0: [0, 1], 1: [2, 3], 2: [4, 5]}


def test_a_key_keeps_its_fixed_partition(sink: MakeSink) -> None:
    lab = sink("id INT, k STRING", sink__partitioner="fixed", key__format="raw", key__fields="k")
    assert lab.sink.writers == TASKS
    for batch, tasks in ((1, 1), (2, 3)):
        rows = lab.rows("id INT, k STRING", [(i, f"k{i % 5}") for i in range(10)], tasks)
        assert lab.write(rows, BatchId(batch, "")) == 10
    where = {}
    for record in lab.messages(lab.topic, PARTITIONS):
        where.setdefault(record.key, set()).add(record.partition)
    assert all(len(found) == 1 for found in where.values())
    assert set.union(*where.values()) == {0, 1}


def test_round_robin_goes_on_in_a_task_and_begins_elsewhere_in_the_next_batch(sink: MakeSink) -> None:
    lab = sink("id INT", sink__partitioner="round-robin")
    first = lab.rows("id INT", [(i,) for i in range(9000)], tasks=1)  # several Arrow batches
    lab.write(first, BatchId(1, ""))
    assert {p: len(ids) for p, ids in partitions(lab).items()} == dict.fromkeys(range(PARTITIONS), 2250)
    for batch in (2, 3):
        lab.write(lab.rows("id INT", [(10_000 * batch,)], tasks=1), BatchId(batch, ""))
    found = partitions(lab)
    assert [next(p for p in found if 10_000 * batch in found[p]) for batch in (2, 3)] == [2, 3]


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_a_class_of_the_users_chooses(sink: MakeSink, guarantee: str) -> None:
    own = {"sink.partitioner": "test_sink_writers.ByFirst", "sink.delivery-guarantee": guarantee}
    lab = sink("id INT, `first` INT", **own)
    assert lab.write(lab.rows("id INT, first INT", [(i, i // 2) for i in range(10)]), BATCH) == 10
    found = {p: sorted(ids) for p, ids in partitions(lab).items()}
    assert found == {0: [0, 1, 8, 9], 1: [2, 3], 2: [4, 5], 3: [6, 7]}


def test_changes_of_a_row_without_a_key_go_to_one_partition(sink: MakeSink) -> None:
    lab = sink("id INT, n INT, PRIMARY KEY (id) NOT ENFORCED", format="debezium-json")
    changes = [(i, n, 0) for n in range(5) for i in range(8)]
    assert lab.write(lab.rows("id INT, n INT, __hw_kind TINYINT", changes, tasks=1), BATCH) == 40
    where: dict[int, list[tuple[int, int]]] = {}
    for record in lab.messages(lab.topic, PARTITIONS):
        after = json.loads(record.value or b"")["after"]
        where.setdefault(after["id"], []).append((record.partition or 0, after["n"]))
    assert all(len({p for p, _ in found}) == 1 for found in where.values())
    assert all([n for _, n in found] == list(range(5)) for found in where.values())
    assert len({found[0][0] for found in where.values()}) > 1


ODD = "a `b` 'c' \"d\" .e. \\f ${g} ä%s"


@pytest.mark.parametrize("guarantee", GUARANTEES)
def test_odd_names(lab: Lab, case_runner: CaseRunner, guarantee: str) -> None:
    """Names with quotes, backquotes, dots and backslashes are names."""
    topic = lab.topic("odd", PARTITIONS)
    table, key, value = (ODD % n for n in ("t", "k", "v"))

    def quoted(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    columns = f"{quoted(key)} STRING NOT NULL, {quoted(value)} INT NOT NULL, PRIMARY KEY ({quoted(key)}) NOT ENFORCED"
    options = {"connector": "upsert-kafka", "sink.delivery-guarantee": guarantee, "topic": topic}
    ddl = lab.ddl(quoted(table), columns, **options)
    made = SinkLab(case_runner.spark(), lab.kafka, ddl.replace("${g}", "$${g}"))
    made.start()
    schema = f"{quoted(made.table.columns[0].name)} STRING, {quoted(made.table.columns[1].name)} INT, __hw_kind TINYINT"
    assert made.write(made.rows(schema, [("x", 1, 0), ("y", None, 3)]), BATCH) == 2
    found = {record.key: record.value for record in made.messages(topic, PARTITIONS)}
    assert json.loads(found[b"x"] or b"") == {made.table.columns[0].name: "x", made.table.columns[1].name: 1}
    assert found[b"y"] is None
    with pytest.raises(Exception, match="is NOT NULL, however, a null value is being written into it") as raised:
        made.write(made.rows(schema, [("x", None, 0)]), BatchId(2, ""))
    assert f"Column '{made.table.columns[1].name}' of table '{made.table.name}'" in str(raised.value)
    made.sink.close()


@pytest.mark.parametrize("partitioner", ["default", "round-robin", "test_sink_writers.ByFirst"])
def test_the_client_of_the_jvm_writes_where_librdkafka_cannot(sink: MakeSink, partitioner: str) -> None:
    strange = {"properties.partitioner.ignore.keys": "false", "sink.partitioner": partitioner}
    lab = sink("id INT, `first` INT", **strange)
    assert lab.sink.saves
    assert lab.sink.writer() is None
    assert "Table 't' is written by Spark's Kafka writer, which is slower: 'properties.part" in lab.warnings[0]
    for batch in (1, 2):
        rows = lab.rows("id INT, first INT", [(i, i) for i in range(batch * 100, batch * 100 + 8)])
        assert lab.write(rows, BatchId(batch, "")) == 8
    assert sorted(value["id"] for value in values(lab)) == [*range(100, 108), *range(200, 208)]
    if partitioner != "default":
        assert {p: len(ids) for p, ids in partitions(lab).items()} == dict.fromkeys(range(PARTITIONS), 4)


def test_workers_keep_few_producers(sink: MakeSink) -> None:
    """Sixteen writers on two workers made 250 threads in each."""
    writers = 16
    lab = sink("id INT", sink__delivery_guarantee="exactly-once", sink__parallelism=str(writers))

    def threads(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:  # in here: workers import no tests
        deque(batches, maxlen=0)  # Spark does not use a worker again that leaves input behind
        number = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - nothing else counts threads that are not Python's
        yield pa.RecordBatch.from_pydict({"pid": pa.array([os.getpid()]), "threads": pa.array([number])})

    def counted() -> dict[int, int]:
        asked = lab.spark.range(0, 8, 1, 8).mapInArrow(threads, "pid BIGINT, threads BIGINT")
        return {row.pid: row.threads for row in asked.collect()}

    before = counted()
    for batch in range(1, 4):
        rows = lab.rows("id INT", [(i,) for i in range(batch * 1000, batch * 1000 + 200)])
        assert lab.write(rows, BatchId(batch, str(batch))) == 200
    after = counted()
    kept = KEPT * THREADS_OF_A_PRODUCER + 1  # and the one that closes what is idle
    assert after.keys() & before.keys()
    assert all(number <= before.get(pid, min(before.values())) + kept for pid, number in after.items())
    assert sorted(value["id"] for value in values(lab)) == [b * 1000 + i for b in range(1, 4) for i in range(200)]
