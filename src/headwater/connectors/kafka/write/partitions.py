"""'sink.partitioner': which partition of its topic a message goes to. Chosen in the worker that writes it.

default         nothing is chosen here: the producer hashes the key (murmur2, as Java clients do); where the primary
                key is not the key, the changes of a row go to one partition all the same
fixed           each writing task has one partition: task i writes to partition i modulo their number
round-robin     row after row to the next partition; each task and batch begins at another one
a.module.Class  a Python class of the user's, asked for every row
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle

from headwater.connectors.workers import Batches
from headwater.errors import JobError, ValidationError

__all__ = ["RECORD", "ROW", "Partitioner", "Partitioning", "load_partitioner"]

# Columns of messages: the whole row for a custom partitioner, and a hash of it for one that keeps rows together.
RECORD, ROW = "record", "row"

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


@dataclass(frozen=True)
class Partitioning:
    """How messages get their partitions. `counts` has the number of partitions of every topic that rows may go to;
    rows that do not name theirs go to the first. `custom` is the user's class, if there is one."""

    name: str
    counts: Mapping[str, int]
    custom: type[Partitioner] | None = None

    @property
    def topic(self) -> str:
        return next(iter(self.counts))

    def chooses(self, columns: Sequence[str]) -> bool:
        """Whether messages of these columns get their partition here, and not from the producer."""
        return self.name != "default" or ROW in columns

    def place(self, task: int, batch: int, messages: Batches) -> Iterator[pa.RecordBatch]:
        """Messages with a column `partition`, if anything but the producer chooses it."""
        # Made per task: a class may keep a counter, and a repeated task must begin with the same one.
        asked = self.custom() if self.custom is not None else None
        # Each task and batch begins elsewhere, or small batches would all go to the first partitions.
        turn = task + batch
        for part in messages:
            if asked is not None:
                yield _with(part, pa.array(self._answers(asked, part), pa.int32()))
            elif self.name == "fixed":
                yield _with(part, self._modulo(part, np.full(part.num_rows, task)))
            elif self.name == "round-robin":
                yield _with(part, self._modulo(part, turn + np.arange(part.num_rows)))
                turn += part.num_rows
            elif ROW in part.schema.names:
                yield _with(part, self._modulo(part, part.column(ROW).to_numpy(zero_copy_only=False)))
            else:
                yield part

    def _modulo(self, part: pa.RecordBatch, numbers: Any) -> pa.Array:
        # The hash of a row may be negative. numpy's remainder has the sign of the divisor, unlike C's or Java's.
        return pa.array(numbers % self._counts_of(part), pa.int32())

    def _counts_of(self, part: pa.RecordBatch) -> Any:
        if "topic" not in part.schema.names:
            return self.counts[self.topic]
        named = part.column("topic").dictionary_encode()
        # By dictionary: a batch names few topics, and the count of each is looked up once instead of per message.
        known = np.array([self._count(topic) for topic in named.dictionary.to_pylist()], np.int64)
        return known[named.indices.to_numpy(zero_copy_only=False)]

    def _count(self, topic: str) -> int:
        count = self.counts.get(topic)
        if count is None:
            raise JobError(f"Topic '{topic}', which a row names, does not exist.")
        return count

    def _answers(self, asked: Partitioner, part: pa.RecordBatch) -> list[int]:
        names, nothing = part.schema.names, [None] * part.num_rows
        keys = part.column("key").to_pylist() if "key" in names else nothing
        topics = part.column("topic").to_pylist() if "topic" in names else [self.topic] * part.num_rows
        rows = zip(part.column(RECORD).to_pylist(), keys, part.column("value").to_pylist(), topics, strict=True)
        return [self._checked(asked, *row) for row in rows]

    def _checked(self, asked: Partitioner, record: Any, key: Any, value: Any, topic: str) -> int:
        count = self._count(topic)
        answer = asked.partition(record, key, value, topic, count)
        if type(answer) is not int or not 0 <= answer < count:
            name = f"{type(asked).__module__}.{type(asked).__qualname__}"
            raise JobError(
                f"Partitioner '{name}' answered {answer!r} for a message to topic '{topic}'.",
                detail=f"The topic has {count} partitions, so it must be a number from 0 to {count - 1}.",
                hint="Correct the class; for example take the answer modulo the number of partitions.",
            )
        return answer


def _with(part: pa.RecordBatch, partitions: pa.Array) -> pa.RecordBatch:
    kept = [name for name in part.schema.names if name not in (RECORD, ROW)]
    return pa.RecordBatch.from_arrays([*(part.column(n) for n in kept), partitions], names=[*kept, "partition"])


def load_partitioner(name: str) -> type[Partitioner]:
    """The class that 'package.module.Class' names, ready to travel to the workers."""
    module, _, attribute = name.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        text = f"Could not find and instantiate partitioner class '{name}': {error}."
        raise ValidationError(text, hint=_hint(name)) from error
    if not isinstance(found, type) or not callable(getattr(found, "partition", None)):
        needed = "a method partition(record, key, value, topic, partitions)"
        raise ValidationError(f"Sink partitioner class '{name}' should be a class with {needed}.")
    try:
        found()
    except Exception as error:
        text = f"Could not find and instantiate partitioner class '{name}': {type(error).__name__}: {error}."
        raise ValidationError(text, hint="It must be a class that takes no arguments.") from error
    # The class travels as a value: its module need not be on the workers' path.
    cloudpickle.register_pickle_by_value(importlib.import_module(found.__module__))  # type: ignore[no-untyped-call]
    return cast("type[Partitioner]", found)


def _hint(name: str) -> str:
    if name.split(".", maxsplit=1)[0] not in _JAVA_ROOTS:
        return "The module must be installed or on PYTHONPATH."
    return "This looks like a Java class; here it is a Python class, 'package.module.Class', with a method partition()."
