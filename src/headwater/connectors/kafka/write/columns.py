"""Arrow columns → librdkafka, without a Python object for any message.

`rd_kafka_produce_batch` takes keys, values and partitions of many messages in one call. It knows neither headers nor
timestamps: messages with them go by `rd_kafka_produceva`, one call each, whose arguments are laid out here for all
messages of a part at once.

Order: the client takes messages in the order of the column. If its queue is full it refuses the first message it has
no room for and all behind it, so what is left is handed over again when there is room: nothing is ever overtaken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaError

from headwater.connectors.kafka.write.librdkafka import FIELD, MESSAGE, error_code, library, reported
from headwater.connectors.kafka.write.producer import Producer

__all__ = ["ROWS_AT_ONCE", "send"]

ROWS_AT_ONCE = 50_000
_TOPIC_SECONDS = 30.0
_PAUSE_SECONDS = 0.002

_COPY = 0x2  # RD_KAFKA_MSG_F_COPY: the columns may go when the call returns
_EACH_ITS_PARTITION = 0x8  # RD_KAFKA_MSG_F_PARTITION
_ANY_PARTITION = -1  # RD_KAFKA_PARTITION_UA
# RD_KAFKA_VTYPE_…
_TOPIC, _PARTITION, _VALUE, _KEY, _FLAGS, _TIMESTAMP, _HEADER = 2, 3, 4, 5, 7, 8, 9

Words = npt.NDArray[np.int64]


def send(producer: Producer, topic: str, batch: pa.RecordBatch) -> int:
    """Hand the messages of a batch to the client, which sends them in the background; answers how many. `topic` is for
    rows that do not name theirs. Raises KafkaException for the first message that the client refuses."""
    if "topic" not in batch.schema.names:
        _send_to(producer, topic, batch)
        return int(batch.num_rows)
    named = batch.column("topic")
    # One topic after the other, because the calls take the topic's handle. Kafka has no order between topics, so none
    # is lost.
    for name in pc.unique(named).to_pylist():
        _send_to(producer, name, batch.filter(pc.equal(named, name)))
    return int(batch.num_rows)


def _send_to(producer: Producer, topic: str, batch: pa.RecordBatch) -> None:
    handle = producer.topic(topic, _TOPIC_SECONDS)
    in_calls = {"headers", "timestamp"} & set(batch.schema.names)
    for start in range(0, batch.num_rows, ROWS_AT_ONCE):
        columns = _columns(batch.slice(start, ROWS_AT_ONCE))
        if in_calls:
            _one_by_one(producer, handle, columns)
        else:
            _at_once(producer, handle, columns)
        # Between parts, so that a failed message stops the batch now and not only at the flush, minutes of messages
        # later.
        producer.serve(0)
        producer.raise_failure()


def _columns(batch: pa.RecordBatch) -> dict[str, pa.Array]:
    # 64-bit offsets for all: `_places` then has one memory layout to read, and no column is too large for it.
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    return columns | {name: columns[name].cast(pa.large_binary()) for name in ("value", "key") if name in columns}


def _at_once(producer: Producer, topic: int, columns: Mapping[str, pa.Array]) -> None:
    messages = np.zeros(len(columns["value"]), MESSAGE)
    messages["payload"], messages["len"] = _places(columns["value"])
    if "key" in columns:
        messages["key"], messages["key_len"] = _places(columns["key"])
    flags = _COPY
    if "partition" in columns:
        messages["partition"] = columns["partition"].to_numpy(zero_copy_only=False)
        flags |= _EACH_ITS_PARTITION
    call = library().rd_kafka_produce_batch
    while len(messages):
        taken = call(topic, _ANY_PARTITION, flags, messages.ctypes.data, len(messages))
        if taken == len(messages):
            return
        refused = int(messages["err"][np.flatnonzero(messages["err"])[0]])
        # The library takes messages from the front; a full queue refuses all behind the first that has no room. Any
        # other refusal is that of one message.
        if refused != KafkaError._QUEUE_FULL or not (messages["err"][taken:] == refused).all():
            raise producer.refused(refused)
        messages = messages[taken:]
        _await_room(producer)


def _one_by_one(producer: Producer, topic: int, columns: Mapping[str, pa.Array]) -> None:
    laid_out = _fields(topic, columns)
    addresses, counts = laid_out.addresses.tolist(), laid_out.counts.tolist()
    call, taken = library().rd_kafka_produceva, 0
    while taken < len(addresses):
        # A loop in C: the call has no batch form for headers and timestamps, and Python's own loop would double its
        # time.
        for error in map(call, repeat(producer.handle), addresses[taken:], counts[taken:]):
            if error is not None:
                code = error_code(error)
                if code != KafkaError._QUEUE_FULL:
                    raise producer.refused(code)
                _await_room(producer)
                break
            taken += 1


def _await_room(producer: Producer) -> None:
    """Until half of what waits has left. A single message that an empty queue has no room for never will."""
    waiting = producer.waiting
    if not waiting:
        raise reported(KafkaError.MSG_SIZE_TOO_LARGE, b"It is larger than 'properties.buffer.memory'")
    while producer.waiting > waiting // 2:
        producer.serve(_PAUSE_SECONDS)
        producer.raise_failure()


@dataclass(frozen=True)
class _Fields:
    """The arguments of one call per message. `memory` is what they point to."""

    addresses: Words
    counts: Words
    memory: tuple[object, ...]


def _fields(topic: int, columns: Mapping[str, pa.Array]) -> _Fields:
    """Per message: its topic, flags, value, key, partition and time as far as there are such, then its headers."""
    number = len(columns["value"])
    common = np.zeros((number, 6), FIELD)
    common["type"] = [_TOPIC, _FLAGS, _VALUE, _KEY, _PARTITION, _TIMESTAMP]
    common["first"][:, 0], common["first"][:, 1] = topic, _COPY
    common["first"][:, 2], common["second"][:, 2] = _places(columns["value"])
    if "key" in columns:
        common["first"][:, 3], common["second"][:, 3] = _places(columns["key"])
    common["first"][:, 4] = _numbers(columns.get("partition"), _ANY_PARTITION)
    common["first"][:, 5] = _numbers(columns.get("timestamp"), 0)  # 0: now
    headers = columns.get("headers")
    if headers is None:
        offsets = np.arange(number, dtype=np.int64) * 6
        return _Fields(common.ctypes.data + offsets * FIELD.itemsize, np.full(number, 6), (common,))
    entries, per_message, memory = _headers(headers)
    counts = per_message + 6
    begin = np.cumsum(counts) - counts
    fields = np.zeros(int(counts.sum()), FIELD)
    for place in range(6):
        fields[begin + place] = common[:, place]
    own = np.ones(len(fields), bool)
    own[(begin[:, None] + np.arange(6)).ravel()] = False
    fields[own] = entries
    return _Fields(fields.ctypes.data + begin * FIELD.itemsize, counts, (fields, memory))


def _headers(column: pa.Array) -> tuple[npt.NDArray[np.void], Words, tuple[object, ...]]:
    """All headers in order, and how many each message has."""
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    # `flatten` leaves out what lies behind null lists, as `lengths` does; `values` would not.
    listed = column.flatten()
    names, values = listed.field("key").dictionary_encode(), listed.field("value").cast(pa.large_binary())
    # C wants names that end with a zero byte, which Arrow's do not. A batch has few different ones: each is copied
    # once.
    known = [np.frombuffer(name.encode() + b"\0", np.uint8) for name in names.dictionary.to_pylist()]
    addresses = np.array([name.ctypes.data for name in known], np.int64)
    entries = np.zeros(len(listed), FIELD)
    entries["type"] = _HEADER
    if len(listed):
        entries["first"] = addresses[names.indices.to_numpy(zero_copy_only=False)]
        entries["second"], entries["third"] = _places(values)
    return entries, lengths, (known, values)


def _numbers(column: pa.Array | None, otherwise: int) -> Words | int:
    if column is None:
        return otherwise
    return np.asarray(pc.fill_null(column, otherwise).to_numpy(zero_copy_only=False), np.int64)


def _places(column: pa.Array) -> tuple[Words, Words]:
    """Where each value begins in memory, 0 for NULL, and how long it is."""
    _, offsets, data = column.buffers()
    # A slice shares the buffers of its parent: only the offsets from its own first row on are its own.
    bounds = np.frombuffer(offsets, np.int64)[column.offset : column.offset + len(column) + 1]
    # A column without any byte has no data buffer. Any valid address will do then: a null pointer would mean NULL.
    begin, length = bounds[:-1] + (data or offsets).address, np.diff(bounds)
    if column.null_count:
        # A null pointer is Kafka's null, which is a tombstone; a pointer with length 0 is an empty value.
        missing = column.is_null().to_numpy(zero_copy_only=False)
        begin[missing], length[missing] = 0, 0
    return begin, length
