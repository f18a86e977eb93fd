"""Messages → rows: superseded ones dropped first, then the wanted columns decoded, bad messages told apart.

A message that cannot be decoded raises inside Spark with everything a person needs to find it; `runtime.failures` turns
that into a BadRecordError.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.catalog.tables import Table
from headwater.changelog.collapse import keep_last
from headwater.changelog.kinds import DELETE, INSERT, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.connectors.kafka.layout import MessageLayout, MessageSide, message_layout
from headwater.formats.base import ChangelogFormat, Decoder, change_name
from headwater.plan.expression import Expr
from headwater.runtime.failures import BAD_RECORD
from headwater.runtime.keyed import stateless
from headwater.sql.functions.casts import convert
from headwater.sql.statements import MetadataColumn

__all__ = ["decode"]

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


def decode(raw: DataFrame, table: Table, columns: Sequence[str]) -> DataFrame:
    """The wanted columns and, for a changelog source, its kind and where each message stood."""
    layout = message_layout(table)
    upserts = table.connector.reads_upserts
    if upserts:
        raw = _without_superseded(raw)
    sides = [s for s in (layout.key, layout.value) if s is not None and _used(s, layout, columns, upserts)]
    raw = _without_empty_sides(raw, layout, sides, upserts)
    for side in sides:
        raw = _decoded(raw, table, layout, side, columns, upserts)
    metadata = {c.name: c for c in table.metadata_columns}
    changes = isinstance(layout.value.format, ChangelogFormat)
    selected = []
    for name in columns:
        if name in metadata:
            sql = _metadata_sql(metadata[name], table)
        else:
            sql = _source_of(name, layout, upserts)
        selected.append(f"{sql} AS {_quoted(name)}")
    if upserts:
        selected.append(f"CAST(IF(value IS NULL, {DELETE}, {INSERT}) AS TINYINT) AS {KIND}")
    if changes:
        selected += [KIND, POSITION]
    if upserts or changes:
        selected += [f"timestamp AS {ORDER}", f"{_place(table)} AS {PARTITION}", f"offset AS {OFFSET}"]
    return raw.selectExpr(*selected)


def _metadata_sql(column: MetadataColumn, table: Table) -> str:
    """A metadata column as the type that it is declared with."""
    given = next(m.type for m in table.connector.metadata_of(table.raw_options) if m.key == column.key)
    sql = _METADATA.get(column.key) or _quoted(_metadata_alias(column.key))
    value = Expr(sql, given, frozenset(), column.key)
    return f"CAST({convert(value, column.type).sql} AS {column.type.spark()})"


def _place(table: Table) -> str:
    """A number for the partition that offsets are counted in: with several topics there are several of one number."""
    return "partition" if len(table.options.strings("topic")) == 1 else "xxhash64(topic, partition)"


def _without_empty_sides(
    raw: DataFrame, layout: MessageLayout, decoded: Sequence[MessageSide], upserts: bool
) -> DataFrame:
    """A null key or value gives no row in most formats. That must not depend on which columns a query uses."""
    for payload, side in (("key", layout.key), ("value", layout.value)):
        if side is not None and side not in decoded and not upserts and not side.format.decodes_null:
            raw = raw.where(f"{payload} IS NOT NULL")
    return raw


def _without_superseded(raw: DataFrame) -> DataFrame:
    """Of the messages of one key in one partition only the last one counts, so only that is decoded and shuffled. A
    message without a key belongs to no row."""
    raw = raw.where("key IS NOT NULL")
    step = partial(keep_last, key="key", partition="partition", offset="offset")
    return raw.mapInArrow(stateless(step, to_arrow_schema(raw.schema)), raw.schema)


def _used(side: MessageSide, layout: MessageLayout, columns: Sequence[str], upserts: bool) -> bool:
    if side is layout.key:
        return any(name in side.columns and (upserts or name not in layout.value.columns) for name in columns)
    return any(name in side.columns for name in columns) or layout.key is None or not side.format.insert_only


def _decoded(
    raw: DataFrame, table: Table, layout: MessageLayout, side: MessageSide, columns: Sequence[str], upserts: bool
) -> DataFrame:
    """`raw` with the columns of one side under `__key_<column>` or `__value_<column>`."""
    payload = "key" if side is layout.key else "value"
    wanted = [c for c in side.columns if c in columns] or [side.columns[0]]
    fields = [side.field_of(c).name for c in wanted]
    keys = _format_metadata(table, columns) if payload == "value" else []
    decoder = _decoder(side, payload, fields, keys)
    optional = payload == "value" and upserts  # a null value is a delete there, and nothing to decode
    if not optional and not side.format.decodes_null:
        raw = raw.where(f"{payload} IS NOT NULL")
    parsed = raw
    for alias, sql in (*decoder.before, (f"__{payload}", decoder.parsed), *decoder.after):
        parsed = parsed.selectExpr("*", f"{sql} AS {_quoted(alias)}")
    for condition in _conditions(decoder, table, side, payload, optional):
        parsed = parsed.where(condition)
    names = [f"{sql} AS {_quoted(f'__{payload}_{name}')}" for sql, name in zip(decoder.columns, wanted, strict=True)]
    names += [f"{sql} AS {_quoted(_metadata_alias(key))}" for sql, key in zip(decoder.metadata, keys, strict=True)]
    if decoder.changes is not None:
        one = change_name(f"__{payload}")
        parsed = parsed.selectExpr("*", f"posexplode({decoder.changes}) AS ({POSITION}, {one})")
        names += [POSITION, f"{one}.kind AS {KIND}"]
    kept = (_quoted(c) for c in raw.columns)
    return parsed.selectExpr(*kept, *names)


def _decoder(side: MessageSide, payload: str, fields: Sequence[str], metadata: Sequence[str]) -> Decoder:
    alias = f"__{payload}"
    if isinstance(side.format, ChangelogFormat):
        return side.format.change_decoder(payload, alias, side.fields, fields, metadata, side.options)
    return side.format.decoder(payload, alias, side.fields, fields, side.options)


def _format_metadata(table: Table, columns: Sequence[str]) -> list[str]:
    """The wanted keys of the value's format, without the prefix that tells them from the connector's own."""
    keys = (c.key for c in table.metadata_columns if c.name in columns and c.key not in _METADATA)
    return [key.removeprefix("value.") for key in dict.fromkeys(keys)]


def _metadata_alias(key: str) -> str:
    return f"__metadata_{key.removeprefix('value.')}"


def _conditions(decoder: Decoder, table: Table, side: MessageSide, payload: str, optional: bool) -> list[str]:
    """Predicates that keep good messages: what is to be skipped goes silently, what is bad raises."""
    present = f"{payload} IS NULL OR " if optional else ""
    conditions = []
    if decoder.skip is not None:
        conditions.append(f"{present}NOT ({decoder.skip})")
    if decoder.error is not None:
        raised = f"raise_error({_report(decoder.error, table, side, payload)})"
        conditions.append(f"{present}CASE WHEN ({decoder.error}) IS NULL THEN true ELSE CAST({raised} AS BOOLEAN) END")
    return conditions


def _report(error: str, table: Table, side: MessageSide, payload: str) -> str:
    facts = {
        "table": _literal(table.name),
        "format": _literal(f"{side.format.identifier} ({payload})"),
        "topic": "topic",
        "partition": "partition",
        "offset": "offset",
        "problem": error,
        "payload": f"substring(CAST({payload} AS STRING), 1, 400)",
        "option": _literal(_ignore_option(table, side, payload)),
    }
    struct = ", ".join(f"'{name}', {sql}" for name, sql in facts.items())
    return f"concat('{BAD_RECORD}', to_json(named_struct({struct})))"


def _ignore_option(table: Table, side: MessageSide, payload: str) -> str:
    prefix = "" if "format" in table.raw_options and payload == "value" else f"{payload}."
    return f"{prefix}{side.format.identifier}.ignore-parse-errors"


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
