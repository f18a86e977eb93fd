"""Calls that are not in the registry because their form is not a list of values: for the docs, and for near misses."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FORMS", "Form"]


@dataclass(frozen=True)
class Form:
    """How it is written, and what it means."""

    written: str
    meaning: str
    family: str


_TIMES, _JSON, _CASTS = "Dates and times", "JSON", "Conversions"
FORMS: dict[str, Form] = {
    "CAST": Form("CAST(value AS type)", "The value as another type; an error if it cannot be", _CASTS),
    "TRY_CAST": Form("TRY_CAST(value AS type)", "The value as another type; NULL if it cannot be", _CASTS),
    "MOD": Form("MOD(a, b)", "The same as a % b", "Numbers"),
    "EXTRACT": Form("EXTRACT(unit FROM time)", "A part of a date, a time or an interval", _TIMES),
    "FLOOR": Form("FLOOR(time TO unit)", "The start of the unit that holds the time; a week starts on Sunday", _TIMES),
    "CEIL": Form("CEIL(time TO unit)", "The time if it is the start of a unit, else the start of the next", _TIMES),
    "TIMESTAMPADD": Form("TIMESTAMPADD(unit, n, time)", "The time so many units later", _TIMES),
    "TIMESTAMPDIFF": Form("TIMESTAMPDIFF(unit, a, b)", "The whole units from a to b", _TIMES),
    "JSON_VALUE": Form(
        "JSON_VALUE(json, path [RETURNING type] [… ON EMPTY] [… ON ERROR])", "A scalar in a JSON text", _JSON
    ),
    "JSON_QUERY": Form(
        "JSON_QUERY(json, path [RETURNING type] [… WRAPPER] [… ON EMPTY] [… ON ERROR])",
        "An object or an array in a JSON text",
        _JSON,
    ),
    "JSON_EXISTS": Form("JSON_EXISTS(json, path [… ON ERROR])", "Whether a path leads to a value", _JSON),
    "JSON_OBJECT": Form("JSON_OBJECT('key' VALUE value, … [ABSENT ON NULL])", "A JSON object as text", _JSON),
    "JSON_ARRAY": Form("JSON_ARRAY(value, … [NULL ON NULL])", "A JSON array as text", _JSON),
}
