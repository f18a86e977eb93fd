"""'sink.partitioner': which partition of its topic a message goes to.

default       nothing is chosen here: the producer hashes the key (murmur2, as Java clients do); where the primary key
              is not the key, the changes of a row go to one partition all the same
fixed         each writing task has one partition: task i writes to partition i modulo their number
round-robin   row after row to the next partition
a.module.Class  a Python class of the user's, asked for every row
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, cast, runtime_checkable

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType

from headwater.connectors.kafka.messages import RECORD, ROW
from headwater.connectors.kafka.options import PARTITIONERS
from headwater.errors import JobError
from headwater.markers import RAISED

__all__ = ["Partitioner", "PartitionerProblem", "load_partitioner", "with_built_in", "with_custom"]

_JAVA_ROOTS = ("com", "org", "net", "io", "java")


@runtime_checkable
class Partitioner(Protocol):
    """What a class named by 'sink.partitioner' has. It is made without arguments, once per task."""

    def partition(
        self, record: Mapping[str, Any], key: bytes | None, value: bytes | None, topic: str, partitions: int
    ) -> int:
        """The partition, from 0 to below `partitions`, of a row of the table and its message. The same row must get the
        same answer every time."""
        ...


class PartitionerProblem(Exception):
    """The class cannot be used; the text is a full sentence."""


def load_partitioner(name: str) -> type[Partitioner]:
    """The class that 'package.module.Class' names."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute) if module else None
    except (ImportError, AttributeError) as error:
        text = f"Could not find and instantiate partitioner class '{name}': {error}.{_hint(name)}"
        raise PartitionerProblem(text) from error
    if found is None:
        known = ", ".join(PARTITIONERS)
        text = f"Could not find and instantiate partitioner class '{name}': it is neither one of {known} nor "
        raise PartitionerProblem(f"{text}'package.module.Class'.")
    if not isinstance(found, type) or not callable(getattr(found, "partition", None)):
        needed = "a method partition(record, key, value, topic, partitions)"
        raise PartitionerProblem(f"Sink partitioner class '{name}' should be a class with {needed}.")
    try:
        found()
    except Exception as error:
        text = f"Could not find and instantiate partitioner class '{name}': {type(error).__name__}: {error}."
        raise PartitionerProblem(f"{text} It must be a class that takes no arguments.") from error
    return cast("type[Partitioner]", found)


def _hint(name: str) -> str:
    if name.split(".", maxsplit=1)[0] not in _JAVA_ROOTS:
        return " The module must be installed or on PYTHONPATH."
    return (
        " This looks like a Java class; here it is a Python class, 'package.module.Class', with a method partition()."
    )


def with_built_in(messages: DataFrame, name: str, counts: Mapping[str, int], batch: int) -> DataFrame:
    """`messages` with the column `partition`, if the partitioner chooses one. `counts` are the numbers of partitions of
    all topics. To be called when rows are in the tasks that write them."""
    by_row = name == "default" and ROW in messages.columns
    if name not in ("fixed", "round-robin") and not by_row:
        return messages.drop(ROW)
    count = str(next(iter(counts.values())))
    if "topic" in messages.columns:
        known = ", ".join(f"'{topic}', {number}" for topic, number in counts.items())
        missing = f"raise_error(concat('{RAISED}Topic ', topic, ', which a row names, does not exist.'))"
        count = f"coalesce(element_at(map({known}), topic), {missing})"
    turn = f"pmod({ROW}, {count})" if by_row else f"spark_partition_id() % {count}"
    if name == "round-robin":
        # The batch number keeps small batches from all beginning at the same partition.
        turn = f"(monotonically_increasing_id() % {count} + spark_partition_id() + {batch}) % {count}"
    return messages.selectExpr("*", f"CAST({turn} AS INT) AS partition").drop(ROW)


def with_custom(messages: DataFrame, chosen: type[Partitioner], topic: str, counts: Mapping[str, int]) -> DataFrame:
    """`messages` with the column `partition` instead of RECORD, as the user's class wants it. `topic` is that of all
    rows that do not name theirs."""
    # The class travels as a value: its module need not be on the workers' path.
    module = importlib.import_module(chosen.__module__)
    cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    schema = messages.drop(RECORD).schema.add("partition", IntegerType())
    return messages.mapInArrow(_Asking(chosen, topic, dict(counts)), schema)


class _Asking:
    """The stage in Spark's Python workers."""

    def __init__(self, chosen: type[Partitioner], topic: str, counts: Mapping[str, int]) -> None:
        self._chosen = chosen
        self._topic = topic
        self._counts = counts

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        partitioner = self._chosen()
        for batch in batches:
            answers = [self._checked(partitioner, *row) for row in zip(*self._columns(batch), strict=True)]
            kept = [name for name in batch.schema.names if name != RECORD]
            columns = [*(batch.column(name) for name in kept), pa.array(answers, pa.int32())]
            yield pa.RecordBatch.from_arrays(columns, names=[*kept, "partition"])

    def _columns(self, batch: pa.RecordBatch) -> list[list[Any]]:
        names = batch.schema.names
        nothing = [None] * batch.num_rows
        key = batch.column("key").to_pylist() if "key" in names else nothing
        topic = batch.column("topic").to_pylist() if "topic" in names else [self._topic] * batch.num_rows
        return [batch.column(RECORD).to_pylist(), key, batch.column("value").to_pylist(), topic]

    def _checked(self, partitioner: Partitioner, record: Any, key: Any, value: Any, topic: str) -> int:
        count = self._counts.get(topic)
        if count is None:
            raise JobError(f"Topic '{topic}', which a row names, does not exist.")
        answer = partitioner.partition(record, key, value, topic, count)
        if type(answer) is not int or not 0 <= answer < count:
            name = f"{self._chosen.__module__}.{self._chosen.__qualname__}"
            raise JobError(
                f"Partitioner '{name}' answered {answer!r} for a message to topic '{topic}'.",
                detail=f"The topic has {count} partitions, so it must be a number from 0 to {count - 1}.",
                hint="Correct the class; for example take the answer modulo the number of partitions.",
            )
        return answer
