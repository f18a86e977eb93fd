"""debezium-avro-confluent: Debezium's envelope as Avro, with its schema in a registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.formats.base import (
    ChangelogFormat,
    Decoder,
    DecodeRequest,
    FormatField,
    FormatMetadata,
    RowChange,
    change_name,
    row_of,
)
from headwater.formats.cdc.debezium import before_and_after, written_before_and_after
from headwater.formats.cdc.envelope import UPDATES, UPDATES_OPTION, Envelope
from headwater.formats.confluent.format import RegisteredAvro
from headwater.formats.confluent.options import OPTIONS
from headwater.formats.strings import valid_text
from headwater.options.base import Option
from headwater.sql.spark_text import field_of, once, quote_name
from headwater.sql.types import STRING

__all__ = ["DebeziumAvroFormat"]

_CODES = {"insert": ("c", "r"), "update": ("u",), "delete": ("d",)}


class DebeziumAvroFormat(RegisteredAvro, ChangelogFormat):
    identifier = "debezium-avro-confluent"
    summary = "Changes as Debezium writes them in Avro, with their schema in a schema registry."
    options: tuple[Option, ...] = (*OPTIONS, UPDATES_OPTION)
    metadata: tuple[FormatMetadata, ...] = ()

    def whole(self, fields: Sequence[FormatField]) -> tuple[Sequence[FormatField], bool]:
        row = row_of(fields)
        return [FormatField("before", row), FormatField("after", row), FormatField("op", STRING)], True

    def _unlike(self, mismatch: str) -> str:
        return (
            f"Schema provided for '{self.identifier}' format must be a nullable record type with fields 'before', "
            f"'after', 'op' and schema of fields 'before' and 'after' must match the table schema: {mismatch}"
        )

    def writes_updates(self, options: Mapping[str, Any]) -> bool:
        return bool(options[UPDATES])

    def decoder(self, request: DecodeRequest) -> Decoder:
        alias = request.alias
        inner = self.record_decoder(request)
        parts = {part: field_of(alias, part) for part in ("before", "after", "op")}
        decoded = before_and_after(Envelope(parts, row_of(request.fields), "", ""), "op", _CODES, "Debezium")
        problem = (f"{alias}_problem", once(f"coalesce({inner.error}, {decoded.problem})"))
        return replace(
            inner,
            columns=tuple(
                valid_text(f"{change_name(alias)}.row.{quote_name(f.name)}", f.type) for f in request.wanted_fields
            ),
            error=problem[0],
            skip=f"octet_length({request.payload}) = 0",
            after=(problem,),
            changes=decoded.changes,
        )

    def change_encoder(self, change: RowChange, options: Mapping[str, Any]) -> str:
        members = written_before_and_after(row_of(change.fields), *change.rows, "op", ("c", "u", "d"))
        return self.record_encoder(change.fields, [sql for _, sql in members], options)
