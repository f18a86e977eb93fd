"""Spark SQL over what a task reads: conversions, the messages that column readers refused, and bad messages.

    1. What the expressions of a format give for a refused message is one column, NULL for rows that were read. As
       projections one behind the other these steps would copy the rows that need none of them. Where there is no column
       reader every row needs them, and they are projections, which Spark compiles.
    2. A message that gives no row is left out, a bad one raises, or is counted and left out.
    3. Every column is taken from one or the other.

A bad message raises inside Spark with everything a person needs to find it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headwater.catalog.connector import Emits
from headwater.catalog.tables import Table
from headwater.changelog.kinds import KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.changelog.operator import ORIGIN
from headwater.connectors.kafka.read.payloads import WantedPayload, holds_changes, payload_of
from headwater.connectors.kafka.read.reader import MESSAGE, READ
from headwater.connectors.runtime import PLACE
from headwater.error_markers import BAD_RECORD
from headwater.formats.base import Decoder, change_name
from headwater.sql.functions.casts import convert
from headwater.sql.spark_text import once, quote_name, string_literal
from headwater.sql.statements import MetadataColumn
from headwater.sql.typed import Expr

__all__ = ["BAD", "PROBLEM", "REST", "RowExpressions", "carried_columns", "only_topic"]

BAD = "bad"
"""The observed metric that counts bad messages."""
PROBLEM = "__hw_problem"
REST = "__hw_rest"

_NO_HEADERS = "CAST(array() AS ARRAY<STRUCT<key: STRING, value: BINARY>>)"
_LAST_OF_A_NAME = "(kept, h) -> concat(filter(kept, k -> k.key <> h.key), array(h))"

# SQL of each metadata key over the columns of messages, as Spark's Kafka source names them, and which one that is.
_METADATA = {
    "topic": ("topic", "topic"),
    "partition": ("partition", "partition"),
    "offset": ("offset", "offset"),
    "timestamp": ("timestamp", "timestamp"),
    "timestamp-type": (
        "element_at(array('NoTimestampType', 'CreateTime', 'LogAppendTime'), timestampType + 2)",
        "timestampType",
    ),
    "headers": (
        f"coalesce(map_from_entries(aggregate(headers, {_NO_HEADERS}, {_LAST_OF_A_NAME})), map())",
        "headers",
    ),
    "header-list": ("coalesce(headers, array())", "headers"),
    "leader-epoch": ("CAST(NULL AS INT)", ""),
}


def carried_columns(table: Table, columns: Sequence[str], *, placed: bool = False, ordered: bool = True) -> list[str]:
    """The columns of messages that rows need besides what is read of their payloads."""
    metadata = [c for c in table.metadata_columns if c.name in columns]
    names = {_METADATA[c.key][1] for c in metadata if c.key in _METADATA}
    names |= {"topic", "partition"} if placed else set()
    names |= {"offset"} if placed and keeps_late_rows(table) else set()
    if ordered and (table.connector.reads_upserts or holds_changes(table)):
        names |= {"timestamp", "partition", "offset", "topic"}
    # A table of one topic needs no string per row to know which one it is.
    if only_topic(table) is not None:
        names -= {"topic"}
    return [name for name in ("topic", "partition", "offset", "timestamp", "timestampType", "headers") if name in names]


def keeps_late_rows(table: Table) -> bool:
    """Whether messages whose rows come too late are written to the dead-letter topic. A late change of a changelog is
    more than its message: what it changes, too."""
    return bool(table.options.string("scan.dead-letter.topic")) and table.connector.gives(table) is Emits.APPEND


def only_topic(table: Table) -> str | None:
    topics = table.options.strings("topic")
    return topics[0] if len(topics) == 1 else None


@dataclass(frozen=True)
class _Rows:
    """SQL of one payload's rows, whoever has read them: as the members of `Decoder`."""

    skip: str
    error: str
    columns: tuple[str, ...]
    metadata: tuple[str, ...]
    changes: str | None


PayloadRows = list[tuple[WantedPayload, _Rows]]


@dataclass(frozen=True)
class RowExpressions:
    """For the wanted columns of a table, out of these `payloads`. With a `metric`, bad messages are counted under that
    name and left out. Columns that are `kept` stay beside the wanted ones; `placed` rows have PLACE, and ORIGIN if
    they are to be kept when they come too late. Changes have order columns if they are `ordered`."""

    table: Table
    columns: tuple[str, ...]
    payloads: tuple[WantedPayload, ...]
    metric: str = ""
    kept: tuple[str, ...] = ()
    placed: bool = False
    ordered: bool = True

    def rows(self, frame: DataFrame) -> DataFrame:
        """The wanted columns and, for a changelog source, its kind and order columns."""
        frame, payloads = self._decoded(frame)
        frame = self._checked(frame, payloads)
        frame, payloads = _with_changes(frame, payloads)
        return frame.selectExpr(*self._selected(payloads))

    def bad(self, frame: DataFrame, kept: Sequence[str]) -> DataFrame:
        """Of the rows of bad messages the columns `kept`, and what is wrong as PROBLEM."""
        frame, payloads = self._decoded(frame)
        problems = [f"{string_literal(p.format)} || ': ' || ({rows.error})" for p, rows in payloads]
        return frame.where(_is_bad(payloads)).selectExpr(*kept, f"coalesce({', '.join(problems)}) AS {PROBLEM}")

    @property
    def can_fail(self) -> bool:
        return any(p.decoder.error is not None for p in self.payloads)

    def _decoded(self, frame: DataFrame) -> tuple[DataFrame, PayloadRows]:
        if all(p.reader is not None for p in self.payloads):
            return _with_rest(frame, self.payloads)
        return _without_readers(frame, self.payloads)

    def _checked(self, frame: DataFrame, payloads: PayloadRows) -> DataFrame:
        """Without the messages that give no row."""
        if self.metric and self.can_fail:
            # Counted on the way by Spark itself: a second pass over the messages is made only if there are any bad
            # ones.
            counted = F.expr(f"count_if({_is_bad(payloads)})").alias(BAD)
            frame = frame.observe(self.metric, counted)
        cases = []
        for payload, rows in payloads:
            if rows.skip != "false":
                cases.append(f"WHEN {rows.skip} THEN false")
            if payload.decoder.error is not None:
                message = f"{MESSAGE}[0]" if MESSAGE in frame.columns else f"{REST}.message"
                raised = f"CAST(raise_error({self._report(payload, rows.error, message)}) AS BOOLEAN)"
                cases.append(f"WHEN ({rows.error}) IS NOT NULL THEN {'false' if self.metric else raised}")
        if not cases:
            return frame
        # Rows that were read as columns have nothing to check: this keeps the whole CASE out of their way.
        read = f"{REST} IS NULL OR " if REST in frame.columns and not any(p.fallible for p, _ in payloads) else ""
        return frame.where(f"{read}CASE {' '.join(cases)} ELSE true END")

    def _selected(self, payloads: PayloadRows) -> list[str]:
        metadata = {c.name: c for c in self.table.metadata_columns}
        found = {p.name: dict(zip(p.wanted, rows.columns, strict=True)) for p, rows in payloads}
        formats = {key: sql for p, rows in payloads for key, sql in zip(p.metadata, rows.metadata, strict=True)}
        items = []
        for name in self.columns:
            if name in metadata:
                sql = self._metadata_sql(metadata[name], formats)
            else:
                sql = found[payload_of(name, self.table)][name]
            items.append(f"{sql} AS {quote_name(name)}")
        upserts, changes = self.table.connector.reads_upserts, holds_changes(self.table)
        items += [KIND] if upserts or changes else []
        if self.ordered and (upserts or changes):
            items += [f"timestamp AS {ORDER}", f"{self._partition} AS {PARTITION}", f"offset AS {OFFSET}"]
            items += [POSITION] if changes else []
        if self.placed:
            place = "partition" if only_topic(self.table) is not None else "concat(topic, ':', partition)"
            items.append(f"{place} AS {PLACE}")
        if self.placed and keeps_late_rows(self.table):
            topic = only_topic(self.table)
            items.append(
                f"concat({string_literal(topic) if topic else 'topic'}, ':', partition, ':', offset) AS {ORIGIN}"
            )
        return [*items, *map(quote_name, self.kept)]

    @property
    def _partition(self) -> str:
        """A number for the partition that offsets are counted in: several topics have several of one number."""
        return "partition" if only_topic(self.table) is not None else "xxhash64(topic, partition)"

    def _metadata_sql(self, column: MetadataColumn, formats: dict[str, str]) -> str:
        """A metadata column as the type that it is declared with."""
        given = next(m.type for m in self.table.connector.metadata_of(self.table.raw_options) if m.key == column.key)
        topic = only_topic(self.table)
        if column.key == "topic" and topic is not None:
            sql = string_literal(topic)
        elif column.key in _METADATA:
            sql = _METADATA[column.key][0]
        else:
            sql = formats[column.key.removeprefix("value.")]
        return f"CAST({convert(Expr(sql, given, frozenset(), column.key), column.type).sql} AS {column.type.spark()})"

    def _report(self, payload: WantedPayload, error: str, message: str) -> str:
        topic = only_topic(self.table)
        facts = {
            "table": string_literal(self.table.name),
            "format": string_literal(payload.format),
            "topic": string_literal(topic) if topic is not None else f"{message}.topic",
            "partition": f"{message}.partition",
            "offset": f"{message}.offset",
            "problem": error,
            "payload": f"substring(CAST({message}.{payload.name} AS STRING), 1, 400)",
            "option": string_literal(payload.ignore_option),
        }
        struct = ", ".join(f"'{name}', {sql}" for name, sql in facts.items())
        return f"concat('{BAD_RECORD}', to_json(named_struct({struct})))"


def _with_rest(frame: DataFrame, payloads: Sequence[WantedPayload]) -> tuple[DataFrame, PayloadRows]:
    """For messages that column readers have read, but for some."""
    fallible = any(p.fallible for p in payloads)
    refused = f"{MESSAGE} IS NOT NULL AND NOT {MESSAGE}[0].{READ}" if fallible else f"{MESSAGE} IS NOT NULL"
    rests = ", ".join([f"{MESSAGE}[0] AS message", *(f"{_rest_of(p)} AS {p.name}" for p in payloads)])
    # Over names of which some are made of the message.
    stepped = any(p.decoder.over is not None and not p.decoder.sound for p in payloads)
    kept = [quote_name(c) for c in frame.columns if c != MESSAGE or fallible or stepped]
    # One column for everything: NULL for a row that was read costs nothing, where many nullable columns would be
    # copied by every projection.
    frame = frame.selectExpr(*kept, once(f"IF({refused}, struct({rests}), NULL)") + f" AS {REST}")
    found = []
    for payload in payloads:
        frame, read = _read_rows(frame, payload)
        found.append((payload, _either(payload, read)))
    return frame, found


def _rest_of(payload: WantedPayload) -> str:
    """All that the expressions give for one message, as a struct."""
    decoder, alias, data = payload.decoder, payload.alias, f"{MESSAGE}[0].{payload.name}"
    members = [f"{decoder.skip or 'false'} AS skip", f"{decoder.error or 'CAST(NULL AS STRING)'} AS error"]
    members += [f"{sql} AS m{i}" for i, sql in enumerate(decoder.metadata)]
    if decoder.changes is None:
        members += [f"{sql} AS c{i}" for i, sql in enumerate(decoder.columns)]
    else:
        members.append(f"{decoder.changes} AS changes")
    body = decoder.whole(alias, f"struct({', '.join(members)})")
    # A lambda binds the payload to a name: Spark would otherwise copy the whole expression into every use of it.
    row = f"element_at(transform(array({data}), {payload.bytes_name} -> {body}), 1)"
    return f"IF({data} IS NULL, NULL, {row})" if payload.optional else row


def _read_rows(frame: DataFrame, payload: WantedPayload) -> tuple[DataFrame, Decoder]:
    """What becomes of the columns that a reader has read."""
    assert payload.reader is not None
    if payload.decoder.over is None:
        columns, error = payload.reader.columns(payload.names), payload.reader.error(payload.names)
        return frame, Decoder("", columns, error=error)
    over = payload.decoder.over(payload.names)
    if not payload.decoder.sound:
        frame = frame.selectExpr("*", f"{MESSAGE}[0].{payload.name} AS {payload.bytes_name}")
    return _stepped(frame, over, payload.alias), over


def _either(payload: WantedPayload, read: Decoder) -> _Rows:
    rest = f"{REST}.{payload.name}"
    refused = f"{REST} IS NOT NULL"
    changes = None
    if read.changes is not None:
        changes = f"IF({refused}, {rest}.changes, {read.changes})"
    return _Rows(
        skip=f"IF({refused}, coalesce({rest}.skip, false), {read.skip or 'false'})",
        error=f"IF({refused}, {rest}.error, {read.error or 'NULL'})",
        columns=read.columns
        if changes is not None
        else tuple(f"IF({refused}, {rest}.c{i}, {sql})" for i, sql in enumerate(read.columns)),
        metadata=tuple(f"IF({refused}, {rest}.m{i}, {sql})" for i, sql in enumerate(read.metadata)),
        changes=changes,
    )


def _without_readers(frame: DataFrame, payloads: Sequence[WantedPayload]) -> tuple[DataFrame, PayloadRows]:
    """For messages that are all left to the expressions."""
    found = []
    for payload in payloads:
        decoder = payload.decoder
        frame = frame.selectExpr("*", f"{MESSAGE}[0].{payload.name} AS {payload.bytes_name}")
        frame = _stepped(frame, decoder, payload.alias)
        # A payload that may be missing (the value of a tombstone) is no bad message.
        there = f"{payload.bytes_name} IS NOT NULL AND " if payload.optional else ""
        rows = _Rows(
            skip=f"{there}coalesce({decoder.skip}, false)" if decoder.skip is not None else "false",
            error=decoder.error or "CAST(NULL AS STRING)",
            columns=decoder.columns,
            metadata=decoder.metadata,
            changes=decoder.changes,
        )
        if payload.optional:
            rows = replace(rows, error=f"IF({payload.bytes_name} IS NULL, NULL, {rows.error})")
        found.append((payload, rows))
    return frame, found


def _stepped(frame: DataFrame, decoder: Decoder, alias: str) -> DataFrame:
    for name, sql in decoder.steps(alias):
        frame = frame.selectExpr("*", f"{sql} AS {quote_name(name)}")
    return frame


def _with_changes(frame: DataFrame, payloads: PayloadRows) -> tuple[DataFrame, PayloadRows]:
    """One row for every change of a message."""
    for payload, rows in payloads:
        if rows.changes is not None:
            one = change_name(payload.alias)
            # posexplode, because the order of the changes in a message is part of their order in the partition.
            frame = frame.selectExpr("*", f"posexplode({rows.changes}) AS ({POSITION}, {one})")
            frame = frame.selectExpr("*", f"{one}.kind AS {KIND}")
    return frame, payloads


def _is_bad(payloads: PayloadRows) -> str:
    """Whether some payload of a message is bad, and none before it says that there is no row."""
    cases = []
    for payload, rows in payloads:
        if rows.skip != "false":
            cases.append(f"WHEN {rows.skip} THEN false")
        if payload.decoder.error is not None:
            cases.append(f"WHEN ({rows.error}) IS NOT NULL THEN true")
    return f"CASE {' '.join(cases)} ELSE false END" if cases else "false"
