"""What a format is to the rest of Headwater: options, a changelog mode, and Spark SQL text in both directions.

A format never sees Spark or Kafka. It answers with Spark SQL expressions, so that decoding and encoding run as the
JVM's own generated code, column by column, and only for the columns a query asks for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headwater.options.base import Option
from headwater.sql.types import SqlType

__all__ = ["Decoder", "Format", "FormatField", "all_formats"]


@dataclass(frozen=True)
class FormatField:
    """A field of a message. `name` is its name inside the message (key.fields-prefix already removed)."""

    name: str
    type: SqlType


@dataclass(frozen=True)
class Decoder:
    """How one payload becomes columns. All members are Spark SQL text.

    before   names and what they stand for, computed in order before `parsed`; `after` likewise behind it. A plan is
             made anew for every batch, so whatever is needed twice gets a name instead of being written twice
    parsed   over the BINARY column that `decoder` was given; evaluated once per message, bound to the given alias
    columns  one per wanted field, in the order wanted, over that alias; each has the field's Spark type
    error    over the alias and the payload: NULL where the message is well formed, else a STRING that says what is
             wrong (the field, if known). None: this format cannot fail
    skip     BOOLEAN over the alias and the payload: true where a message yields no row and is no error. None: never
    """

    parsed: str
    columns: tuple[str, ...]
    error: str | None = None
    skip: str | None = None
    before: tuple[tuple[str, str], ...] = ()
    after: tuple[tuple[str, str], ...] = ()


class Format(Protocol):
    """One value of 'format', 'key.format' or 'value.format'.

    The SQL is for a session with `spark.sql.ansi.enabled` and `spark.sql.caseSensitive`; its time zone does not matter.
    """

    identifier: str
    summary: str
    options: tuple[Option, ...]  # keys without the identifier's prefix: 'ignore-parse-errors'
    insert_only: bool
    decodes_null: bool  # whether a log gives a row for a null payload: raw does, the others give none

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        """Everything wrong with these fields and (parsed) options in this format, one sentence each."""
        ...

    def decoder(
        self,
        payload: str,
        alias: str,
        fields: Sequence[FormatField],
        wanted: Sequence[str],
        options: Mapping[str, Any],
    ) -> Decoder:
        """Decode `wanted` (names among `fields`) from the BINARY column `payload`. A null payload never reaches it."""
        ...

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        """A BINARY expression that writes `fields`, whose values are the SQL expressions `columns`, as one message."""
        ...


def all_formats() -> Mapping[str, Format]:
    """Every format by its identifier. Connectors come here, so that they know this module and no format."""
    from headwater.formats.registry import FORMATS

    return FORMATS
