"""What a query wants of the keys and values of a table's messages, and how each is decoded for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from headwater.catalog.tables import Table
from headwater.connectors.kafka.table.layout import MessageLayout, PayloadLayout, message_layout
from headwater.connectors.kafka.table.metadata import KAFKA_METADATA
from headwater.formats.base import ChangelogFormat, ColumnReader, Decoder, DecodeRequest, RegisteredFormat
from headwater.sql.statements import PhysicalColumn

__all__ = [
    "WantedPayload",
    "decoding_described",
    "holds_changes",
    "payload_of",
    "present_payloads",
    "tolerates_bad_records",
    "wanted_payloads",
    "with_fields",
]

_OWN_METADATA = frozenset(key.key for key in KAFKA_METADATA)


def tolerates_bad_records(table: Table) -> bool:
    """Whether messages that cannot be decoded are left out, and perhaps kept elsewhere."""
    return table.options.string("scan.bad-records") != "fail"


def with_fields(table: Table, fields: Mapping[str, Sequence[str]]) -> Table:
    """The table as if these columns, which are of type ROW, had these fields alone; where the format of the value finds
    fields by their names and does not mind what is missing."""
    # Which messages are bad must not depend on the query where they are set aside: those are read once more then.
    if tolerates_bad_records(table):
        return table
    layout = message_layout(table)
    value, in_key = layout.value, layout.key.columns if layout.key is not None else ()
    # A format that finds fields by their place would read another field for the one that is left out.
    if not getattr(value.format, "partial_rows", False) or value.options.get("fail-on-missing-field"):
        return table
    return replace(
        table,
        columns=tuple(
            _narrowed(c, fields[c.name])
            if isinstance(c, PhysicalColumn) and c.name in fields and c.name not in in_key
            else c
            for c in table.columns
        ),
    )


def _narrowed(column: PhysicalColumn, fields: Sequence[str]) -> PhysicalColumn:
    kept = tuple(field for field in column.type.fields if field.name in fields)
    return replace(column, type=replace(column.type, fields=kept))


def wanted_payloads(table: Table, columns: Sequence[str]) -> list[WantedPayload]:
    """Those that must be decoded for these columns, the key first."""
    layout = message_layout(table)
    both = [s for s in (layout.key, layout.value) if s is not None]
    return [WantedPayload(table, layout, side, columns) for side in both if _used(table, layout, side, columns)]


def decoding_described(table: Table, columns: Sequence[str], fields: Mapping[str, Sequence[str]]) -> str:
    """Whether column readers or Spark's expressions decode all messages, and why: for EXPLAIN. A message that a column
    reader refuses is left to the expressions in any case."""
    read = wanted_payloads(with_fields(table, fields), columns)
    unread = [payload for payload in read if payload.reader is None]
    # Its schemas are asked for when the job starts.
    if any(isinstance(payload.side.format, RegisteredFormat) for payload in unread):
        return "in columns or by expressions, as its schemas are"
    if not unread:
        return "in columns"
    return f"by expressions because of {', '.join(map(_reason, unread))}"


def _reason(payload: WantedPayload) -> str:
    """Which columns no column reader can read; the format, if it is not a matter of some columns."""
    alone = [column for column in payload.wanted if replace(payload, columns=(column,)).reader is None]
    some = alone and (len(alone) < len(payload.wanted) or len(alone) == 1)
    return ", ".join(alone) if some else payload.format


def _used(table: Table, layout: MessageLayout, side: PayloadLayout, columns: Sequence[str]) -> bool:
    upserts = table.connector.reads_upserts
    # A column that key and value both have is read from the value; of an upsert table only the key of a tombstone is
    # left to read it from.
    if side is layout.key:
        return any(name in side.columns and (upserts or name not in layout.value.columns) for name in columns)
    return any(name in side.columns for name in columns) or layout.key is None or not side.format.insert_only


@dataclass(frozen=True)
class WantedPayload:
    """The key or the value of a table's messages, and what a query wants of it."""

    table: Table
    layout: MessageLayout
    side: PayloadLayout
    columns: Sequence[str]

    @property
    def name(self) -> str:
        return "key" if self.side is self.layout.key else "value"

    @property
    def alias(self) -> str:
        return f"__hw_{self.name}"

    @property
    def bytes_name(self) -> str:
        """What the payload of one row is called in SQL while it is decoded."""
        return f"{self.alias}_payload"

    @property
    def optional(self) -> bool:
        """A null value is a delete in a changelog, and nothing to decode."""
        return self.name == "value" and self.table.connector.reads_upserts

    @property
    def format(self) -> str:
        return f"{self.side.format.identifier} ({self.name})"

    @property
    def wanted(self) -> list[str]:
        return [c for c in self.side.columns if c in self.columns] or [self.side.columns[0]]

    @property
    def metadata(self) -> list[str]:
        return _format_metadata(self.table, self.columns) if self.name == "value" else []

    @property
    def ignore_option(self) -> str:
        """The option that makes the format itself lenient; not all have one."""
        if all(option.key != "ignore-parse-errors" for option in self.side.format.options):
            return ""
        prefix = "" if "format" in self.table.raw_options and self.name == "value" else f"{self.name}."
        return f"{prefix}{self.side.format.identifier}.ignore-parse-errors"

    @cached_property
    def decoder(self) -> Decoder:
        return self.side.format.decoder(
            DecodeRequest(
                self.bytes_name,
                self.alias,
                self.side.fields,
                tuple(self.side.field_of(c).name for c in self.wanted),
                self.side.options,
                tuple(self.metadata),
            )
        )

    @property
    def reader(self) -> ColumnReader | None:
        return self.decoder.reader

    @cached_property
    def names(self) -> list[str]:
        """What the columns that the reader reads are called."""
        return [f"__hw_{self.name}_{place}" for place in range(len(self.reader.types) if self.reader else 0)]

    @cached_property
    def fallible(self) -> bool:
        """Whether the conversion of what was read may fail, or its changes may make no sense."""
        reader, unsure = self.reader, self.decoder.changes is not None and not self.decoder.sound
        return unsure or (reader is not None and reader.error(self.names) is not None)


def _format_metadata(table: Table, columns: Sequence[str]) -> list[str]:
    """The wanted keys of the value's format, without the prefix that tells them from the connector's own."""
    keys = (c.key for c in table.metadata_columns if c.name in columns and c.key not in _OWN_METADATA)
    return [key.removeprefix("value.") for key in dict.fromkeys(keys)]


def present_payloads(table: Table) -> tuple[str, ...]:
    """A null key or value gives no row in most formats. That must not depend on which columns a query uses. A message
    without a key belongs to no row of an upsert table, and there a null value is a delete."""
    if table.connector.reads_upserts:
        return ("key",)
    layout = message_layout(table)
    sides = (("key", layout.key), ("value", layout.value))
    return tuple(payload for payload, side in sides if side is not None and not side.format.decodes_null)


def payload_of(column: str, table: Table) -> str:
    """Where a column comes from: the key names the row of an upsert; elsewhere the value wins."""
    layout = message_layout(table)
    in_key = layout.key is not None and column in layout.key.columns
    return "key" if in_key and (table.connector.reads_upserts or column not in layout.value.columns) else "value"


def holds_changes(table: Table) -> bool:
    return isinstance(message_layout(table).value.format, ChangelogFormat)
