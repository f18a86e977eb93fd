"""Messages → rows: superseded ones dropped first, then the wanted columns decoded, bad messages told apart.

A message that cannot be decoded raises inside Spark with everything a person needs to find it; `runtime.failures` turns
that into a BadRecordError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import DELETE, INSERT, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.connectors.kafka.ingest import field_names, ingest, is_read
from headwater.connectors.kafka.layout import MessageLayout, MessageSide, message_layout
from headwater.formats.base import ChangelogFormat, Decoder, change_name, part_name
from headwater.plan.expression import Expr
from headwater.runtime.failures import BAD_RECORD
from headwater.sql.functions.casts import convert
from headwater.sql.statements import MetadataColumn

__all__ = ["PROBLEM", "Watch", "bad_messages", "decode"]

PROBLEM = "__problem"

# SQL of each metadata key over the columns of Spark's Kafka source.
_METADATA = {
    "topic": "topic",
    "partition": "partition",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestamp-type": "element_at(array('NoTimestampType', 'CreateTime', 'LogAppendTime'), timestampType + 2)",
    "headers": "coalesce(map_from_entries(aggregate(headers, "
    "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>), "
    "(kept, h) -> concat(filter(kept, k -> k.key <> h.key), array(h)))), map())",
    "header-list": "coalesce(headers, array())",
    "leader-epoch": "CAST(NULL AS INT)",
}
_FROM = {  # the column of Spark's Kafka source behind a metadata key
    "topic": "topic",
    "timestamp": "timestamp",
    "timestamp-type": "timestampType",
    "headers": "headers",
    "header-list": "headers",
}


Watch = Callable[[DataFrame, str], DataFrame]
"""Sees messages before the bad ones are left out: those for which the predicate is true."""


def decode(
    raw: DataFrame, table: Table, columns: Sequence[str], watch: Watch | None = None, *, many: bool = False
) -> DataFrame:
    """The wanted columns and, for a changelog source, its kind and where each message stood. A bad message raises, or
    with `watch` is left out. `many` messages go through `ingest` first, which changes nothing but the time it takes."""
    layout = message_layout(table)
    upserts = table.connector.reads_upserts
    sides = _sides(layout, columns, upserts)
    late = upserts and (watch is not None or any(side.options.get("ignore-parse-errors") for side in sides))
    decoded = [_Side(table, layout, side, columns) for side in sides]
    readers = {side.payload: reader for side in decoded if (reader := side.decoder.reader) is not None}
    raw = _without_empty_sides(raw, layout, upserts)
    payloads = {"key", "value"} if upserts else {side.payload for side in decoded}
    if many and watch is None and (readers or (upserts and not late)):
        raw = ingest(
            _needed(raw, table, columns, payloads), readers, keyed=upserts and not late, keeps_payloads=upserts
        )
        raw = _with_topic(raw, table)
    elif upserts and not late:
        raw = _with_topic(_without_superseded(_needed(raw, table, columns, payloads)), table)
    for side in decoded:
        raw = _decoded(raw, side, watch)
    if late:  # a message that gives no row supersedes none
        raw = _without_superseded(raw)
    metadata = {c.name: c for c in table.metadata_columns}
    selected = []
    for name in columns:
        if name in metadata:
            sql = _metadata_sql(metadata[name], table)
        else:
            sql = _source_of(name, layout, upserts)
        selected.append(f"{sql} AS {_quoted(name)}")
    if upserts:
        selected.append(f"CAST(IF(value IS NULL, {DELETE}, {INSERT}) AS TINYINT) AS {KIND}")
    changes = isinstance(layout.value.format, ChangelogFormat)
    if changes:
        selected += [KIND, POSITION]
    if upserts or changes:
        selected += [f"timestamp AS {ORDER}", f"{_place(table)} AS {PARTITION}", f"offset AS {OFFSET}"]
    return raw.selectExpr(*selected)


def bad_messages(raw: DataFrame, table: Table, columns: Sequence[str]) -> DataFrame:
    """The messages that `decode` leaves out because they are bad, whole, with what is wrong as PROBLEM."""
    layout, kept = message_layout(table), [_quoted(c) for c in raw.columns]
    found = raw
    problems, several = [], False
    for side in (_Side(table, layout, s, columns) for s in _sides(layout, columns, table.connector.reads_upserts)):
        decoder = side.decoder
        if decoder.error is not None:
            several = several or decoder.split is not None
            problem = f"IF({_is_bad(decoder, side)}, {decoder.error}, NULL)"
            problems.append(f"{_literal(side.format)} || ': ' || {_quoted(f'__bad_{side.payload}')}")
            found = _parsed(found, decoder, side.payload).selectExpr(
                *(_quoted(c) for c in found.columns), f"{problem} AS {_quoted(f'__bad_{side.payload}')}"
            )
    if not problems:
        return raw.where("false").selectExpr(*kept, f"CAST(NULL AS STRING) AS {PROBLEM}")
    bad = found.selectExpr(*kept, f"coalesce({', '.join(problems)}) AS {PROBLEM}").where(f"{PROBLEM} IS NOT NULL")
    return bad.dropDuplicates(["topic", "partition", "offset"]) if several else bad


def _metadata_sql(column: MetadataColumn, table: Table) -> str:
    """A metadata column as the type that it is declared with."""
    given = next(m.type for m in table.connector.metadata_of(table.raw_options) if m.key == column.key)
    sql = _METADATA.get(column.key) or _quoted(_metadata_alias(column.key))
    value = Expr(sql, given, frozenset(), column.key)
    return f"CAST({convert(value, column.type).sql} AS {column.type.spark()})"


def _place(table: Table) -> str:
    """A number for the partition that offsets are counted in: with several topics there are several of one number."""
    return "partition" if len(table.options.strings("topic")) == 1 else "xxhash64(topic, partition)"


def _without_empty_sides(raw: DataFrame, layout: MessageLayout, upserts: bool) -> DataFrame:
    """A null key or value gives no row in most formats. That must not depend on which columns a query uses. A message
    without a key belongs to no row of an upsert table, and there a null value is a delete."""
    if upserts:
        return raw.where("key IS NOT NULL")
    for payload, side in (("key", layout.key), ("value", layout.value)):
        if side is not None and not side.format.decodes_null:
            raw = raw.where(f"{payload} IS NOT NULL")
    return raw


def _needed(raw: DataFrame, table: Table, columns: Sequence[str], payloads: set[str]) -> DataFrame:
    """The columns of Spark's source that are used later: Python should see nothing else."""
    names = {"partition", "offset", "timestamp", *payloads}
    names |= {_FROM[c.key] for c in table.metadata_columns if c.name in columns and c.key in _FROM}
    if len(table.options.strings("topic")) != 1:
        names.add("topic")
    return raw.selectExpr(*(name for name in raw.columns if name in names))


def _with_topic(messages: DataFrame, table: Table) -> DataFrame:
    if "topic" in messages.columns:
        return messages
    return messages.selectExpr("*", f"{_literal(table.options.strings('topic')[0])} AS topic")


def _without_superseded(raw: DataFrame) -> DataFrame:
    """Of the messages of one key in one partition only the last one counts, so only that is shuffled."""
    return ingest(raw, {}, keyed=True, keeps_payloads=True)


def _sides(layout: MessageLayout, columns: Sequence[str], upserts: bool) -> list[MessageSide]:
    """Those that must be decoded for these columns."""
    return [s for s in (layout.key, layout.value) if s is not None and _used(s, layout, columns, upserts)]


def _used(side: MessageSide, layout: MessageLayout, columns: Sequence[str], upserts: bool) -> bool:
    if side is layout.key:
        return any(name in side.columns and (upserts or name not in layout.value.columns) for name in columns)
    return any(name in side.columns for name in columns) or layout.key is None or not side.format.insert_only


@dataclass(frozen=True)
class _Side:
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


def _decoded(raw: DataFrame, side: _Side, watch: Watch | None) -> DataFrame:
    """`raw` with the columns of one side under `__key_<column>` or `__value_<column>`."""
    payload, decoder = side.payload, side.decoder
    if is_read(payload) in raw.columns:
        decoder = _either(decoder, payload)
    parsed = _parsed(raw, decoder, payload)
    present = f"{payload} IS NULL OR " if side.optional else ""
    if decoder.skip is not None:
        parsed = parsed.where(f"{present}NOT ({decoder.skip})")
    if decoder.error is not None and watch is not None:
        parsed = watch(parsed, _is_bad(decoder, side)).where(f"{present}({decoder.error}) IS NULL")
    elif decoder.error is not None:
        raised = f"CAST(raise_error({_report(decoder.error, side)}) AS BOOLEAN)"
        parsed = parsed.where(f"{present}CASE WHEN ({decoder.error}) IS NULL THEN true ELSE {raised} END")
    names = [
        f"{sql} AS {_quoted(f'__{payload}_{name}')}" for sql, name in zip(decoder.columns, side.wanted, strict=True)
    ]
    names += [
        f"{sql} AS {_quoted(_metadata_alias(key))}" for sql, key in zip(decoder.metadata, side.metadata, strict=True)
    ]
    if decoder.changes is not None:
        one = change_name(f"__{payload}")
        parsed = parsed.selectExpr("*", f"posexplode({decoder.changes}) AS ({POSITION}, {one})")
        names += [POSITION, f"{one}.kind AS {KIND}"]
    return parsed.selectExpr(*(_quoted(c) for c in raw.columns), *names)


def _parsed(raw: DataFrame, decoder: Decoder, payload: str) -> DataFrame:
    if decoder.split is not None:
        raw = raw.selectExpr("*", f"explode({decoder.split}) AS {part_name(f'__{payload}')}")
    for alias, sql in (*decoder.before, (f"__{payload}", decoder.parsed), *decoder.after):
        raw = raw.selectExpr("*", f"{sql} AS {_quoted(alias)}")
    return raw


def _either(decoder: Decoder, payload: str) -> Decoder:
    """For messages of which some are read already: what the reader gave, or else what the expressions give."""
    reader, read = decoder.reader, is_read(payload)
    assert reader is not None
    names = field_names(payload, reader)
    both = zip(reader.columns(names), decoder.columns, strict=True)
    return replace(
        decoder,
        split=decoder.split and f"IF({read}, array(CAST(NULL AS BINARY)), {decoder.split})",
        before=tuple((name, f"IF({read}, NULL, {sql})") for name, sql in decoder.before),
        parsed=f"IF({read}, NULL, {decoder.parsed})",
        after=tuple((name, f"IF({read}, NULL, {sql})") for name, sql in decoder.after),
        skip=decoder.skip and f"NOT {read} AND ({decoder.skip})",
        error=decoder.error and f"IF({read}, {reader.error(names) or 'NULL'}, {decoder.error})",
        columns=tuple(f"IF({read}, {fast}, {slow})" for fast, slow in both),
    )


def _is_bad(decoder: Decoder, side: _Side) -> str:
    skipped = f"coalesce({decoder.skip}, false)" if decoder.skip is not None else "false"
    return f"{side.payload} IS NOT NULL AND NOT {skipped} AND ({decoder.error}) IS NOT NULL"


def _format_metadata(table: Table, columns: Sequence[str]) -> list[str]:
    """The wanted keys of the value's format, without the prefix that tells them from the connector's own."""
    keys = (c.key for c in table.metadata_columns if c.name in columns and c.key not in _METADATA)
    return [key.removeprefix("value.") for key in dict.fromkeys(keys)]


def _metadata_alias(key: str) -> str:
    return f"__metadata_{key.removeprefix('value.')}"


def _report(error: str, side: _Side) -> str:
    facts = {
        "table": _literal(side.table.name),
        "format": _literal(side.format),
        "topic": "topic",
        "partition": "partition",
        "offset": "offset",
        "problem": error,
        "payload": f"substring(CAST({side.payload} AS STRING), 1, 400)",
        "option": _literal(_ignore_option(side)),
    }
    struct = ", ".join(f"'{name}', {sql}" for name, sql in facts.items())
    return f"concat('{BAD_RECORD}', to_json(named_struct({struct})))"


def _ignore_option(side: _Side) -> str:
    """The option that makes the format itself patient; not all have one."""
    if all(option.key != "ignore-parse-errors" for option in side.side.format.options):
        return ""
    prefix = "" if "format" in side.table.raw_options and side.payload == "value" else f"{side.payload}."
    return f"{prefix}{side.side.format.identifier}.ignore-parse-errors"


def _source_of(name: str, layout: MessageLayout, upserts: bool) -> str:
    """Where a column comes from: the key names the row of an upsert; elsewhere the value wins."""
    in_key = layout.key is not None and name in layout.key.columns
    if in_key and (upserts or name not in layout.value.columns):
        return _quoted(f"__key_{name}")
    return _quoted(f"__value_{name}")


def _literal(text: str) -> str:
    # A JSON string is also a Spark SQL string literal: both use double quotes and backslashes.
    return json.dumps(text)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
