"""'sink.partitioner' without a broker: which partitions messages get, and which classes can be used."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from headwater.connectors.kafka.write.partitions import Partitioning, load_partitioner
from headwater.errors import JobError, ValidationError

COUNTS = {"a": 3, "b": 2}


def messages(**columns: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"value": pa.array([b"x"] * len(next(iter(columns.values())))), **columns})


def placed(partitioning: Partitioning, *batches: pa.RecordBatch, task: int = 0, batch: int = 0) -> list[Any]:
    parts = list(partitioning.place(task, batch, batches))
    assert all(not {"row", "record"} & set(part.schema.names) for part in parts)
    return [part.column("partition").to_pylist() for part in parts if "partition" in part.schema.names]


def test_the_producer_chooses_by_default() -> None:
    assert placed(Partitioning("default", COUNTS), messages(key=[b"k"])) == []
    assert not Partitioning("default", COUNTS).chooses(["key", "value"])


def test_the_changes_of_a_row_stay_together() -> None:
    assert placed(Partitioning("default", COUNTS), messages(row=[0, 1, -1, 4, -(2**31)])) == [[0, 1, 2, 1, 1]]
    assert Partitioning("default", COUNTS).chooses(["row", "value"])


def test_fixed_is_by_task() -> None:
    assert placed(Partitioning("fixed", COUNTS), messages(key=[b"k", b"l"]), task=4) == [[1, 1]]
    assert placed(Partitioning("fixed", COUNTS), messages(topic=["a", "b", "a"]), task=5) == [[2, 1, 2]]


def test_round_robin_goes_on_and_begins_elsewhere() -> None:
    twice = messages(key=[b"k", b"l"]), messages(key=[b"m", b"n"])
    assert placed(Partitioning("round-robin", COUNTS), *twice) == [[0, 1], [2, 0]]
    assert placed(Partitioning("round-robin", COUNTS), *twice, task=1, batch=1) == [[2, 0], [1, 2]]
    assert placed(Partitioning("round-robin", COUNTS), messages(topic=["b", "b", "a"])) == [[0, 1, 2]]


def test_a_class_is_asked() -> None:
    chosen = load_partitioner("partitioner_classes.ByLength")
    rows = [{"name": "x"}, {"name": "xx"}, {"name": ""}]
    asked = Partitioning("partitioner_classes.ByLength", COUNTS, chosen)
    assert placed(asked, messages(record=rows)) == [[1, 2, 0]]
    assert placed(asked, messages(record=rows, topic=["b", "b", "a"])) == [[1, 0, 0]]


def test_answers_that_make_no_sense() -> None:
    chosen = load_partitioner("partitioner_classes.OutOfRange")
    with pytest.raises(JobError, match=r"'partitioner_classes\.OutOfRange' answered 3 for a message to topic 'a'"):
        placed(Partitioning("", COUNTS, chosen), messages(record=[{}]))


def test_a_topic_that_is_not_there() -> None:
    with pytest.raises(JobError, match=r"Topic 'c', which a row names, does not exist\."):
        placed(Partitioning("fixed", COUNTS), messages(topic=["a", "c"]))


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no.such.Class", "partitioner class 'no.such.Class': No module named 'no'."),
        ("os.path.Nothing", "The module must be installed or on PYTHONPATH."),
        ("org.mycompany.MyPartitioner", "This looks like a Java class; here it is a Python"),
        ("json.dumps", "'json.dumps' should be a class with a method partition(record, key,"),
        ("partitioner_classes.NeedsArguments", "It must be a class that takes no arguments."),
    ],
)
def test_classes_that_cannot_be_used(name: str, problem: str) -> None:
    with pytest.raises(ValidationError) as raised:
        load_partitioner(name)
    assert problem in str(raised.value)
