"""Messages → rows: superseded ones dropped first, then the wanted columns decoded, bad messages told apart.

A message that cannot be decoded raises inside Spark with everything a person needs to find it; `runtime.failures` turns
that into a BadRecordError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import DELETE, INSERT, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.connectors.kafka.ingest import Messages, Treatment, field_names, ingest, is_read
from headwater.connectors.kafka.layout import message_layout
from headwater.connectors.kafka.sides import Side, payload_of, present_payloads, used_sides
from headwater.formats.base import (
    ChangelogFormat,
    ColumnReader,
    Decoder,
    RegisteredFormat,
    change_name,
    part_name,
)
from headwater.markers import BAD_RECORD
from headwater.plan.expression import Expr
from headwater.sql.functions.casts import convert
from headwater.sql.statements import MetadataColumn

__all__ = [
    "PROBLEM",
    "Watch",
    "bad_messages",
    "behind_metadata",
    "decode",
    "decoded",
    "decoded_name",
    "needed",
    "reads_in_workers",
    "selected",
    "with_topic",
]

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
    "partition": "partition",
    "offset": "offset",
    "timestamp": "timestamp",
    "timestamp-type": "timestampType",
    "headers": "headers",
    "header-list": "headers",
}


Watch = Callable[[DataFrame, str], DataFrame]
"""Sees messages before the bad ones are left out: those for which the predicate is true."""


def decode(messages: Messages, table: Table, columns: Sequence[str], watch: Watch | None = None) -> DataFrame:
    """The wanted columns and, for a changelog source, its kind and where each message stood. A bad message raises, or
    with `watch` is left out. Many messages go through `ingest` first, which changes nothing but the time it takes."""
    upserts, sides = table.connector.reads_upserts, used_sides(table, columns)
    late = upserts and (watch is not None or any(side.side.options.get("ignore-parse-errors") for side in sides))
    readers = {side.payload: reader for side in sides if (reader := _reader_of_rows(side)) is not None}
    present = present_payloads(table)
    payloads = {"key", "value"} if upserts else {*present, *(side.payload for side in sides)}
    keyed = upserts and not late
    treatment = Treatment(
        needed(messages.frame.columns, table, columns, payloads), present, keyed, keeps_payloads=upserts
    )
    if messages.many and (readers or keyed):
        raw = with_topic(ingest(messages, readers, treatment), table)
    elif keyed:
        raw = with_topic(ingest(messages, {}, treatment), table)
    else:
        raw = messages.frame
        for payload in present:
            raw = raw.where(f"{payload} IS NOT NULL")
    for side in sides:
        raw = decoded(raw, side, watch)
    if late:  # a message that gives no row supersedes none
        raw = ingest(Messages(raw), {}, Treatment(raw.columns, (), keyed=True, keeps_payloads=True))
    return raw.selectExpr(*selected(table, columns))


def selected(table: Table, columns: Sequence[str]) -> list[str]:
    """What `decode` answers, over the columns of the messages and of their decoded sides."""
    metadata = {c.name: c for c in table.metadata_columns}
    items = []
    for name in columns:
        if name in metadata:
            sql = _metadata_sql(metadata[name], table)
        else:
            sql = _quoted(decoded_name(payload_of(name, table), name))
        items.append(f"{sql} AS {_quoted(name)}")
    if table.connector.reads_upserts:
        items.append(f"CAST(IF(value IS NULL, {DELETE}, {INSERT}) AS TINYINT) AS {KIND}")
    if _holds_changes(table):
        items += [KIND, POSITION]
    if table.connector.reads_upserts or _holds_changes(table):
        items += [f"timestamp AS {ORDER}", f"{_place(table)} AS {PARTITION}", f"offset AS {OFFSET}"]
    return items


def decoded_name(payload: str, column: str) -> str:
    """What a column is called while it is only one side's."""
    return f"__{payload}_{column}"


def behind_metadata(table: Table, columns: Sequence[str]) -> set[str]:
    """The columns of Spark's Kafka source that the wanted metadata columns are made of."""
    return {_FROM[c.key] for c in table.metadata_columns if c.name in columns and c.key in _FROM}


def reads_in_workers(table: Table, columns: Sequence[str]) -> bool:
    """Whether `decode` is sure to have many messages fetched where they are decoded. A format with a registry is not:
    what it can read in columns depends on the schemas that it knows by now."""
    sides = [side for side in used_sides(table, columns) if not isinstance(side.side.format, RegisteredFormat)]
    return any(_reader_of_rows(side) is not None for side in sides)


def _reader_of_rows(side: Side) -> ColumnReader | None:
    return side.decoder.reader if side.decoder.changes is None else None


def bad_messages(raw: DataFrame, table: Table, columns: Sequence[str]) -> DataFrame:
    """The messages that `decode` leaves out because they are bad, whole, with what is wrong as PROBLEM."""
    kept = [_quoted(c) for c in raw.columns]
    found = raw
    problems, several = [], False
    for side in used_sides(table, columns):
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


def _holds_changes(table: Table) -> bool:
    return isinstance(message_layout(table).value.format, ChangelogFormat)


def _place(table: Table) -> str:
    """A number for the partition that offsets are counted in: with several topics there are several of one number."""
    return "partition" if len(table.options.strings("topic")) == 1 else "xxhash64(topic, partition)"


def needed(available: Sequence[str], table: Table, columns: Sequence[str], payloads: set[str]) -> list[str]:
    """The columns of Spark's source that are used later: Python should see nothing else. A bad message is named by its
    place; changes are ordered by time, too."""
    names = {"partition", "offset", *payloads}
    if table.connector.reads_upserts or _holds_changes(table):
        names.add("timestamp")
    names |= behind_metadata(table, columns)
    if len(table.options.strings("topic")) != 1:
        names.add("topic")
    return [name for name in available if name in names]


def with_topic(messages: DataFrame, table: Table) -> DataFrame:
    if "topic" in messages.columns:
        return messages
    return messages.selectExpr("*", f"{_literal(table.options.strings('topic')[0])} AS topic")


def decoded(raw: DataFrame, side: Side, watch: Watch | None, over: Decoder | None = None) -> DataFrame:
    """`raw` with the columns of one side under their `decoded_name`. `over`: what it takes, if all are read already."""
    payload, decoder = side.payload, over or side.decoder
    if is_read(payload) in raw.columns:
        parsed, decoder = _with_rest(raw, decoder, payload)
    else:
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
        f"{sql} AS {_quoted(decoded_name(payload, name))}"
        for sql, name in zip(decoder.columns, side.wanted, strict=True)
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
    for name, sql in decoder.steps(f"__{payload}"):
        raw = raw.selectExpr("*", f"{sql} AS {_quoted(name)}")
    return raw


def _with_rest(raw: DataFrame, decoder: Decoder, payload: str) -> tuple[DataFrame, Decoder]:
    """For messages of which some are read already. What the expressions give for the rest is one column, NULL for those
    that are read: each step of decoding as a projection of its own would copy the rows that need none of it."""
    reader, read, rest = decoder.reader, is_read(payload), f"__{payload}_rest"
    assert reader is not None
    skip, error = decoder.skip or "false", decoder.error or "CAST(NULL AS STRING)"
    columns = [f"{sql} AS c{i}" for i, sql in enumerate(decoder.columns)]
    row = decoder.whole(f"__{payload}", f"struct({skip} AS skip, {error} AS error, {', '.join(columns)})")
    if decoder.split is None:
        raw = raw.selectExpr("*", f"IF({read}, NULL, {row}) AS {rest}")
    else:
        rows = f"transform({decoder.split}, {part_name(f'__{payload}')} -> {row})"
        raw = raw.selectExpr("*", f"IF({read}, NULL, {rows}) AS {rest}_rows")
        raw = raw.selectExpr("*", f"explode_outer({rest}_rows) AS {rest}")
    names = field_names(payload, reader)
    return raw, Decoder(
        rest,
        tuple(f"IF({read}, {fast}, {rest}.c{i})" for i, fast in enumerate(reader.columns(names))),
        error=decoder.error and f"IF({read}, {reader.error(names) or 'NULL'}, {rest}.error)",
        skip=f"NOT {read} AND ({rest} IS NULL OR {rest}.skip)",
    )


def _is_bad(decoder: Decoder, side: Side) -> str:
    skipped = f"coalesce({decoder.skip}, false)" if decoder.skip is not None else "false"
    return f"{side.payload} IS NOT NULL AND NOT {skipped} AND ({decoder.error}) IS NOT NULL"


def _metadata_alias(key: str) -> str:
    return f"__metadata_{key.removeprefix('value.')}"


def _report(error: str, side: Side) -> str:
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


def _ignore_option(side: Side) -> str:
    """The option that makes the format itself patient; not all have one."""
    if all(option.key != "ignore-parse-errors" for option in side.side.format.options):
        return ""
    prefix = "" if "format" in side.table.raw_options and side.payload == "value" else f"{side.payload}."
    return f"{prefix}{side.side.format.identifier}.ignore-parse-errors"


def _literal(text: str) -> str:
    # A JSON string is also a Spark SQL string literal: both use double quotes and backslashes.
    return json.dumps(text)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
