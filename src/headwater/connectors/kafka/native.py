"""Arrow columns → librdkafka, through its C interface: no Python object for any message.

confluent-kafka makes the client, sets it up and hears its errors; only this one call goes past it. The structure and
the functions used here are public parts of librdkafka, which has kept them since its first release.
"""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import KafkaError, KafkaException, Producer, cimpl

__all__ = ["Topic", "is_available"]

_MESSAGE = np.dtype(  # rd_kafka_message_t
    [
        ("err", np.int32),
        ("topic", np.uintp),
        ("partition", np.int32),
        ("payload", np.uintp),
        ("len", np.uintp),
        ("key", np.uintp),
        ("key_len", np.uintp),
        ("offset", np.int64),
        ("private", np.uintp),
    ],
    align=True,
)
_COPY = 0x2  # RD_KAFKA_MSG_F_COPY: the columns may go when the call returns
_EACH_ITS_PARTITION = 0x8  # RD_KAFKA_MSG_F_PARTITION
_CHOOSE = -1  # RD_KAFKA_PARTITION_UA
_ANSWER_SECONDS = 30.0

Addresses = npt.NDArray[np.uintp]


@cache
def _library() -> ctypes.CDLL:
    """The library that confluent-kafka is linked with: its symbols are found through it, wherever it lies."""
    found = ctypes.CDLL(cimpl.__file__)
    found.rd_kafka_topic_new.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    found.rd_kafka_topic_new.restype = ctypes.c_void_p
    found.rd_kafka_topic_destroy.argtypes = [ctypes.c_void_p]
    found.rd_kafka_topic_destroy.restype = None
    found.rd_kafka_produce_batch.argtypes = [
        ctypes.c_void_p,
        ctypes.c_int32,
        ctypes.c_int,
        ctypes.c_void_p,
        ctypes.c_int,
    ]
    found.rd_kafka_produce_batch.restype = ctypes.c_int
    return found


def is_available(producer: Producer, error_cb: object) -> bool:
    """Whether this producer, which tells its errors to `error_cb`, can be reached past confluent-kafka: that must keep
    the C client and the listener at the beginning of its object, and to be linked as in its own packages."""
    if type(producer).__basicsize__ < object.__basicsize__ + 2 * ctypes.sizeof(ctypes.c_void_p):
        return False
    try:
        return _library() is not None and _member(producer, 1) == id(error_cb)
    except (AttributeError, OSError):
        return False


class Topic:
    """A topic that a producer can send columns to. Close it before the producer goes."""

    def __init__(self, producer: Producer, name: str) -> None:
        """Before its partitions are known, messages for one of them would never leave."""
        producer.list_topics(name, timeout=_ANSWER_SECONDS)
        self._handle = _library().rd_kafka_topic_new(_member(producer, 0), name.encode(), None)

    def send(self, batch: pa.RecordBatch) -> None:
        """Hand over `value`, `key` and `partition`, of which the last two may be missing. The client must have room for
        all of them. Raises KafkaException for the first message that it refuses."""
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        payloads = {name: columns[name].cast(pa.large_binary()) for name in ("value", "key") if name in columns}
        messages = np.zeros(batch.num_rows, _MESSAGE)
        messages["payload"], messages["len"] = _places(payloads["value"])
        if "key" in payloads:
            messages["key"], messages["key_len"] = _places(payloads["key"])
        flags = _COPY
        if "partition" in columns:
            messages["partition"] = columns["partition"].to_numpy(zero_copy_only=False)
            flags |= _EACH_ITS_PARTITION
        call = _library().rd_kafka_produce_batch
        if call(self._handle, _CHOOSE, flags, messages.ctypes.data, len(messages)) != len(messages):
            refused = messages["err"]
            raise KafkaException(KafkaError(int(refused[np.flatnonzero(refused)[0]])))

    def close(self) -> None:
        _library().rd_kafka_topic_destroy(self._handle)


def _member(producer: Producer, place: int) -> int | None:
    """A pointer in confluent-kafka's object: 0 the C client, 1 the listener."""
    return ctypes.c_void_p.from_address(
        id(producer) + object.__basicsize__ + place * ctypes.sizeof(ctypes.c_void_p)
    ).value


def _places(column: pa.Array) -> tuple[Addresses, Addresses]:
    """Where each value begins in memory, 0 for NULL, and how long it is."""
    _, offsets, data = column.buffers()
    bounds = np.frombuffer(offsets, np.uintp)[column.offset : column.offset + len(column) + 1]
    begin, length = bounds[:-1] + np.uintp((data or offsets).address), np.diff(bounds)
    if column.null_count:
        missing = column.is_null().to_numpy(zero_copy_only=False)
        begin[missing], length[missing] = 0, 0
    return begin, length
