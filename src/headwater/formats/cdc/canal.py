"""Canal's messages in JSON: rows of one statement, and of an update what was different before, row by row.

Canal writes all values as text, so they are read as text at once.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import FormatField
from headwater.formats.cdc.envelope import (
    COMMON_OPTIONS,
    DecodedEnvelope,
    Envelope,
    JsonChangelog,
    JsonMetadata,
    change,
    kept_where_unchanged,
)
from headwater.formats.json.decode import parsed_as
from headwater.formats.json.scalars import LENIENT, Scalars
from headwater.formats.strings import instant_of
from headwater.options.base import Option
from headwater.options.types import STRING as TEXT
from headwater.sql.spark_text import string_literal
from headwater.sql.types import BIGINT, INT, STRING, SqlType, timestamp_ltz

__all__ = ["CanalJsonFormat"]

_FILTERS = {"database.include": "database", "table.include": "table"}


def _millis(key: str, meaning: str, source: str) -> JsonMetadata:
    read = FormatField(source, BIGINT)
    return JsonMetadata(key, timestamp_ltz(3), meaning, read, lambda part: instant_of(part, 1_000))


class CanalJsonFormat(JsonChangelog):
    identifier = "canal-json"
    summary = "Changes as Canal writes them in JSON."
    options: tuple[Option, ...] = (
        *COMMON_OPTIONS,
        Option("database.include", TEXT, "Regular expression for databases; changes of others are skipped."),
        Option("table.include", TEXT, "Regular expression for tables; changes of others are skipped."),
    )
    metadata: tuple[JsonMetadata, ...] = (
        JsonMetadata("database", STRING, "Database of the row.", FormatField("database", STRING)),
        JsonMetadata("table", STRING, "Table of the row.", FormatField("table", STRING)),
        JsonMetadata(
            "sql-type",
            SqlType("MAP", key=STRING, element=INT),
            "Numbers of the columns' types in java.sql.Types.",
            FormatField("sqlType", SqlType("MAP", key=STRING, element=INT)),
        ),
        JsonMetadata(
            "pk-names",
            SqlType("ARRAY", element=STRING),
            "Columns of the table's primary key.",
            FormatField("pkNames", SqlType("ARRAY", element=STRING)),
        ),
        _millis("ingestion-timestamp", "When Canal processed the change ('ts').", "ts"),
        _millis("event-timestamp", "When the change was made in the database ('es').", "es"),
    )

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = super().validate(fields, options)
        for key in _FILTERS:
            try:
                re.compile(options[key] or "")
            except re.error as error:
                problems.append(f"'{key}' is no regular expression: {error}.")
        return problems

    def scalars(self, options: Mapping[str, Any]) -> tuple[Scalars, Scalars]:
        del options
        return LENIENT, LENIENT

    def envelope(self, row: SqlType, options: Mapping[str, Any]) -> list[FormatField]:
        rows = SqlType("ARRAY", element=row)
        filtered = [FormatField(_FILTERS[key], STRING) for key in _FILTERS if options[key] is not None]
        return [FormatField("data", rows), FormatField("old", rows), FormatField("type", STRING), *filtered]

    def decoded(self, envelope: Envelope, options: Mapping[str, Any]) -> DecodedEnvelope:
        kind, data, old = envelope["type"], envelope["data"], envelope["old"]
        # `old` has only the members that changed. Parsed as a row, one that was NULL looks like one that did not
        # change: so it is parsed once more, as a map.
        members = parsed_as(envelope.text, "old ARRAY<MAP<STRING, STRING>>")
        named = f"IF({kind} = 'UPDATE', {members}.old, NULL)"
        before = kept_where_unchanged(envelope.row, f"get({old}, i)", "new", f"get({envelope.old_names}, i)")
        pairs = f"transform({data}, (new, i) -> array({change('before', before)}, {change('after', 'new')}))"
        changes = (
            f"CASE {kind} WHEN 'INSERT' THEN transform({data}, new -> {change('insert', 'new')}) "
            f"WHEN 'UPDATE' THEN flatten({pairs}) "
            f"WHEN 'DELETE' THEN transform({data}, new -> {change('delete', 'new')}) END"
        )
        problem = (
            f"CASE WHEN {kind} = 'CREATE' THEN NULL "
            f"WHEN {kind} IS NULL OR {kind} NOT IN ('INSERT', 'UPDATE', 'DELETE') "
            f"""THEN concat('Unknown "type" value "', coalesce({kind}, 'null'), '".') """
            f"""WHEN {data} IS NULL OR exists({data}, r -> r IS NULL) THEN 'The "data" field is null.' """
            f"WHEN {kind} = 'UPDATE' "
            f"AND ({old} IS NULL OR size({old}) < size({data}) OR exists({old}, r -> r IS NULL)) "
            """THEN 'The "old" field of an UPDATE does not have a row for each row of "data".' END"""
        )
        return DecodedEnvelope(changes, problem, self._other(envelope, options), named)

    def _other(self, envelope: Envelope, options: Mapping[str, Any]) -> str:
        others = [
            f"coalesce(NOT {envelope[name]} RLIKE {string_literal(f'^(?:{options[key]})$')}, false)"
            for key, name in _FILTERS.items()
            if options[key] is not None
        ]
        return " OR ".join(others) or "false"

    def written(
        self, row: SqlType, before: str | None, after: str | None, options: Mapping[str, Any]
    ) -> list[tuple[FormatField, str]]:
        rows = SqlType("ARRAY", element=row)
        shown = after if after is not None else before
        kind = "INSERT" if before is None else "DELETE" if after is None else "UPDATE"
        old = [(FormatField("old", rows), f"array({before})")] if before is not None and after is not None else []
        return [
            (FormatField("data", rows), f"array({shown})"),
            *old,
            (FormatField("type", STRING), string_literal(kind)),
        ]
