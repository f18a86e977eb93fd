"""Messages of a case ↔ records in Kafka, with the formats of the tables that own the topics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from headwater.catalog.tables import Table
from headwater.connectors.kafka.table.layout import PayloadLayout, message_layout
from headwater.formats.base import FormatField
from headwater.testing.avro import decode_record, encode_record
from headwater.testing.case import Avro, Message, Payload
from headwater.testing.kafka import Record

__all__ = ["Codec", "codec_of"]


@dataclass(frozen=True)
class Codec:
    """`key` and `value` are the fields of that side of a topic's messages if it is Avro, else None."""

    topic: str
    key: tuple[FormatField, ...] | None = None
    value: tuple[FormatField, ...] | None = None

    def record(self, message: Message) -> Record:
        """Raises ValueError if a side is written as Avro and cannot be."""
        key, value = self._bytes(message.key, self.key), self._bytes(message.value, self.value)
        return Record(self.topic, key, value, message.partition, message.timestamp, message.headers)

    def message(self, record: Record) -> Message:
        key, value = _payload(record.key, self.key), _payload(record.value, self.value)
        return Message(key, value, record.partition, record.timestamp, record.headers)

    def _bytes(self, payload: Payload, fields: Sequence[FormatField] | None) -> bytes | None:
        if not isinstance(payload, Avro):
            return payload
        if fields is None:
            raise ValueError(f"No table of the script above has Avro in topic '{self.topic}'.")
        return encode_record(fields, payload.value)


def _payload(data: bytes | None, fields: Sequence[FormatField] | None) -> Payload:
    """Bytes that are not what the table says stay bytes, so that they can be shown."""
    if data is None or fields is None:
        return data
    try:
        return Avro(decode_record(fields, data))
    except ValueError:
        return data


def codec_of(topic: str, tables: Iterable[Table]) -> Codec:
    owners = [table for table in tables if table.raw_options.get("topic") == topic]
    layouts = [message_layout(table) for table in owners]
    keys = [_avro_fields(layout.key) for layout in layouts]
    values = [_avro_fields(layout.value) for layout in layouts]
    return Codec(topic, next(filter(None, keys), None), next(filter(None, values), None))


def _avro_fields(side: PayloadLayout | None) -> tuple[FormatField, ...] | None:
    return tuple(side.fields) if side is not None and side.format.identifier == "avro" else None
