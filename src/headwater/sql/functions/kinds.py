"""What a function may ask of an argument: the words of a signature.

STRING BYTES BOOLEAN DATE TIME TIMESTAMP TIMESTAMP_LTZ        that type (any length and precision)
INT BIGINT DOUBLE      any whole number, or for DOUBLE any number, turned into that type
INTEGER NUMERIC        any whole number, any number, as it is
ANY_TIMESTAMP          TIMESTAMP or TIMESTAMP_LTZ
TEMPORAL               these, DATE or TIME
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

__all__ = ["KINDS", "ArgumentKind"]


@dataclass(frozen=True)
class ArgumentKind:
    """`meaning` is what an error says is accepted; `becomes` is the type the value is turned into, if any."""

    meaning: str
    accepts: Callable[[SqlType], bool]
    becomes: SqlType | None = None


def _named(*names: str) -> Callable[[SqlType], bool]:
    return lambda value: value.name in names


KINDS: dict[str, ArgumentKind] = {
    "STRING": ArgumentKind("STRING", lambda v: v.is_string, t.STRING),
    "BYTES": ArgumentKind("BYTES", lambda v: v.is_binary, t.BYTES),
    "BOOLEAN": ArgumentKind("BOOLEAN", _named("BOOLEAN")),
    "INT": ArgumentKind("INT", lambda v: v.is_integer, t.INT),
    "BIGINT": ArgumentKind("BIGINT", lambda v: v.is_integer, t.BIGINT),
    "DOUBLE": ArgumentKind("a number", lambda v: v.is_numeric, t.DOUBLE),
    "INTEGER": ArgumentKind("a whole number", lambda v: v.is_integer),
    "NUMERIC": ArgumentKind("a number", lambda v: v.is_numeric),
    "DECIMAL": ArgumentKind("a DECIMAL", _named("DECIMAL")),
    "FLOATING": ArgumentKind("FLOAT or DOUBLE", _named("FLOAT", "DOUBLE")),
    "DATE": ArgumentKind("DATE", _named("DATE")),
    "TIME": ArgumentKind("TIME", _named("TIME")),
    "TIMESTAMP": ArgumentKind("TIMESTAMP", _named("TIMESTAMP")),
    "TIMESTAMP_LTZ": ArgumentKind("TIMESTAMP_LTZ", _named("TIMESTAMP_LTZ")),
    "ANY_TIMESTAMP": ArgumentKind("TIMESTAMP or TIMESTAMP_LTZ", _named("TIMESTAMP", "TIMESTAMP_LTZ")),
    "TEMPORAL": ArgumentKind("DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ", is_temporal),
    "INTERVAL": ArgumentKind("an INTERVAL", is_interval),
    "ARRAY": ArgumentKind("an ARRAY", _named("ARRAY")),
    "MAP": ArgumentKind("a MAP", _named("MAP")),
    "ROW": ArgumentKind("a ROW", _named("ROW")),
    "ANY": ArgumentKind("any value", lambda _: True),
}
