"""Arrow columns ↔ the Python values that functions see. Runs in Spark's Python workers.

DATE, TIMESTAMP   datetime.date, datetime.datetime without a zone      TIMESTAMP_LTZ   datetime.datetime in UTC
TIME              datetime.time (an INT of milliseconds in Spark)       DECIMAL         decimal.Decimal
ARRAY, MAP        list, dict                                           ROW             `Row`: by name and by place
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from headwater.dates import FarTime, dated_values
from headwater.sql.types import SqlType

__all__ = ["Row", "arrow_type", "python_values", "to_arrow"]

_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "DATE": pa.date32(),
    "TIME": pa.int32(),
    "TIMESTAMP": pa.timestamp("us"),
    "TIMESTAMP_LTZ": pa.timestamp("us", tz="UTC"),
    "INTERVAL DAY": pa.duration("us"),
}
Convert = Callable[[Any], Any]


class Row(tuple[Any, ...]):
    """A value of a ROW type: `row.name`, `row['name']`, `row[0]`."""

    _names: tuple[str, ...]

    def __new__(cls, values: Sequence[Any], names: Sequence[str]) -> Row:
        row = super().__new__(cls, values)
        row._names = tuple(names)
        return row

    def __getattr__(self, name: str) -> Any:
        # Pickling and copying ask for special names before `_names` is there.
        if (name.startswith("__") and name.endswith("__")) or name == "_names" or name not in self._names:
            raise AttributeError(f"there is no field '{name}'")
        return self[self._names.index(name)]

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(self._names.index(key)) if isinstance(key, str) else super().__getitem__(key)

    def __reduce__(self) -> tuple[Any, ...]:
        return Row, (tuple(self), self._names)

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(self._names, self, strict=True))


def arrow_type(kind: SqlType) -> pa.DataType:
    """What Spark carries values of this type in."""
    if kind.name in _PLAIN:
        return _PLAIN[kind.name]
    if kind.is_string:
        return pa.string()
    if kind.is_binary:
        return pa.binary()
    if kind.name == "DECIMAL":
        return pa.decimal128(kind.precision or 10, kind.scale or 0)
    if kind.name == "ROW":
        return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in kind.fields])
    if kind.element is not None and kind.name == "ARRAY":
        return pa.list_(arrow_type(kind.element))
    if kind.element is not None and kind.name in {"MAP", "MULTISET"}:
        key = kind.key if kind.key is not None else kind.element
        return pa.map_(arrow_type(key), arrow_type(kind.element) if kind.name == "MAP" else pa.int32())
    raise TypeError(f"no Python values of type {kind}")


def python_values(column: pa.Array, kind: SqlType, refuse: Callable[[FarTime], Any]) -> list[Any]:
    """The values of an argument. `refuse` raises for one that Python cannot hold."""
    convert = _reading(kind)
    # Spark labels the column with the session's time zone; a function always sees UTC.
    values = dated_values(column, refuse, dt.timezone.utc)
    return values if convert is None else [None if value is None else convert(value) for value in values]


def to_arrow(values: list[Any], kind: SqlType) -> pa.Array:
    """The results of a function as a column; a value of another type raises."""
    convert = _writing(kind)
    if convert is not None:
        values = [None if value is None else convert(value) for value in values]
    return pa.array(values, arrow_type(kind))


def _optional(convert: Convert | None) -> Convert:
    return lambda value: value if value is None or convert is None else convert(value)


def _reading(kind: SqlType) -> Convert | None:
    """None where Arrow's own value is what a function expects."""
    if kind.name == "TIME":
        return _time
    if kind.name == "ROW":
        names = [f.name for f in kind.fields]
        parts = [_optional(_reading(f.type)) for f in kind.fields]
        return lambda value: Row([part(value[name]) for part, name in zip(parts, names, strict=True)], names)
    if kind.name == "ARRAY" and kind.element is not None:
        element = _reading(kind.element)
        return None if element is None else lambda value: [None if v is None else element(v) for v in value]
    if kind.name in {"MAP", "MULTISET"} and kind.element is not None:
        keys = _optional(_reading(kind.key if kind.key is not None else kind.element))
        items = _optional(_reading(kind.element) if kind.name == "MAP" else None)
        return lambda value: {keys(k): items(v) for k, v in value}
    return None


def _time(milliseconds: int) -> dt.time:
    seconds, rest = divmod(milliseconds, 1000)
    return dt.time(seconds // 3600, seconds // 60 % 60, seconds % 60, rest * 1000)


def _milliseconds(value: dt.time) -> int:
    return ((value.hour * 60 + value.minute) * 60 + value.second) * 1000 + value.microsecond // 1000


def _writing(kind: SqlType) -> Convert | None:
    """None where Arrow takes the value as it is, or refuses it."""
    if kind.name == "TIME":
        return _milliseconds
    if kind.name == "DECIMAL":
        return _decimal(kind)
    if kind.name == "ROW":
        return _row(kind)
    if kind.name == "ARRAY" and kind.element is not None:
        element = _optional(_writing(kind.element))
        return lambda value: [element(v) for v in value]
    if kind.name in {"MAP", "MULTISET"} and kind.element is not None:
        keys = _optional(_writing(kind.key if kind.key is not None else kind.element))
        items = _optional(_writing(kind.element) if kind.name == "MAP" else None)
        return lambda value: [(keys(k), items(v)) for k, v in value.items()]
    return None


def _decimal(kind: SqlType) -> Convert:
    """Rounded to the type's scale, as Flink does with what a function returns."""
    step = decimal.Decimal(1).scaleb(-(kind.scale or 0))
    context = decimal.Context(prec=76, rounding=decimal.ROUND_HALF_UP)

    def convert(value: Any) -> decimal.Decimal:
        if isinstance(value, bool) or not isinstance(value, decimal.Decimal | int | float):
            raise TypeError(f"{value!r} is not a number")
        # By its shortest text, as a person would write it: 0.1 is 0.1, and not the binary fraction next to it.
        exact = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
        return exact.quantize(step, context=context)

    return convert


def _row(kind: SqlType) -> Convert:
    names = [f.name for f in kind.fields]
    parts = [_optional(_writing(f.type)) for f in kind.fields]

    def convert(value: Any) -> dict[str, Any]:
        given = _fields(value, names)
        if len(given) != len(names):
            raise TypeError(f"{value!r} has {len(given)} fields, and {kind} has {len(names)}")
        return {name: part(item) for name, part, item in zip(names, parts, given, strict=True)}

    return convert


def _fields(value: Any, names: Sequence[str]) -> list[Any]:
    """By name where the value has names that fit, else by place. A value that is no row is the only field."""
    if isinstance(value, Mapping):
        return [value.get(name) for name in names]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, name) for name in names]
    if isinstance(value, tuple | list):
        return list(value)
    if hasattr(value, "_values"):  # PyFlink's Row
        own = list(getattr(value, "_fields", None) or ())
        return [value[own.index(name)] for name in names] if sorted(own) == sorted(names) else list(value._values)
    return [value]
