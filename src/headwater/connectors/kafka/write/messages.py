"""Rows → messages: what Kafka gets for each change, as columns of a DataFrame.

key, value  bytes, or NULL
topic       where rows name their topic
headers     where a column writes them, and with 'sink.changelog' = 'retract' the kind of the change
timestamp   milliseconds, where a column writes it
row         a hash of the primary key where that is not the key: the changes of a row must stay in order
record      the row itself, for a partitioner class of the user's
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.changelog.kinds import INSERT, KIND, RETRACTED, SHORT_NAMES
from headwater.connectors.kafka.table.layout import MessageLayout, PayloadLayout, message_layout
from headwater.connectors.kafka.table.options import names_its_topics
from headwater.connectors.kafka.write.partitions import RECORD, ROW
from headwater.connectors.sink_rows import OLD, checked_not_null, with_old_rows
from headwater.error_markers import RAISED
from headwater.formats.base import ChangelogFormat, RowChange
from headwater.sql.spark_text import field_of, quote_name, string_literal

__all__ = ["messages", "pairs_updates", "writes_timestamps"]

ROWKIND = "rowkind"

_HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"


def messages(rows: DataFrame, table: Table, *, with_record: bool = False) -> DataFrame:
    """One message per change: the row, or for a delete a null value.

    With 'sink.changelog' = 'retract' a `kafka` table has the retracted row as its value; in an `upsert-kafka` table a
    null value still deletes a key. A changelog format writes changes in its own way.
    """
    layout = message_layout(table)
    changing = KIND in rows.columns
    rows = checked_not_null(rows, table)
    if changing and table.options.flag("sink.ignore-retractions"):
        rows = rows.where(f"NOT {RETRACTED}")
    if changing and pairs_updates(table):
        rows = with_old_rows(rows, table.primary_key)
    columns = {"value": _value(table, layout, rows.columns)}
    if layout.key is not None:
        columns["key"] = _encoded(layout.key)
    elif table.primary_key:
        columns[ROW] = f"hash({', '.join(map(quote_name, table.primary_key))})"
    columns |= _metadata(table, rows.columns)
    if with_record:
        fields = ", ".join(f"{string_literal(c)}, {quote_name(c)}" for c in rows.columns if c not in (KIND, OLD))
        columns[RECORD] = f"named_struct({fields})"
    return rows.selectExpr(*(f"{sql} AS {name}" for name, sql in columns.items()))


def pairs_updates(table: Table) -> bool:
    """Whether the old and the new row of an update are in one message: the format says so. All changes of a primary
    key must then be in one task."""
    value = message_layout(table).value
    return isinstance(value.format, ChangelogFormat) and value.format.writes_updates(value.options)


def writes_timestamps(table: Table) -> bool:
    return "timestamp" in _written(table)


def _value(table: Table, layout: MessageLayout, given: Collection[str]) -> str:
    """`given` are the columns of the rows: KIND is one of them if there are changes, OLD if updates are pairs."""
    format_, changing = layout.value.format, KIND in given
    if changing and isinstance(format_, ChangelogFormat):
        return _change(layout.value, format_, given)
    value = _encoded(layout.value)
    retracted_as_rows = _retracts(table) and table.connector.identifier == "kafka"
    # Here tombstones are made: a NULL becomes Kafka's null value.
    return f"IF({RETRACTED}, NULL, {value})" if changing and not retracted_as_rows else value


def _change(side: PayloadLayout, format_: ChangelogFormat, given: Collection[str]) -> str:
    """A message that says itself what has changed: an update is two of them, or one with OLD rows beside new ones."""
    row = [quote_name(c) for c in side.columns]
    deleted = format_.change_encoder(RowChange(side.fields, row, None), side.options)
    added = format_.change_encoder(RowChange(side.fields, None, row), side.options)
    if OLD not in given:
        return f"IF({RETRACTED}, {deleted}, {added})"
    old = [field_of(OLD, c) for c in side.columns]
    updated = format_.change_encoder(RowChange(side.fields, old, row), side.options)
    return f"CASE WHEN {OLD} IS NOT NULL THEN {updated} WHEN {RETRACTED} THEN {deleted} ELSE {added} END"


def _retracts(table: Table) -> bool:
    return table.options.string("sink.changelog") == "retract"


def _topic_of(table: Table) -> str:
    """SQL of a row's topic, which must be one of the table's."""
    column = quote_name(_written(table)["topic"])
    topics, pattern = table.options.strings("topic"), table.options.string("topic-pattern")
    if pattern:
        # RLIKE finds a match anywhere; the pattern has to match the whole name.
        valid = f"{column} RLIKE {string_literal(f'^(?:{pattern})$')}"
        expected = f"to match: {pattern}"
    else:
        valid = f"{column} IN ({', '.join(map(string_literal, topics))})"
        expected = f"to be in: [{', '.join(topics)}]"
    text = f"The topic of a row of table '{table.name}' is not valid. Expected topic {expected} but was: "
    raised = f"raise_error(concat({string_literal(RAISED + text)}, coalesce({column}, 'NULL')))"
    return f"IF(coalesce({valid}, false), {column}, {raised})"


def _metadata(table: Table, given: Collection[str]) -> dict[str, str]:
    written = _written(table)
    columns = {}
    if "topic" in written and names_its_topics(table.options):
        columns["topic"] = _topic_of(table)
    headers = _headers(table, given)
    if headers:
        columns["headers"] = f"concat({', '.join(headers)})"
    if writes_timestamps(table):
        columns["timestamp"] = _time_of(table)
    return columns


def _time_of(table: Table) -> str:
    """SQL of a message's time. To Kafka a negative number is none, and to librdkafka 0 is the time of writing."""
    millis = f"unix_millis(CAST({quote_name(_written(table)['timestamp'])} AS TIMESTAMP))"
    text = f"The time of a message must be later than 1970-01-01 00:00:00 UTC; in a row of table '{table.name}' it is "
    raised = f"raise_error(concat({string_literal(RAISED + text)}, {millis}, ' ms after that.'))"
    return f"IF({millis} <= 0, {raised}, {millis})"


def _headers(table: Table, given: Collection[str]) -> list[str]:
    """Those of the row, and the kind of the change if it is asked for. A header without a name is none."""
    written = _written(table)
    parts = []
    if "headers" in written:
        parts.append(f"map_entries(CAST({quote_name(written['headers'])} AS MAP<STRING, BINARY>))")
    if "header-list" in written:
        # Whatever the declared fields are called: structs are cast by position.
        parts.append(f"CAST({quote_name(written['header-list'])} AS {_HEADERS})")
    named = "e -> named_struct('key', e.key, 'value', e.value)"
    # `concat` of arrays is NULL if one of them is: a row without headers must not lose the kind of its change.
    parts = [f"coalesce(transform(filter({p}, e -> e.key IS NOT NULL), {named}), array())" for p in parts]
    if _retracts(table):
        names = ", ".join(f"'{name}'" for name in SHORT_NAMES)
        kind = f"element_at(array({names}), {KIND} + 1)" if KIND in given else f"'{SHORT_NAMES[INSERT]}'"
        parts.append(f"array(named_struct('key', '{ROWKIND}', 'value', CAST({kind} AS BINARY)))")
    return parts


def _written(table: Table) -> Mapping[str, str]:
    """Metadata key → column, of those that are written."""
    return {c.key: c.name for c in table.metadata_columns if not c.virtual}


def _encoded(side: PayloadLayout) -> str:
    columns: Sequence[str] = [quote_name(c) for c in side.columns]
    return side.format.encoder(side.fields, columns, side.options)
