"""Values as Flink's `print` writes them, with the toString of Java's classes: 12:30 is a TIME, 1.0E10 a DOUBLE."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Any

from headwater.changelog.kinds import INSERT, SHORT_NAMES
from headwater.dates import date_text
from headwater.sql.types import SqlType

__all__ = ["printer"]

Printer = Callable[[Any], str]  # of one of the `numbered_values`

_MIDNIGHT = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - only its time of day is used
_DAY = 86_400_000_000


def printer(kind: SqlType) -> Printer:
    """Made once per column. Values of other types than those named here are written as Python does."""
    show = _nested(kind) if kind.is_nested else _SCALARS.get(kind.name, str)
    return lambda value: "null" if value is None else show(value)


def _nested(kind: SqlType) -> Printer:
    if kind.name == "ROW":
        fields = [(field.name, printer(field.type)) for field in kind.fields]
        # Flink's rows inside of rows have a kind too.
        return lambda row: f"{SHORT_NAMES[INSERT]}[{', '.join(show(row[name]) for name, show in fields)}]"
    item = printer(kind.item)
    if kind.name == "ARRAY":
        return lambda items: f"[{', '.join(map(item, items))}]"
    key = kind.key if kind.name == "MAP" else kind.element
    assert key is not None, kind
    show_key = printer(key)
    return lambda entries: "{" + ", ".join(f"{show_key(k)}={item(v)}" for k, v in entries) + "}"


def _bytes(value: bytes) -> str:
    """Java's bytes have a sign."""
    return f"[{', '.join(str(byte - 256 if byte > 127 else byte) for byte in value)}]"


def _timestamp(micros: int) -> str:
    days, rest = divmod(micros, _DAY)
    return f"{date_text(days)}T{_clock(rest)}"


def _instant(micros: int) -> str:
    """Unlike the other two, it always has its seconds."""
    days, rest = divmod(micros, _DAY)
    time = _time_of(rest)
    return f"{date_text(days)}T{time:%H:%M:%S}{_fraction(time)}Z"


def _time(millis: int) -> str:
    return _clock(millis * 1000)


def _clock(micros: int) -> str:
    value = _time_of(micros)
    if value.second or value.microsecond:
        return f"{value:%H:%M:%S}{_fraction(value)}"
    return f"{value:%H:%M}"


def _time_of(micros: int) -> dt.datetime:
    return _MIDNIGHT + dt.timedelta(microseconds=micros)


def _fraction(value: dt.datetime) -> str:
    """Three digits, or six."""
    if not value.microsecond:
        return ""
    thousandths, rest = divmod(value.microsecond, 1000)
    return f".{value.microsecond:06d}" if rest else f".{thousandths:03d}"


def _double(value: float) -> str:
    import numpy as np

    return _number(np.float64(value))


def _float(value: float) -> str:
    import numpy as np

    return _number(np.float32(value))


def _number(value: Any) -> str:
    """The shortest text that is the same number, with an exponent where Java writes one."""
    import numpy as np

    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return np.format_float_positional(value, trim="0")
    mantissa, _, exponent = np.format_float_scientific(value, trim="0").partition("e")
    return f"{mantissa}E{int(exponent)}"


_SCALARS: dict[str, Printer] = {
    "BOOLEAN": lambda value: str(value).lower(),
    "BINARY": _bytes,
    "VARBINARY": _bytes,
    "BYTES": _bytes,
    "DATE": date_text,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _instant,
    "FLOAT": _float,
    "DOUBLE": _double,
}
