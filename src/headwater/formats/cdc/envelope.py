"""What the changelog formats made of JSON have in common: an envelope of known fields around the rows.

The envelope is read by the decoder of `json`, so values are read as they are there. A format says which fields its
envelope has, what they mean as changes, and when they make no sense.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headwater.changelog.kinds import DELETE, INSERT, UPDATE_AFTER, UPDATE_BEFORE
from headwater.formats.base import (
    ChangelogFormat,
    ColumnReader,
    Decoder,
    DecodeRequest,
    FormatField,
    FormatMetadata,
    RowChange,
    change_name,
    row_of,
)
from headwater.formats.cdc.sound_changes import OperationCodes, SoundReader
from headwater.formats.json.decode import json_decoder, parsed_as
from headwater.formats.json.encode import json_encoder
from headwater.formats.json.format import json_type_problems
from headwater.formats.json.options import READING, WRITING
from headwater.formats.json.scalars import FAST, LENIENT, Scalars
from headwater.options.base import Option
from headwater.options.types import BOOL
from headwater.sql.spark_text import field_of, once, quote_name, string_literal
from headwater.sql.types import SqlType

__all__ = [
    "COMMON_OPTIONS",
    "UPDATES",
    "UPDATES_OPTION",
    "DecodedEnvelope",
    "Envelope",
    "JsonChangelog",
    "JsonMetadata",
    "array_of_changes",
    "change",
    "kept_where_unchanged",
]

UPDATES = "encode.update-as-one-message"
UPDATES_OPTION = Option(
    UPDATES,
    BOOL,
    "Whether an update is written as one message with the old and the new row. Otherwise, as in Flink, it is a delete "
    "and an insert.",
    False,
)
COMMON_OPTIONS: tuple[Option, ...] = (*READING, *WRITING, UPDATES_OPTION)
KINDS = {"insert": INSERT, "before": UPDATE_BEFORE, "after": UPDATE_AFTER, "delete": DELETE}


@dataclass(frozen=True)
class JsonMetadata(FormatMetadata):
    """`source` is the field of the envelope it comes from, `read` makes its SQL from that field's. With `outside`, the
    field is beside the envelope, and only where there is something around both."""

    source: FormatField
    read: Callable[[str], str] = lambda part: part
    outside: bool = False


@dataclass(frozen=True)
class Envelope:
    """The SQL of each field of the envelope, and the type of a row. `text` is the whole message; `old_names`, of an
    update whose old row has only what changed, the members that it has."""

    parts: Mapping[str, str]
    row: SqlType
    text: str
    old_names: str

    def __getitem__(self, name: str) -> str:
        return self.parts[name]


@dataclass(frozen=True)
class DecodedEnvelope:
    """All SQL: the changes; what is wrong with the message (NULL: nothing); whether it is none of this table's; and
    the SQL of `Envelope.old_names`. `codes` are given where they and the rows before and after tell all of that."""

    changes: str
    problem: str
    other: str = "false"
    old_names: str = ""
    codes: OperationCodes | None = None


class JsonChangelog(ChangelogFormat):
    metadata: tuple[JsonMetadata, ...]

    @abstractmethod
    def envelope(self, row: SqlType, options: Mapping[str, Any]) -> list[FormatField]:
        """The fields that make changes of rows of that type."""

    @abstractmethod
    def decoded(self, envelope: Envelope, options: Mapping[str, Any]) -> DecodedEnvelope: ...

    @abstractmethod
    def written(
        self, row: SqlType, before: str | None, after: str | None, options: Mapping[str, Any]
    ) -> list[tuple[FormatField, str]]:
        """The fields of a message about these rows (SQL of a ROW, at least one of both), with their values."""

    def around(self, options: Mapping[str, Any]) -> str:
        """The field that holds the envelope, if it is not the message itself."""
        del options
        return ""

    def scalars(self, options: Mapping[str, Any]) -> tuple[Scalars, Scalars]:
        del options
        return FAST, LENIENT

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        del options
        return json_type_problems(fields)

    def writes_updates(self, options: Mapping[str, Any]) -> bool:
        return bool(options[UPDATES])

    def decoder(self, request: DecodeRequest) -> Decoder:
        alias, options = request.alias, request.options
        row = row_of([f for f in request.fields if f.name in request.wanted])
        around = self.around(options)
        chosen = [m for key in request.metadata for m in self.metadata if m.key == key]
        inside = self.envelope(row, options)
        # Metadata is read in the same pass as the rows: a second parse of the message would double its cost.
        inside += [f for f in dict.fromkeys(m.source for m in chosen if not m.outside) if f not in inside]
        beside = [m.source for m in chosen if m.outside] if around else []
        read = [FormatField(around, row_of(inside)), *beside] if around else inside
        inner = json_decoder(request.payload, alias, read, options, self.scalars(options))
        names = {f.name: f"{alias}_part{i}" for i, f in enumerate(read)}
        sql_of = {f.name: field_of(names[around], f.name) if around else names[f.name] for f in inside}
        envelope = Envelope(sql_of, row, f"{alias}_text", f"{alias}_old")
        sql_of |= {f.name: names[f.name] for f in beside}
        ignore = bool(options["ignore-parse-errors"])

        def finished(inner: Decoder) -> Decoder:
            """From the envelope's fields to changes, whoever has read them."""
            decoded = self.decoded(envelope, options)
            # Kafka Connect writes the deletion that a compacted topic needs as an empty envelope.
            if around:
                members = parsed_as(envelope.text, "MAP<STRING, STRING>")
                there = f"map_contains_key({members}, {string_literal(around)})"
                empty = f"coalesce({names[around]} IS NULL AND {inner.error or 'NULL'} IS NULL AND {there}, false)"
                decoded = replace(decoded, other=f"{decoded.other} OR {empty}")
            # Each part is a step with a name: Spark inlines expressions, and would parse the message again for every
            # column that uses one.
            parts = tuple((names[f.name], once(sql)) for f, sql in zip(read, inner.columns, strict=True))
            old = ((envelope.old_names, once(decoded.old_names)),) if decoded.old_names else ()
            problem = (f"{alias}_problem", once(f"IF({decoded.other}, NULL, {_first(inner.error, decoded.problem)})"))
            skip = f"({inner.skip or 'false'}) OR ({decoded.other})"
            return Decoder(
                parsed=inner.parsed,
                columns=tuple(f"{change_name(alias)}.row.{quote_name(w)}" for w in request.wanted),
                error=None if ignore else problem[0],
                skip=f"{skip} OR {problem[0]} IS NOT NULL" if ignore else skip,
                before=inner.before,
                after=(*inner.after, *parts, *old, problem),
                changes=decoded.changes,
                metadata=tuple(m.read(sql_of.get(m.source.name, "CAST(NULL AS STRING)")) for m in chosen),
            )

        reader: ColumnReader | None = inner.reader
        if reader is None:
            return finished(inner)
        codes = self.decoded(envelope, options).codes if not around else None
        fields = tuple(f.name for f in read)
        if codes is not None and _reads_rows(reader, fields):
            return _over_changes(finished(inner), SoundReader(reader, fields, codes, row.spark()), sql_of)

        # The same ending over columns that a reader has read: one definition of what a change means, whoever has parsed
        # the message.
        def over(columns: Sequence[str]) -> Decoder:
            return finished(Decoder("", reader.columns(columns), error=reader.error(columns), before=inner.before))

        return replace(finished(inner), reader=reader, over=over)

    def change_encoder(self, change: RowChange, options: Mapping[str, Any]) -> str:
        members = self.written(row_of(change.fields), *change.rows, options)
        return json_encoder([f for f, _ in members], [sql for _, sql in members], options)


def _reads_rows(reader: ColumnReader, fields: Sequence[str]) -> bool:
    """Whether the rows in a message need no conversion behind the reader, and nothing that it reads can be wrong."""
    sql = dict(zip(fields, reader.columns(fields), strict=True))
    return reader.error(fields) is None and all(sql[name] == quote_name(name) for name in ("before", "after"))


def _over_changes(decoder: Decoder, reader: SoundReader, sql_of: Mapping[str, str]) -> Decoder:
    """With a reader that gives the changes themselves: behind it, only metadata is left to be made."""

    def over(columns: Sequence[str]) -> Decoder:
        parts = zip(reader.others, reader.columns(columns), strict=True)
        return Decoder(
            "",
            decoder.columns,
            after=tuple((sql_of[name], once(sql)) for name, sql in parts),
            changes=quote_name(columns[0]),
            metadata=decoder.metadata,
        )

    return replace(decoder, reader=reader, over=over, sound=True)


def array_of_changes(**rows: str) -> str:
    """Changes of one row each: `insert`, `before`, `after` or `delete`, with the row's SQL."""
    return f"array({', '.join(change(kind, row) for kind, row in rows.items())})"


def change(kind: str, row: str) -> str:
    return f"named_struct('kind', {KINDS[kind]}Y, 'row', {row})"


def kept_where_unchanged(row: SqlType, old: str, new: str, named: str) -> str:
    """The row before an update of which a message tells only what changed. `named` is a MAP with what it tells."""
    columns = (
        f"IF(map_contains_key({named}, {string_literal(f.name)}), {field_of(old, f.name)}, {field_of(new, f.name)}) "
        f"AS {quote_name(f.name)}"
        for f in row.fields
    )
    return f"struct({', '.join(columns)})"


def _first(error: str | None, problem: str) -> str:
    return problem if error is None else f"coalesce({error}, {problem})"
