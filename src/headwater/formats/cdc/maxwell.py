"""Maxwell's messages in JSON: the row, and of an update what was different before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.formats.base import FormatField
from headwater.formats.cdc.envelope import (
    COMMON_OPTIONS,
    DecodedEnvelope,
    Envelope,
    JsonChangelog,
    JsonMetadata,
    array_of_changes,
    kept_where_unchanged,
)
from headwater.formats.json.decode import parsed_as
from headwater.formats.strings import instant_of
from headwater.options.base import Option
from headwater.sql.spark_text import string_literal
from headwater.sql.types import BIGINT, STRING, SqlType, timestamp_ltz

__all__ = ["MaxwellJsonFormat"]


class MaxwellJsonFormat(JsonChangelog):
    identifier = "maxwell-json"
    summary = "Changes as Maxwell writes them in JSON."
    options: tuple[Option, ...] = COMMON_OPTIONS
    metadata: tuple[JsonMetadata, ...] = (
        JsonMetadata("database", STRING, "Database of the row.", FormatField("database", STRING)),
        JsonMetadata("table", STRING, "Table of the row.", FormatField("table", STRING)),
        JsonMetadata(
            "primary-key-columns",
            SqlType("ARRAY", element=STRING),
            "Columns of the table's primary key.",
            FormatField("primary_key_columns", SqlType("ARRAY", element=STRING)),
        ),
        JsonMetadata(
            "ingestion-timestamp",
            timestamp_ltz(3),
            "When Maxwell processed the change ('ts').",
            FormatField("ts", BIGINT),
            lambda part: instant_of(part, 1_000_000),
        ),
    )

    def envelope(self, row: SqlType, options: Mapping[str, Any]) -> list[FormatField]:
        return [FormatField("data", row), FormatField("old", row), FormatField("type", STRING)]

    def decoded(self, envelope: Envelope, options: Mapping[str, Any]) -> DecodedEnvelope:
        kind, data, old = envelope["type"], envelope["data"], envelope["old"]
        named = f"IF({kind} = 'update', {parsed_as(envelope.text, 'old MAP<STRING, STRING>')}.old, NULL)"
        before = kept_where_unchanged(envelope.row, old, data, envelope.old_names)
        changes = (
            f"CASE {kind} WHEN 'insert' THEN {array_of_changes(insert=data)} "
            f"WHEN 'update' THEN {array_of_changes(before=before, after=data)} "
            f"ELSE {array_of_changes(delete=data)} END"
        )
        problem = (
            f"CASE WHEN {kind} IS NULL OR {kind} NOT IN ('insert', 'update', 'delete') "
            f"""THEN concat('Unknown "type" value "', coalesce({kind}, 'null'), '".') """
            f"""WHEN {data} IS NULL THEN 'The "data" field is null.' """
            f"""WHEN {kind} = 'update' AND {old} IS NULL THEN 'The "old" field of an update is null.' END"""
        )
        return DecodedEnvelope(changes, problem, old_names=named)

    def written(
        self, row: SqlType, before: str | None, after: str | None, options: Mapping[str, Any]
    ) -> list[tuple[FormatField, str]]:
        shown = after if after is not None else before
        assert shown is not None
        kind = "insert" if before is None else "delete" if after is None else "update"
        old = [(FormatField("old", row), before)] if before is not None and after is not None else []
        return [(FormatField("data", row), shown), *old, (FormatField("type", STRING), string_literal(kind))]
