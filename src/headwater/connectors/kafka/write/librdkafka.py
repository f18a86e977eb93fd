"""librdkafka's public C interface, as far as writing needs it: functions, the structures that cross, and errors.

confluent-kafka ships the library. Its own producer is not used: it makes a Python object per message, and does not
report failures of messages that it did not create. What would break this binding, and what
`tests/unit/kafka/test_librdkafka.py` would notice: a confluent-kafka that hides the symbols of the library it is
linked with (`library`), or a change of the public structures below, which librdkafka has kept since 0.9 (`MESSAGE`,
`_Partition`) and 1.6 (`FIELD`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from confluent_kafka import KafkaError, KafkaException, cimpl

__all__ = [
    "CONSUMER",
    "FIELD",
    "MESSAGE",
    "PRODUCER",
    "Partition",
    "PartitionList",
    "checked",
    "error_code",
    "kafka_error",
    "library",
    "new_client",
    "reported",
]

PRODUCER, CONSUMER = 0, 1  # rd_kafka_type_t
_TEXT = 512

# With C's padding (`align`): `produce_batch` walks the array by C's size of the structure.
MESSAGE = np.dtype(  # rd_kafka_message_t
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
# librdkafka pads the union to 64 bytes, for members to come: entries are 72 bytes apart, whatever they hold.
FIELD = np.dtype(  # rd_kafka_vu_t: a tag and a union, here as the three words that are used of it
    {
        "names": ["type", "first", "second", "third"],
        "formats": [np.int32, np.int64, np.int64, np.int64],
        "offsets": [0, 8, 16, 24],
        "itemsize": 72,
    }
)

pointer = ctypes.c_void_p
# All of them declared: ctypes otherwise takes and returns C ints, which cut 64-bit pointers in half.
_PROTOTYPES: Mapping[str, tuple[Any, list[Any]]] = {
    "conf_new": (pointer, []),
    "conf_destroy": (None, [pointer]),
    "conf_set": (ctypes.c_int, [pointer, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t]),
    "conf_set_events": (None, [pointer, ctypes.c_int]),
    "conf_set_log_cb": (None, [pointer, pointer]),
    "new": (pointer, [ctypes.c_int, pointer, ctypes.c_char_p, ctypes.c_size_t]),
    "destroy": (None, [pointer]),
    "destroy_flags": (None, [pointer, ctypes.c_int]),
    "purge": (ctypes.c_int, [pointer, ctypes.c_int]),
    "flush": (ctypes.c_int, [pointer, ctypes.c_int]),
    "outq_len": (ctypes.c_int, [pointer]),
    "fatal_error": (ctypes.c_int, [pointer, ctypes.c_char_p, ctypes.c_size_t]),
    "metadata": (ctypes.c_int, [pointer, ctypes.c_int, pointer, pointer, ctypes.c_int]),
    "metadata_destroy": (None, [pointer]),
    "topic_new": (pointer, [pointer, ctypes.c_char_p, pointer]),
    "topic_destroy": (None, [pointer]),
    "produce_batch": (ctypes.c_int, [pointer, ctypes.c_int32, ctypes.c_int, pointer, ctypes.c_int]),
    "produceva": (pointer, [pointer, pointer, ctypes.c_size_t]),
    "queue_get_main": (pointer, [pointer]),
    "queue_new": (pointer, [pointer]),
    "queue_destroy": (None, [pointer]),
    "queue_poll": (pointer, [pointer, ctypes.c_int]),
    "event_type": (ctypes.c_int, [pointer]),
    "event_error": (ctypes.c_int, [pointer]),
    "event_error_string": (ctypes.c_char_p, [pointer]),
    "event_message_next": (pointer, [pointer]),
    "event_destroy": (None, [pointer]),
    "message_produce_errstr": (ctypes.c_char_p, [pointer]),
    "error_code": (ctypes.c_int, [pointer]),
    "error_string": (ctypes.c_char_p, [pointer]),
    "error_is_fatal": (ctypes.c_int, [pointer]),
    "error_is_retriable": (ctypes.c_int, [pointer]),
    "error_txn_requires_abort": (ctypes.c_int, [pointer]),
    "error_destroy": (None, [pointer]),
    "init_transactions": (pointer, [pointer, ctypes.c_int]),
    "begin_transaction": (pointer, [pointer]),
    "send_offsets_to_transaction": (pointer, [pointer, pointer, pointer, ctypes.c_int]),
    "commit_transaction": (pointer, [pointer, ctypes.c_int]),
    "abort_transaction": (pointer, [pointer, ctypes.c_int]),
    "consumer_group_metadata_new": (pointer, [ctypes.c_char_p]),
    "consumer_group_metadata_destroy": (None, [pointer]),
    "topic_partition_list_new": (pointer, [ctypes.c_int]),
    "topic_partition_list_add": (pointer, [pointer, ctypes.c_char_p, ctypes.c_int32]),
    "topic_partition_list_destroy": (None, [pointer]),
    "committed": (ctypes.c_int, [pointer, pointer, ctypes.c_int]),
}


class Partition(ctypes.Structure):
    """rd_kafka_topic_partition_t"""

    _fields_ = (
        ("topic", ctypes.c_char_p),
        ("partition", ctypes.c_int32),
        ("offset", ctypes.c_int64),
        ("metadata", ctypes.c_void_p),
        ("metadata_size", ctypes.c_size_t),
        ("opaque", ctypes.c_void_p),
        ("err", ctypes.c_int),
        ("private", ctypes.c_void_p),
    )


class PartitionList(ctypes.Structure):
    """rd_kafka_topic_partition_list_t"""

    _fields_ = (("count", ctypes.c_int), ("size", ctypes.c_int), ("elements", ctypes.POINTER(Partition)))


@cache
def library() -> Any:
    """The library that confluent-kafka is linked with: its symbols are found through it, wherever it lies."""
    # Wheels ship librdkafka under a file name with a hash in it. A lookup through the extension module also searches
    # what it is linked with, so that name is not needed.
    found = ctypes.CDLL(cimpl.__file__)
    for name, (result, arguments) in _PROTOTYPES.items():
        function = getattr(found, f"rd_kafka_{name}")
        function.restype, function.argtypes = result, arguments
    return found


def new_client(kind: int, settings: Mapping[str, Any], events: int) -> int:
    """The handle of a producer or consumer that reports these kinds of events, and logs nothing."""
    lib, text = library(), ctypes.create_string_buffer(_TEXT)
    conf = lib.rd_kafka_conf_new()
    for name, value in settings.items():
        if lib.rd_kafka_conf_set(conf, name.encode(), _setting(value), text, _TEXT):
            lib.rd_kafka_conf_destroy(conf)
            raise reported(KafkaError._INVALID_ARG, text.value)
    lib.rd_kafka_conf_set_events(conf, events)
    lib.rd_kafka_conf_set_log_cb(conf, None)  # what matters arrives as an event
    # A client that was created owns `conf` and frees it; only after a failure is it still ours to destroy.
    handle: int | None = lib.rd_kafka_new(kind, conf, text, _TEXT)
    if handle is None:
        lib.rd_kafka_conf_destroy(conf)
        raise reported(KafkaError._INVALID_ARG, text.value)
    return handle


def _setting(value: Any) -> bytes:
    return str(value).lower().encode() if isinstance(value, bool) else str(value).encode()


def reported(code: int, text: bytes | None = None) -> KafkaException:
    """An error code as confluent-kafka would raise it."""
    return KafkaException(KafkaError(code, text.decode(errors="replace") if text else None))


def error_code(error: int) -> int:
    """The code of an rd_kafka_error_t, which is freed."""
    code = int(library().rd_kafka_error_code(error))
    library().rd_kafka_error_destroy(error)
    return code


def checked(error: int | None) -> None:
    """Raise what an rd_kafka_error_t says, if there is one, and free it."""
    if (found := kafka_error(error)) is not None:
        raise KafkaException(found)


def kafka_error(error: int | None) -> KafkaError | None:
    """What an rd_kafka_error_t says, which is freed."""
    if error is None:
        return None
    lib = library()
    found = KafkaError(
        lib.rd_kafka_error_code(error),
        (lib.rd_kafka_error_string(error) or b"").decode(errors="replace"),
        bool(lib.rd_kafka_error_is_fatal(error)),
        bool(lib.rd_kafka_error_is_retriable(error)),
        bool(lib.rd_kafka_error_txn_requires_abort(error)),
    )
    lib.rd_kafka_error_destroy(error)
    return found
