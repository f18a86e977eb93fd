"""The metadata columns of both Kafka connectors, and what Spark has of a message."""

from __future__ import annotations

from headwater.catalog.connector import MetadataKey
from headwater.sql.types import BIGINT, BYTES, INT, STRING, Field, SqlType, timestamp_ltz

__all__ = ["KAFKA_METADATA", "MESSAGE", "MESSAGE_WITH_HEADERS"]

MESSAGE = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, timestampType INT"
MESSAGE_WITH_HEADERS = f"{MESSAGE}, headers ARRAY<STRUCT<key: STRING, value: BINARY>>"

_HEADER = SqlType("ROW", fields=(Field("key", STRING.not_null()), Field("value", BYTES)))

KAFKA_METADATA: tuple[MetadataKey, ...] = (
    MetadataKey(
        "topic",
        STRING.not_null(),
        "Topic of the message. Written where the table has several topics.",
        writable=True,
    ),
    MetadataKey("partition", INT.not_null(), "Partition of the message."),
    MetadataKey(
        "headers",
        SqlType("MAP", key=STRING, element=BYTES, nullable=False),
        "Headers of the message; of several with one name the last.",
        writable=True,
    ),
    MetadataKey(
        "header-list",
        SqlType("ARRAY", element=_HEADER, nullable=False),
        "All headers of the message in order.",
        writable=True,
    ),
    MetadataKey("leader-epoch", INT, "Leader epoch of the message. Not supported yet: always NULL."),
    MetadataKey("offset", BIGINT.not_null(), "Offset of the message in its partition."),
    MetadataKey("timestamp", timestamp_ltz(3).not_null(), "Timestamp of the message.", writable=True),
    MetadataKey(
        "timestamp-type",
        STRING.not_null(),
        "What the timestamp is: 'NoTimestampType', 'CreateTime' or 'LogAppendTime'.",
    ),
)
