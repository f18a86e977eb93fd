"""Options that Flink takes and that change nothing: each with the reason, for a note to the user."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.connectors.kafka.table.options import PROPERTIES

__all__ = ["options_without_effect"]

_CODECS = ("key.serializer", "value.serializer", "key.deserializer", "value.deserializer")
_OF_MODES = {"timestamp": "timestamp-millis", "specific-offsets": "specific-offsets"}


def options_without_effect(given: Mapping[str, str]) -> dict[str, str]:
    return {**_client(given), **_formats(given), **_modes(given), **_transactions(given), **_watermarks(given)}


def _client(given: Mapping[str, str]) -> dict[str, str]:
    reason = "the formats of the table read and write the bytes of messages."
    return {key: reason for codec in _CODECS if (key := PROPERTIES + codec) in given}


def _formats(given: Mapping[str, str]) -> dict[str, str]:
    """Of both, Flink takes 'format'. The options of the other one start with 'value.'."""
    if "format" not in given or "value.format" not in given:
        return {}
    prefix = f"value.{given['value.format'].strip()}."
    reason = "'format' is set, and goes before 'value.format'."
    return {key: reason for key in given if key == "value.format" or key.startswith(prefix)}


def _modes(given: Mapping[str, str]) -> dict[str, str]:
    found = {}
    for what in ("startup", "bounded"):
        mode = given.get(f"scan.{what}.mode", "").strip().lower()
        for needed, option in _OF_MODES.items():
            key = f"scan.{what}.{option}"
            if key in given and mode != needed:
                found[key] = f"it is for 'scan.{what}.mode' = '{needed}'."
    return found


def _transactions(given: Mapping[str, str]) -> dict[str, str]:
    key = "sink.transactional-id-prefix"
    guarantee = given.get("sink.delivery-guarantee", given.get("sink.semantic", "")).strip().lower()
    if key not in given or guarantee.replace("_", "-") == "exactly-once":
        return {}
    return {key: "it is for 'sink.delivery-guarantee' = 'exactly-once'."}


def _watermarks(given: Mapping[str, str]) -> dict[str, str]:
    aligned = "a batch reads all partitions that have messages."
    found = {key: aligned for key in given if key.startswith("scan.watermark.alignment.")}
    emitted = "every row moves the watermark of its partition."
    return found | {key: emitted for key in given if key.startswith("scan.watermark.emit.")}
