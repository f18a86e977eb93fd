"""Ranges of offsets → messages in Arrow batches, read by librdkafka inside Spark's Python workers.

A message that Spark's own reader fetches becomes a row of the JVM before Python sees it, which costs more than all the
rest. Large batches are therefore read where they are decoded. What is read is the same.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from headwater.connectors.kafka.librdkafka import consumer_settings
from headwater.connectors.kafka.produce import Trouble, is_refusal, translated
from headwater.errors import DataLossError, ValidationError

__all__ = ["Range", "client_settings", "fetching", "split_evenly"]

AT_ONCE = 16_384
POLL_SECONDS = 0.1
SILENCE_SECONDS = 30.0

Batches = Iterable[pa.RecordBatch]


@dataclass(frozen=True)
class Range:
    """The messages of a partition from offset `begin` to before `end`; some offsets may hold none."""

    topic: str
    partition: int
    begin: int
    end: int


def client_settings(properties: Mapping[str, str]) -> dict[str, Any] | None:
    """Settings of the client for these `properties.*`, or None if it cannot do as they say."""
    try:
        settings = consumer_settings(properties)
        Consumer(settings).close()
    except (ValidationError, KafkaException):
        return None
    return settings


def split_evenly(ranges: Sequence[Range], count: int) -> list[Range]:
    """The same messages in about `count` ranges; no range is joined to another."""
    rows = sum(r.end - r.begin for r in ranges)
    size = max(1, -(-rows // max(1, count)))
    return [
        Range(r.topic, r.partition, begin, min(begin + size, r.end))
        for r in ranges
        for begin in range(r.begin, r.end, size)
    ]


def fetching(ranges: Sequence[Range], client: Mapping[str, Any], schema: pa.Schema) -> Callable[[Batches], Batches]:
    """A function for `mapInArrow` over rows that hold the places of ranges: their messages, as columns of `schema`,
    whose names are those of Spark's own reader."""

    def run(places: Batches) -> Batches:
        try:
            for batch in places:
                for place in batch.column(0).to_pylist():
                    with _no_search_for_cycles():
                        yield from _fetched(ranges[place], client, schema)
        finally:
            deque(places, maxlen=0)  # Spark does not use a worker again that leaves input behind

    return run


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Thousands of messages at a time keep Python looking for garbage in them, which takes longer than making them."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _fetched(wanted: Range, client: Mapping[str, Any], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    reader = _borrowed(client)
    try:
        for messages in reader.read(wanted):
            columns = [_COLUMNS[field.name](messages, wanted, field.type) for field in schema]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)
    except BaseException:  # the task may also be given up between two batches
        reader.close()
        raise
    _give_back(client, reader)


class _Reader:
    """A consumer that outlives the task, so that the next one finds it connected."""

    def __init__(self, client: Mapping[str, Any]) -> None:
        self._trouble = Trouble()
        self._consumer = Consumer({**client, "error_cb": self._trouble})

    def read(self, wanted: Range) -> Iterator[list[Message]]:
        """1. Ask for no more than there can be. 2. Leave out what lies behind the range. 3. The end is reached with
        its last offset, with a message behind it, or when the broker says that nothing is left before it."""
        self._trouble.last = None
        self._consumer.assign([TopicPartition(wanted.topic, wanted.partition, wanted.begin)])
        place, heard = wanted.begin, time.monotonic()
        while place < wanted.end:
            received = self._received(wanted, min(AT_ONCE, wanted.end - place))  # 1
            messages, behind = self._told(received, wanted)
            if behind is not None:
                place, heard = behind, time.monotonic()
            elif time.monotonic() - heard > SILENCE_SECONDS:
                raise self._failure(KafkaError(KafkaError._TIMED_OUT, "no message arrived"), wanted)
            if place > wanted.end:  # 2
                messages = [m for m in messages if _next_offset(m) <= wanted.end]
            if messages:
                yield messages
        self._consumer.unassign()

    def _received(self, wanted: Range, count: int) -> list[Message]:
        try:
            received: list[Message] = self._consumer.consume(count, POLL_SECONDS)
        except KafkaException as error:
            raise self._failure(error.args[0], wanted) from error
        trouble = self._trouble.last
        if not received and trouble is not None and is_refusal(trouble) and trouble.code() not in _NOT_OURS:
            raise self._failure(trouble, wanted)
        return received

    def _told(self, received: list[Message], wanted: Range) -> tuple[list[Message], int | None]:
        """The messages, without what is none but tells of the partition's end or of trouble; and the place behind them,
        if there is anything to tell it."""
        messages = [m for m in received if m.error() is None]
        places = [_next_offset(m) for m in messages[-1:]]
        if len(messages) < len(received):
            for message in received:
                problem = message.error()
                if problem is None or problem.code() in _NOT_OURS:
                    continue
                if problem.code() != KafkaError._PARTITION_EOF:
                    raise self._failure(problem, wanted)
                places.append(_next_offset(message))
        return messages, max(places, default=None)

    def _failure(self, error: KafkaError, wanted: Range) -> Exception:
        where = f"topic '{wanted.topic}', partition {wanted.partition}"
        if error.code() in _LOST:
            return DataLossError(
                f"Messages that are needed are no longer there: {where}, offsets {wanted.begin} to {wanted.end - 1}.",
                detail=error.str(),
                hint="Retention has removed them, or the topic is a new one. Set 'scan.on-data-loss' = 'continue' to "
                "go on with what is left, or start with a new checkpoint.",
            )
        return translated(KafkaException(error), f"messages from {where}", self._trouble)

    def close(self) -> None:
        self._consumer.close()


# The client asks for the coordinator of its group, which it never uses, and may not be allowed to.
_NOT_OURS = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})
_LOST = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})


def _next_offset(message: Message) -> int:
    """The first offset that is not read yet. What tells of the partition's end names that itself."""
    offset = int(message.offset() or 0)
    return offset if message.error() is not None else offset + 1


def _offsets(messages: list[Message]) -> pa.Array:
    first, behind = _next_offset(messages[0]) - 1, _next_offset(messages[-1])
    if behind - first == len(messages):  # offsets only grow: there is no gap
        return pa.array(np.arange(first, behind))
    return pa.array([m.offset() for m in messages])


def _headers(message: Message) -> list[dict[str, Any]] | None:
    found: Any = message.headers()
    return [{"key": key, "value": value} for key, value in found] if found else None


Column = Callable[[list[Message], Range, pa.DataType], pa.Array]

_COLUMNS: Mapping[str, Column] = {
    "key": lambda messages, _, kind: pa.array([m.key() for m in messages], kind),
    "value": lambda messages, _, kind: pa.array([m.value() for m in messages], kind),
    "topic": lambda messages, wanted, kind: pa.repeat(pa.scalar(wanted.topic, kind), len(messages)),
    "partition": lambda messages, wanted, kind: pa.repeat(pa.scalar(wanted.partition, kind), len(messages)),
    "offset": lambda messages, _, kind: _offsets(messages).cast(kind),
    "timestamp": lambda messages, _, kind: pa.array(
        [m.timestamp()[1] for m in messages], pa.timestamp("ms", "UTC")
    ).cast(kind),
    "timestampType": lambda messages, _, kind: pa.array([m.timestamp()[0] - 1 for m in messages], kind),
    "headers": lambda messages, _, kind: pa.array([_headers(m) for m in messages], kind),
}

_idle: dict[frozenset[tuple[str, Any]], list[_Reader]] = {}
_idle_lock = threading.Lock()


def _borrowed(client: Mapping[str, Any]) -> _Reader:
    with _idle_lock:
        waiting = _idle.get(frozenset(client.items()))
        if waiting:
            return waiting.pop()
    return _Reader(client)


def _give_back(client: Mapping[str, Any], reader: _Reader) -> None:
    with _idle_lock:
        _idle.setdefault(frozenset(client.items()), []).append(reader)
