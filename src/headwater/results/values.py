"""Values of a result: what Python gets, and how they are written as text, in JSON and in CSV."""

from __future__ import annotations

import base64
import datetime as dt
import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from headwater.dates import FarTime
from headwater.sql.types import SqlType

__all__ = ["cell_text", "json_value", "python_values"]

_MIDNIGHT = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - only its time of day is used


def python_values(values: list[Any], kind: SqlType) -> list[Any]:
    """Arrow's Python values as those of the SQL type: TIME is a time, MAP a dict, ROW a dict."""
    convert = _converter(kind)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def _converter(kind: SqlType) -> Callable[[Any], Any] | None:
    """None if values stay as they are."""
    match kind.name:
        case "TIME":
            return lambda value: (_MIDNIGHT + dt.timedelta(milliseconds=value)).time()
        case "ARRAY":
            assert kind.element is not None
            element = kind.element
            return lambda value: python_values(list(value), element)
        case "MAP" | "MULTISET":
            key = kind.key if kind.name == "MAP" else kind.element
            item = kind.element if kind.name == "MAP" else SqlType("INT")
            assert key is not None
            assert item is not None
            return lambda value: dict(
                zip(python_values([k for k, _ in value], key), python_values([v for _, v in value], item), strict=True)
            )
        case "ROW":
            return lambda value: {f.name: python_values([value[f.name]], f.type)[0] for f in kind.fields}
    return None


def cell_text(value: Any, kind: SqlType) -> str:
    """As a table shows it: NULL, TRUE, 2024-01-31 12:00:00.000, x'00ff', [1, 2], {a=1}, (1, a)."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float():
            return _float_text(value, kind)
        case Decimal():
            return format(value, "f")
        case bytes():
            return f"x'{value.hex()}'"
        case dt.datetime() | dt.time():
            return _time_text(value, kind.precision or 0)
        case FarTime(date, dt.time() as time):
            return f"{date} {_time_text(time, kind.precision or 0)}"
        case list():
            return "[" + ", ".join(cell_text(v, _part(kind)) for v in value) + "]"
        case dict() if kind.name == "ROW":
            return "(" + ", ".join(cell_text(value[f.name], f.type) for f in kind.fields) + ")"
        case dict():
            keys = kind.key if kind.name == "MAP" and kind.key is not None else _part(kind)
            items = _part(kind) if kind.name == "MAP" else SqlType("INT")
            return "{" + ", ".join(f"{cell_text(k, keys)}={cell_text(v, items)}" for k, v in value.items()) + "}"
    return str(value)


def json_value(value: Any, kind: SqlType) -> Any:
    """What `json` can write. A DECIMAL is a number where that loses nothing, else a string."""
    match value:
        case float() if value != value or value in (float("inf"), float("-inf")):
            return _float_text(value, kind)
        case float() if kind.name == "FLOAT":
            return float(_float_text(value, kind))
        case Decimal():
            # A reader of JSON takes numbers for doubles: what a double cannot hold exactly would change silently.
            number = float(value)
            return number if Decimal(repr(number)) == value else format(value, "f")
        case bytes():
            return base64.b64encode(value).decode()
        case dt.datetime() | dt.time() | FarTime():
            return cell_text(value, kind)
        case dt.date() | dt.timedelta():
            return str(value)
        case list():
            return [json_value(v, _part(kind)) for v in value]
        case dict() if kind.name == "ROW":
            return {f.name: json_value(value[f.name], f.type) for f in kind.fields}
        case dict():
            return {str(k): json_value(v, _part(kind)) for k, v in value.items()}
    return value


def _part(kind: SqlType) -> SqlType:
    return kind.element if kind.element is not None else kind


def _time_text(value: dt.datetime | dt.time, digits: int) -> str:
    """With as many digits of a second as the type has. An instant is shown in the session's time zone, which is the one
    that it comes in."""
    text = value.strftime("%Y-%m-%d %H:%M:%S" if isinstance(value, dt.datetime) else "%H:%M:%S")
    if isinstance(value, dt.datetime):
        text = text.rjust(19, "0")  # strftime does not pad years
    return f"{text}.{value.microsecond:06d}"[: len(text) + 1 + digits] if digits else text


def _float_text(value: float, kind: SqlType) -> str:
    """The shortest text that is the same number: of FLOAT, the same in 32 bits."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[repr(value)]
    if kind.name != "FLOAT":
        return repr(value)
    # Nine digits identify every 32-bit float.
    same = (f"{value:.{digits}g}" for digits in range(1, 10))
    return next((repr(float(text)) for text in same if _as_float(float(text)) == value), repr(value))


def _as_float(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return float("inf")
