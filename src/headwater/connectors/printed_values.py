"""Values as Flink's `print` writes them, with the toString of Java's classes: 12:30 is a TIME, 1.0E10 a DOUBLE."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headwater.changelog.kinds import INSERT, SHORT_NAMES
from headwater.sql.types import SqlType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["printer", "python_values"]

Printer = Callable[[Any], str]  # of one of the `python_values`

_MIDNIGHT = dt.datetime(1970, 1, 1)  # noqa: DTZ001 - only its time of day is used
_FIRST_DAY = -719_162  # 0001-01-01
_DAYS_OF_400_YEARS = 146_097
_DAY = 86_400_000_000


def python_values(column: pa.Array) -> list[Any]:
    """As the printers take them: dates and timestamps are the numbers that Arrow has."""
    return column.cast(_without_times(column.type)).to_pylist()  # type: ignore[no-any-return]


def _without_times(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pa.int64() if pa.types.is_timestamp(kind) else pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_times(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_without_times(kind.value_type)))
    if pa.types.is_map(kind):
        return pa.map_(_without_times(kind.key_type), kind.item_field.with_type(_without_times(kind.item_type)))
    return kind


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


def _date(days: int) -> str:
    """Any day that Spark knows: Python's dates end with the year 9999."""
    cycles, place = divmod(days - _FIRST_DAY, _DAYS_OF_400_YEARS)
    day = dt.date.fromordinal(place + 1)
    year = day.year + 400 * cycles
    return f"{year:04d}{day:-%m-%d}" if 0 <= year <= 9999 else f"{year:+05d}{day:-%m-%d}"


def _timestamp(micros: int) -> str:
    days, rest = divmod(micros, _DAY)
    return f"{_date(days)}T{_clock(rest)}"


def _instant(micros: int) -> str:
    """Unlike the other two, it always has its seconds."""
    days, rest = divmod(micros, _DAY)
    time = _time_of(rest)
    return f"{_date(days)}T{time:%H:%M:%S}{_fraction(time)}Z"


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
    "DATE": _date,
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _instant,
    "FLOAT": _float,
    "DOUBLE": _double,
}
