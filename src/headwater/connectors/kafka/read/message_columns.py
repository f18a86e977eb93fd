"""Messages of librdkafka → Arrow columns, named and typed as those of Spark's Kafka source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from confluent_kafka import Message

from headwater.changelog.columns import Ints
from headwater.connectors.kafka.read.splits import KafkaSplit

__all__ = ["Run", "message_batch"]

_SECOND = itemgetter(1)

Run = tuple[KafkaSplit, list[Message]]
"""Messages of one split, in order."""


def message_batch(runs: list[Run], schema: pa.Schema) -> pa.RecordBatch:
    """All the messages as columns of `schema`."""
    messages = runs[0][1] if len(runs) == 1 else [m for _, found in runs for m in found]
    columns = []
    for field in schema:
        if field.name in _OF_PARTITION:
            parts = [pa.repeat(_OF_PARTITION[field.name](split, field.type), len(found)) for split, found in runs]
            columns.append(parts[0] if len(parts) == 1 else pa.concat_arrays(parts))
        elif field.name == "offset":
            columns.append(pa.concat_arrays([_offsets(found) for _, found in runs]).cast(field.type))
        else:
            columns.append(_OF_MESSAGE[field.name](messages, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _offsets(messages: list[Message]) -> pa.Array:
    first, behind = int(messages[0].offset() or 0), int(messages[-1].offset() or 0) + 1
    if behind - first == len(messages):  # offsets only grow: there is no gap
        return pa.array(np.arange(first, behind))
    return pa.array([m.offset() for m in messages], pa.int64())


def _times(messages: list[Message]) -> Ints:
    """In milliseconds."""
    # No step of it is Python code: of a changelog, every message is asked.
    return np.fromiter(map(_SECOND, map(Message.timestamp, messages)), np.int64, len(messages))


def _headers(message: Message) -> list[dict[str, Any]] | None:
    found: Any = message.headers()
    return [{"key": key, "value": value} for key, value in found] if found else None


_OF_PARTITION: Mapping[str, Callable[[KafkaSplit, pa.DataType], pa.Scalar]] = {
    "topic": lambda split, kind: pa.scalar(split.topic, kind),
    "partition": lambda split, kind: pa.scalar(split.partition, kind),
}
_OF_MESSAGE: Mapping[str, Callable[[list[Message], pa.DataType], pa.Array]] = {
    "key": lambda messages, kind: pa.array([m.key() for m in messages], kind),
    "value": lambda messages, kind: pa.array([m.value() for m in messages], kind),
    "timestamp": lambda messages, kind: pa.array(_times(messages), pa.timestamp("ms", "UTC")).cast(kind),
    # librdkafka counts from 1 (0 is 'not available'), Spark's Kafka source from 0.
    "timestampType": lambda messages, kind: pa.array([m.timestamp()[0] - 1 for m in messages], kind),
    "headers": lambda messages, kind: pa.array([_headers(m) for m in messages], kind),
}
