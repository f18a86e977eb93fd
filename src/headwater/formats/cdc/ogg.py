"""GoldenGate's messages in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.formats.base import FormatField
from headwater.formats.cdc.debezium import before_and_after, written_before_and_after
from headwater.formats.cdc.envelope import COMMON_OPTIONS, DecodedEnvelope, Envelope, JsonChangelog, JsonMetadata
from headwater.options.base import Option
from headwater.sql.types import STRING, SqlType, timestamp_ltz

__all__ = ["OggJsonFormat"]


def _utc(part: str) -> str:
    """GoldenGate writes times without a zone; they count as UTC."""
    return f"TRY_CAST(concat({part}, 'Z') AS TIMESTAMP)"


class OggJsonFormat(JsonChangelog):
    identifier = "ogg-json"
    summary = "Changes as Oracle GoldenGate writes them in JSON."
    options: tuple[Option, ...] = COMMON_OPTIONS
    metadata: tuple[JsonMetadata, ...] = (
        JsonMetadata("table", STRING, "Table of the row.", FormatField("table", STRING)),
        JsonMetadata(
            "primary-keys",
            SqlType("ARRAY", element=STRING),
            "Columns of the table's primary key.",
            FormatField("primary_keys", SqlType("ARRAY", element=STRING)),
        ),
        JsonMetadata(
            "ingestion-timestamp",
            timestamp_ltz(6),
            "When GoldenGate processed the change ('current_ts').",
            FormatField("current_ts", STRING),
            _utc,
        ),
        JsonMetadata(
            "event-timestamp",
            timestamp_ltz(6),
            "When the change was made in the database ('op_ts').",
            FormatField("op_ts", STRING),
            _utc,
        ),
    )

    def envelope(self, row: SqlType, options: Mapping[str, Any]) -> list[FormatField]:
        return [FormatField("before", row), FormatField("after", row), FormatField("op_type", STRING)]

    def decoded(self, envelope: Envelope, options: Mapping[str, Any]) -> DecodedEnvelope:
        return before_and_after(envelope, "op_type", {"insert": ("I",), "update": ("U",), "delete": ("D",)}, "Ogg")

    def written(
        self, row: SqlType, before: str | None, after: str | None, options: Mapping[str, Any]
    ) -> list[tuple[FormatField, str]]:
        return written_before_and_after(row, before, after, "op_type", ("I", "U", "D"))
