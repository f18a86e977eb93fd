"""What a query wants of the two sides of a table's messages, and how each is decoded for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from headwater.catalog.tables import Table
from headwater.connectors.kafka.layout import MessageLayout, MessageSide, message_layout
from headwater.connectors.kafka.metadata import KAFKA_METADATA
from headwater.formats.base import ChangelogFormat, Decoder

__all__ = ["Side", "payload_of", "present_payloads", "used_sides"]

_OWN_METADATA = frozenset(key.key for key in KAFKA_METADATA)


def used_sides(table: Table, columns: Sequence[str]) -> list[Side]:
    """Those that must be decoded for these columns."""
    layout, upserts = message_layout(table), table.connector.reads_upserts
    both = [s for s in (layout.key, layout.value) if s is not None]
    return [Side(table, layout, side, columns) for side in both if _used(side, layout, columns, upserts)]


def _used(side: MessageSide, layout: MessageLayout, columns: Sequence[str], upserts: bool) -> bool:
    if side is layout.key:
        return any(name in side.columns and (upserts or name not in layout.value.columns) for name in columns)
    return any(name in side.columns for name in columns) or layout.key is None or not side.format.insert_only


@dataclass(frozen=True)
class Side:
    """One side of a table's messages, and what a query wants of it."""

    table: Table
    layout: MessageLayout
    side: MessageSide
    columns: Sequence[str]

    @property
    def payload(self) -> str:
        return "key" if self.side is self.layout.key else "value"

    @property
    def optional(self) -> bool:
        """A null value is a delete in a changelog, and nothing to decode."""
        return self.payload == "value" and self.table.connector.reads_upserts

    @property
    def format(self) -> str:
        return f"{self.side.format.identifier} ({self.payload})"

    @property
    def wanted(self) -> list[str]:
        return [c for c in self.side.columns if c in self.columns] or [self.side.columns[0]]

    @property
    def metadata(self) -> list[str]:
        return _format_metadata(self.table, self.columns) if self.payload == "value" else []

    @cached_property
    def decoder(self) -> Decoder:
        side, alias, fields = self.side, f"__{self.payload}", [self.side.field_of(c).name for c in self.wanted]
        if isinstance(side.format, ChangelogFormat):
            return side.format.change_decoder(self.payload, alias, side.fields, fields, self.metadata, side.options)
        return side.format.decoder(self.payload, alias, side.fields, fields, side.options)


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
