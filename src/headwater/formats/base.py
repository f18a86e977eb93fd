"""What a format is to the rest of Headwater: options, a changelog mode, and Spark SQL text in both directions.

A format never sees Spark or Kafka. It answers with Spark SQL expressions, so that decoding and encoding run as the
JVM's own generated code, column by column, and only for the columns a query asks for. A format may also read whole
columns of messages at once, many times faster (the fast path), and leave the rest to the expressions (the fallback).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headwater.options.base import Option
from headwater.plugins import FORMATS
from headwater.sql.spark_text import bare, quote_name, string_literal
from headwater.sql.types import Field, SqlType

__all__ = [
    "ChangelogFormat",
    "ColumnReader",
    "DecodeRequest",
    "Decoder",
    "Format",
    "FormatField",
    "FormatMetadata",
    "Places",
    "RegisteredFormat",
    "RowChange",
    "RowSplitter",
    "SchemaLocation",
    "all_formats",
    "change_name",
    "row_of",
]


@dataclass(frozen=True)
class FormatField:
    """A field of a message. `name` is its name inside the message (key.fields-prefix already removed)."""

    name: str
    type: SqlType


def row_of(fields: Sequence[FormatField]) -> SqlType:
    """The fields as a type."""
    return SqlType("ROW", fields=tuple(Field(f.name, f.type) for f in fields))


@dataclass(frozen=True)
class FormatMetadata:
    """What a message says about its rows beside their fields; a table reads it as 'value.<key>'."""

    key: str
    type: SqlType
    meaning: str


@dataclass(frozen=True)
class DecodeRequest:
    """What to decode: `wanted` (names among `fields`) and the `metadata` keys of a changelog format from the BINARY
    column `payload`. Names of intermediate results begin with `alias`. `options` are those of the format, parsed."""

    payload: str
    alias: str
    fields: tuple[FormatField, ...]
    wanted: tuple[str, ...]
    options: Mapping[str, Any]
    metadata: tuple[str, ...] = ()

    @property
    def wanted_fields(self) -> list[FormatField]:
        by_name = {f.name: f for f in self.fields}
        return [by_name[name] for name in self.wanted]


class ColumnReader(Protocol):
    """Reads many payloads at once with Arrow. What it reads, it reads exactly as the decoder's expressions do."""

    @property
    def types(self) -> tuple[str, ...]:
        """Spark's types of what it reads, one per wanted field."""
        ...

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        """As `Decoder.columns`, over columns of these names and `types`."""
        ...

    def error(self, names: Sequence[str]) -> str | None:
        """As `Decoder.error`, over the same columns. None: what was read has no errors, and the payload may go."""
        ...

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        """The columns, of Arrow's `types`, or None if any payload (none is null) is left to the expressions."""
        ...


Places = npt.NDArray[np.int64]


class RowSplitter(Protocol):
    """Where a message may hold several rows, or none: in the workers, before anything is decoded."""

    def __call__(self, payloads: pa.Array) -> tuple[pa.Array, Places] | None:
        """The payload of every row, in order, and the place of its message among `payloads`; None if each of them is
        one row as it is."""
        ...


@dataclass(frozen=True)
class Decoder:
    """How one payload becomes columns. All members but the last four are Spark SQL text.

    before   names and what they stand for, computed in order before `parsed`; `after` likewise behind it. Spark
             evaluates an expression wherever it stands, so whatever is needed twice gets a name
    parsed   over the BINARY column that `decoder` was given; evaluated once per message, bound to the given alias
    columns  one per wanted field, in the order wanted, over that alias; each has the field's Spark type
    error    over the alias and the payload: NULL where the message is well formed, else a STRING that says what is
             wrong (the field, if known). None: this format cannot fail
    skip     BOOLEAN over the alias and the payload: true where a message yields no row and is no error. None: never
    changes  where a message holds changes: an ARRAY<STRUCT<kind: TINYINT, row: STRUCT<…>>> over the alias, in order.
             `columns` are then over one element of it, named `change_name(alias)`
    metadata one per wanted key of a changelog format, over the alias
    rows     where a message may hold several rows, or none: takes it apart. All the rest is about one row's payload
    reader   the fast path: whole columns at once. None: there is none for these fields
    over     where a message holds changes: the decoder over columns of these names, which `reader` has read
    sound    whether `reader` reads changes, all of which make sense: `over` needs nothing of the message then
    """

    parsed: str
    columns: tuple[str, ...]
    error: str | None = None
    skip: str | None = None
    before: tuple[tuple[str, str], ...] = ()
    after: tuple[tuple[str, str], ...] = ()
    changes: str | None = None
    metadata: tuple[str, ...] = ()
    rows: RowSplitter | None = None
    reader: ColumnReader | None = None
    over: Callable[[Sequence[str]], Decoder] | None = None
    sound: bool = False

    def steps(self, alias: str) -> tuple[tuple[str, str], ...]:
        """Names and what they stand for, in the order in which they are computed; `parsed` is the alias, if there is
        anything to parse."""
        return (*self.before, *([(alias, self.parsed)] if self.parsed else []), *self.after)

    def whole(self, alias: str, body: str) -> str:
        """`body`, which is over those names, as one expression over the payload. It is never compiled, so it is for
        where it is rarely evaluated."""
        for label, sql in reversed(self.steps(alias)):
            body = f"element_at(transform(array({bare(sql)}), {quote_name(label)} -> {body}), 1)"
        return body


def change_name(alias: str) -> str:
    """What one change of a message is called while its columns are computed."""
    return f"{alias}_change"


class Format(Protocol):
    """One value of 'format', 'key.format' or 'value.format'.

    The SQL is for a session with the settings of `headwater.sql.typed`; its time zone does not matter.
    """

    identifier: str
    summary: str
    options: tuple[Option, ...]  # keys without the identifier's prefix: 'ignore-parse-errors'
    insert_only: bool
    decodes_null: bool  # whether a log gives a row for a null payload: raw does, the others give none
    # May have `partial_rows = True`: fields of a ROW are found by their names, so that any of them may be left out.

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        """Everything wrong with these fields and (parsed) options in this format, one sentence each."""
        ...

    def decoder(self, request: DecodeRequest) -> Decoder:
        """A null payload never reaches it."""
        ...

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        """A BINARY expression that writes `fields`, whose values are the SQL expressions `columns`, as one message."""
        ...


@dataclass(frozen=True)
class RowChange:
    """SQL of the columns of a row `before` and `after` it changed, in the order of `fields`; None: there is none."""

    fields: Sequence[FormatField]
    before: Sequence[str] | None
    after: Sequence[str] | None

    @property
    def rows(self) -> tuple[str | None, str | None]:
        """Both as SQL of a ROW."""
        return self._row(self.before), self._row(self.after)

    def _row(self, columns: Sequence[str] | None) -> str | None:
        if columns is None:
            return None
        pairs = zip(self.fields, columns, strict=True)
        return f"named_struct({', '.join(f'{string_literal(f.name)}, {c}' for f, c in pairs)})"


class ChangelogFormat(ABC):
    """A `Format` whose messages are changes: a row was there `before`, a row is there `after`."""

    identifier: str
    summary: str
    options: tuple[Option, ...]
    metadata: tuple[FormatMetadata, ...]
    insert_only = False
    decodes_null = False

    @abstractmethod
    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]: ...

    @abstractmethod
    def decoder(self, request: DecodeRequest) -> Decoder: ...

    @abstractmethod
    def change_encoder(self, change: RowChange, options: Mapping[str, Any]) -> str:
        """A BINARY expression: the message about this change."""

    @abstractmethod
    def writes_updates(self, options: Mapping[str, Any]) -> bool:
        """Whether an update is one message with both rows, instead of a delete and an insert."""

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        return self.change_encoder(RowChange(fields, None, columns), options)


@dataclass(frozen=True)
class SchemaLocation:
    """Where the messages of a table are: its topics (none, if it looks for them), the side of a message, and user and
    password of the login at the broker, if there is one."""

    topics: tuple[str, ...]
    side: Literal["key", "value"]
    login: tuple[str, str] | None = None


class RegisteredFormat(ABC):
    """A `Format` whose schemas are in a registry. A message names its schema in its first `HEADER` bytes; a decoder
    knows only those that it was made with, and raises an UNKNOWN_SCHEMA (see `error_markers`) for others."""

    HEADER = 5
    OF_ONE_SIDE = ("subject", "schema")  # options that are about the fields of one side of a message

    @abstractmethod
    def located(
        self, options: Mapping[str, Any], properties: Mapping[str, str], location: SchemaLocation
    ) -> dict[str, Any]:
        """The options of a table, with its 'properties.*' of this format, and with what follows from the location."""

    @abstractmethod
    def sink_problems(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        """As `Format.validate`, of a table that is written."""

    @abstractmethod
    def before_reading(self, options: Mapping[str, Any]) -> None:
        """Before every batch: look for new schemas."""

    @abstractmethod
    def before_writing(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> None:
        """Before the first batch: see to it that the schema is there."""

    @abstractmethod
    def known(self, options: Mapping[str, Any]) -> tuple[object, ...]:
        """What a decoder that is made now would know. As long as this is the same, an older one will do."""

    @abstractmethod
    def learn(self, options: Mapping[str, Any], headers: Sequence[bytes]) -> None:
        """Ask for the schemas of all messages that begin so."""


def all_formats() -> Mapping[str, Format]:
    """Every format by its identifier."""
    return FORMATS
