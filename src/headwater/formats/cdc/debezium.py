"""Debezium's messages in JSON: what a row was, what it is, and which operation made it so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import FormatField
from headwater.formats.cdc.debezium_values import TIME_OPTIONS, debezium_scalars
from headwater.formats.cdc.envelope import (
    COMMON_OPTIONS,
    DecodedEnvelope,
    Envelope,
    JsonChangelog,
    JsonMetadata,
    array_of_changes,
)
from headwater.formats.cdc.sound_changes import OperationCodes
from headwater.formats.json.scalars import Scalars
from headwater.formats.strings import instant_of
from headwater.options.base import Option
from headwater.options.types import BOOL
from headwater.sql.spark_text import string_literal
from headwater.sql.types import BIGINT, STRING, SqlType, timestamp_ltz

__all__ = ["DebeziumJsonFormat", "before_and_after", "written_before_and_after"]

_SOURCE = FormatField("source", SqlType("MAP", key=STRING, element=STRING))


def _of_source(*keys: str) -> str:
    return f"coalesce({', '.join(f'try_element_at({{part}}, {string_literal(key)})' for key in keys)})"


def _source_metadata(key: str, kind: SqlType, meaning: str, sql: str) -> JsonMetadata:
    return JsonMetadata(key, kind, meaning, _SOURCE, lambda part: sql.replace("{part}", part))


class DebeziumJsonFormat(JsonChangelog):
    identifier = "debezium-json"
    summary = "Changes as Debezium writes them in JSON."
    options: tuple[Option, ...] = (
        Option(
            "schema-include",
            BOOL,
            "Whether messages carry their schema: {'schema': …, 'payload': …}. Only for reading.",
            False,
        ),
        *COMMON_OPTIONS,
        *TIME_OPTIONS,
    )
    metadata: tuple[JsonMetadata, ...] = (
        JsonMetadata(
            "schema",
            STRING,
            "Schema of the message, if it carries one, as JSON.",
            FormatField("schema", STRING),
            outside=True,
        ),
        JsonMetadata(
            "ingestion-timestamp",
            timestamp_ltz(3),
            "When Debezium processed the change ('ts_ms').",
            FormatField("ts_ms", BIGINT),
            lambda part: instant_of(part, 1_000),
        ),
        _source_metadata(
            "source.timestamp",
            timestamp_ltz(3),
            "When the change was made in the database.",
            instant_of(f"TRY_CAST({_of_source('ts_ms')} AS BIGINT)", 1_000),
        ),
        _source_metadata("source.database", STRING, "Database of the row.", _of_source("db")),
        _source_metadata("source.schema", STRING, "Schema of the row in the database.", _of_source("schema")),
        _source_metadata("source.table", STRING, "Table or collection of the row.", _of_source("table", "collection")),
        _source_metadata("source.properties", _SOURCE.type, "All that the message says about its source.", "{part}"),
    )

    def around(self, options: Mapping[str, Any]) -> str:
        return "payload" if options["schema-include"] else ""

    def scalars(self, options: Mapping[str, Any]) -> tuple[Scalars, Scalars]:
        return debezium_scalars(options)

    def envelope(self, row: SqlType, options: Mapping[str, Any]) -> list[FormatField]:
        return [FormatField("before", row), FormatField("after", row), FormatField("op", STRING)]

    def decoded(self, envelope: Envelope, options: Mapping[str, Any]) -> DecodedEnvelope:
        return before_and_after(envelope, "op", {"insert": ("c", "r"), "update": ("u",), "delete": ("d",)}, "Debezium")

    def written(
        self, row: SqlType, before: str | None, after: str | None, options: Mapping[str, Any]
    ) -> list[tuple[FormatField, str]]:
        return written_before_and_after(row, before, after, "op", ("c", "u", "d"))


def before_and_after(envelope: Envelope, op: str, codes: Mapping[str, Sequence[str]], product: str) -> DecodedEnvelope:
    """Both rows are in the message, and a code says what happened."""
    code, before, after = envelope[op], envelope["before"], envelope["after"]
    inserts, updates, deletes = (", ".join(map(string_literal, codes[what])) for what in ("insert", "update", "delete"))
    changes = (
        f"CASE WHEN {code} IN ({inserts}) THEN {array_of_changes(insert=after)} "
        f"WHEN {code} IN ({updates}) THEN {array_of_changes(before=before, after=after)} "
        f"ELSE {array_of_changes(delete=before)} END"
    )
    problem = (
        f"CASE WHEN {code} IN ({updates}) AND {before} IS NULL THEN {string_literal(_no_before('UPDATE', product))} "
        f"WHEN {code} IN ({deletes}) AND {before} IS NULL THEN {string_literal(_no_before('DELETE', product))} "
        f"WHEN {code} IN ({inserts}, {updates}) AND {after} IS NULL "
        f"""THEN concat('The "after" field is null, but "{op}" is "', {code}, '".') """
        f"WHEN {code} IN ({inserts}, {updates}, {deletes}) THEN NULL "
        f"""ELSE concat('Unknown "{op}" value "', coalesce({code}, 'null'), '".') END"""
    )
    known = OperationCodes(op, tuple(codes["insert"]), tuple(codes["update"]), tuple(codes["delete"]))
    return DecodedEnvelope(changes, problem, codes=known)


def _no_before(what: str, product: str) -> str:
    return (
        f'The "before" field of {what} message is null, if you are using {product} Postgres Connector, please check '
        "the Postgres table has been set REPLICA IDENTITY to FULL level."
    )


def written_before_and_after(
    row: SqlType, before: str | None, after: str | None, op: str, codes: tuple[str, str, str]
) -> list[tuple[FormatField, str]]:
    nothing = f"CAST(NULL AS {row.spark()})"
    # Flink writes an update as a delete and an insert; only with both rows in one message it is the code of an update.
    code = codes[0] if before is None else codes[2] if after is None else codes[1]
    return [
        (FormatField("before", row), before or nothing),
        (FormatField("after", row), after or nothing),
        (FormatField(op, STRING), string_literal(code)),
    ]
