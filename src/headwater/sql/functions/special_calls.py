"""Calls that are not in the registry because their form is not a list of values: for the docs, and for near misses."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SPECIAL_CALLS", "SpecialCall"]


@dataclass(frozen=True)
class SpecialCall:
    """How it is written, and what it means."""

    written: str
    meaning: str
    family: str


_TIMES, _JSON, _CASTS = "Dates and times", "JSON", "Conversions"
SPECIAL_CALLS: dict[str, SpecialCall] = {
    "CAST": SpecialCall("CAST(value AS type)", "The value as another type; an error if it cannot be", _CASTS),
    "TRY_CAST": SpecialCall("TRY_CAST(value AS type)", "The value as another type; NULL if it cannot be", _CASTS),
    "MOD": SpecialCall("MOD(a, b)", "The same as a % b", "Numbers"),
    "EXTRACT": SpecialCall("EXTRACT(unit FROM time)", "A part of a date, a time or an interval", _TIMES),
    "FLOOR": SpecialCall(
        "FLOOR(time TO unit)", "The start of the unit that holds the time; a week starts on Sunday", _TIMES
    ),
    "CEIL": SpecialCall(
        "CEIL(time TO unit)", "The time if it is the start of a unit, else the start of the next", _TIMES
    ),
    "TIMESTAMPADD": SpecialCall("TIMESTAMPADD(unit, n, time)", "The time so many units later", _TIMES),
    "CURRENT_WATERMARK": SpecialCall(
        "CURRENT_WATERMARK(ts)",
        "The watermark of the partition that the row came from, before the row; may be NULL",
        _TIMES,
    ),
    "TIMESTAMPDIFF": SpecialCall("TIMESTAMPDIFF(unit, a, b)", "The whole units from a to b", _TIMES),
    "JSON_VALUE": SpecialCall(
        "JSON_VALUE(json, path [RETURNING type] [… ON EMPTY] [… ON ERROR])", "A scalar in a JSON document", _JSON
    ),
    "JSON_QUERY": SpecialCall(
        "JSON_QUERY(json, path [RETURNING type] [… WRAPPER] [… ON EMPTY] [… ON ERROR])",
        "An object or an array in a JSON document",
        _JSON,
    ),
    "JSON_EXISTS": SpecialCall("JSON_EXISTS(json, path [… ON ERROR])", "Whether a path leads to a value", _JSON),
    "JSON_OBJECT": SpecialCall(
        "JSON_OBJECT('key' VALUE value, … [ABSENT ON NULL])", "A JSON object as a string", _JSON
    ),
    "JSON_ARRAY": SpecialCall("JSON_ARRAY(value, … [NULL ON NULL])", "A JSON array as a string", _JSON),
}
