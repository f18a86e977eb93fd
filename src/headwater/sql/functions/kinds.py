"""What a function may ask of an argument: the words of a signature.

STRING BYTES BOOLEAN DATE TIME TIMESTAMP TIMESTAMP_LTZ        that type (any length and precision)
INT BIGINT DOUBLE      any whole number, or for DOUBLE any number, turned into that type
INTEGER NUMERIC        any whole number, any number, as it is
MOMENT TEMPORAL        TIMESTAMP or TIMESTAMP_LTZ; these, DATE or TIME
ARRAY MAP ROW ANY      any of that kind
A 'literal' is asked for with a quote behind the word: STRING' or INT'
T, ARRAY<T>, MAP<K, V> the same T (K, V) everywhere: the type common to all arguments that have it
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headwater.sql import types as t
from headwater.sql.functions.type_rules import is_interval, is_temporal
from headwater.sql.types import SqlType

__all__ = ["KINDS", "Kind"]


@dataclass(frozen=True)
class Kind:
    """`meaning` is what an error says is accepted; `becomes` is the type the value is turned into, if any."""

    meaning: str
    accepts: Callable[[SqlType], bool]
    becomes: SqlType | None = None


def _named(*names: str) -> Callable[[SqlType], bool]:
    return lambda value: value.name in names


KINDS: dict[str, Kind] = {
    "STRING": Kind("STRING", lambda v: v.is_string, t.STRING),
    "BYTES": Kind("BYTES", lambda v: v.is_binary, t.BYTES),
    "BOOLEAN": Kind("BOOLEAN", _named("BOOLEAN")),
    "INT": Kind("INT", lambda v: v.is_integer, t.INT),
    "BIGINT": Kind("BIGINT", lambda v: v.is_integer, t.BIGINT),
    "DOUBLE": Kind("a number", lambda v: v.is_numeric, t.DOUBLE),
    "INTEGER": Kind("a whole number", lambda v: v.is_integer),
    "NUMERIC": Kind("a number", lambda v: v.is_numeric),
    "DECIMAL": Kind("a DECIMAL", _named("DECIMAL")),
    "FLOATING": Kind("FLOAT or DOUBLE", _named("FLOAT", "DOUBLE")),
    "DATE": Kind("DATE", _named("DATE")),
    "TIME": Kind("TIME", _named("TIME")),
    "TIMESTAMP": Kind("TIMESTAMP", _named("TIMESTAMP")),
    "TIMESTAMP_LTZ": Kind("TIMESTAMP_LTZ", _named("TIMESTAMP_LTZ")),
    "MOMENT": Kind("TIMESTAMP or TIMESTAMP_LTZ", _named("TIMESTAMP", "TIMESTAMP_LTZ")),
    "TEMPORAL": Kind("DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ", is_temporal),
    "INTERVAL": Kind("an INTERVAL", is_interval),
    "ARRAY": Kind("an ARRAY", _named("ARRAY")),
    "MAP": Kind("a MAP", _named("MAP")),
    "ROW": Kind("a ROW", _named("ROW")),
    "ANY": Kind("any value", lambda _: True),
}
