"""How the scalars in JSON values are read: as which Spark type, how that becomes the value, and when it cannot.

FAST lets Spark's parser read what it reads as Flink does. LENIENT has text for every scalar and converts it afterwards.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from headwater.formats.base import FormatField
from headwater.formats.strings import time_millis
from headwater.sql.spark_text import field_of, quote_name, string_literal
from headwater.sql.types import SqlType

__all__ = ["CONVERTED", "FAST", "LENIENT", "Scalars", "misread", "rows_opened", "shown"]

CONVERTED = frozenset({"TINYINT", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"})


_FAST_RAW = {"TINYINT": "SMALLINT", "DATE": "STRING", "TIME": "STRING", "TIMESTAMP_LTZ": "STRING"}


class Scalars:
    """`raw` names the type a scalar is read as, `value` converts it; where both agree nothing is done."""

    def __init__(self, raw: Callable[[SqlType], str], value: Callable[[str, SqlType], str]) -> None:
        self._raw = raw
        self._value = value

    def in_columns(self) -> Scalars:
        """The same for a reader of columns, which converts some types itself."""
        return Scalars(lambda kind: kind.spark() if kind.name in CONVERTED else self._raw(kind), self._value)

    def unit(self, kind: SqlType) -> str | None:
        """Of a number that stands for a day or a timestamp: 'day', 'milli', 'micro' or 'nano'. None: no number does."""
        del kind
        return None

    def schema(self, kind: SqlType) -> str:
        match kind.name:
            case "ARRAY":
                return f"ARRAY<{self.schema(kind.item)}>"
            case "MAP" | "MULTISET":
                return f"MAP<STRING, {self.schema(kind.item)}>"
            case "ROW":
                return f"STRUCT<{', '.join(f'{quote_name(f.name)}: {self.schema(f.type)}' for f in kind.fields)}>"
        return self._raw(kind)

    def convert(self, raw: str, kind: SqlType) -> str:
        """The value of type `kind`; a scalar that cannot be converted is NULL."""
        return self._convert(raw, kind, _variables())

    def broken(self, raw: str, kind: SqlType) -> str:
        """Whether some scalar has a raw value and no value. '' if that cannot be."""
        return self._broken(raw, kind, _variables())

    def _convert(self, raw: str, kind: SqlType, fresh: Callable[[], str]) -> str:
        if self.schema(kind).replace(" ", "") == kind.spark().replace(" ", ""):
            return raw
        match kind.name:
            case "ARRAY":
                item = fresh()
                return f"transform({raw}, {item} -> {self._convert(item, kind.item, fresh)})"
            case "MAP" | "MULTISET":
                key, item = fresh(), fresh()
                return f"transform_values({raw}, ({key}, {item}) -> {self._convert(item, kind.item, fresh)})"
            case "ROW":
                pairs = (
                    f"{self._convert(field_of(raw, f.name), f.type, fresh)} AS {quote_name(f.name)}"
                    for f in kind.fields
                )
                return f"IF({raw} IS NULL, NULL, struct({', '.join(pairs)}))"
        return self._value(raw, kind)

    def _broken(self, raw: str, kind: SqlType, fresh: Callable[[], str]) -> str:
        match kind.name:
            case "ARRAY":
                item = fresh()
                inner = self._broken(item, kind.item, fresh)
                return f"coalesce(exists({raw}, {item} -> {inner}), false)" if inner else ""
            case "MAP" | "MULTISET":
                item = fresh()
                inner = self._broken(item, kind.item, fresh)
                return f"coalesce(exists(map_values({raw}), {item} -> {inner}), false)" if inner else ""
            case "ROW":
                parts = (self._broken(field_of(raw, f.name), f.type, fresh) for f in kind.fields)
                return " OR ".join(f"({part})" for part in parts if part)
        return self._scalar_broken(raw, kind)

    def _scalar_broken(self, raw: str, kind: SqlType) -> str:
        if self._raw(kind) == kind.spark():
            return ""
        if kind.name == "DECIMAL":  # a number that does not fit is NULL and no error
            return f"{raw} IS NOT NULL AND TRY_CAST({raw} AS DOUBLE) IS NULL"
        return f"{raw} IS NOT NULL AND {self._value(raw, kind)} IS NULL"


def _fast_raw(kind: SqlType) -> str:
    """Spark would wrap a TINYINT around, take a year for a date and a number for an instant, and has no TIME."""
    return _FAST_RAW.get(kind.name, kind.spark())


def _fast_value(raw: str, kind: SqlType) -> str:
    return f"TRY_CAST({raw} AS TINYINT)" if kind.name == "TINYINT" else _lenient_value(raw, kind)


def _lenient_value(raw: str, kind: SqlType) -> str:
    match kind.name:
        case "BOOLEAN":
            return f"lower(trim({raw})) = 'true'"
        case "INT" | "BIGINT":
            # Jackson, which Flink uses, cuts the fraction off a number that is read as an integer: 3.7 is 3.
            whole = f"TRY_CAST(TRY_CAST({raw} AS DECIMAL(38, 9)) AS {kind.name})"
            return f"coalesce(TRY_CAST({raw} AS {kind.name}), {whole})"
        case "DATE":
            # Spark would also read '2024' and '2024-1' as dates, which Flink refuses.
            return f"IF({raw} LIKE '____-__-__', TRY_CAST({raw} AS DATE), NULL)"
        case "TIME":
            return time_millis(raw)
        case "TIMESTAMP":
            return f"IF({raw} RLIKE '^[0-9]+-[0-9]+-[0-9]+([ T][0-9:.]*)?$', TRY_CAST({raw} AS TIMESTAMP_NTZ), NULL)"
        case "TIMESTAMP_LTZ":
            # Without the Z Spark would take it for a time in the session's zone, and the value would depend on where
            # the job runs.
            return f"IF(endswith({raw}, 'Z'), TRY_CAST({raw} AS TIMESTAMP), NULL)"
        case "BINARY" | "VARBINARY" | "BYTES":
            # Without padding the length is no multiple of 4: Flink's decoder refuses that.
            return f"IF(length({raw}) % 4 = 0, try_to_binary({raw}, 'base64'), NULL)"
    return f"TRY_CAST(trim({raw}) AS {kind.spark()})"


def _variables() -> Callable[[], str]:
    numbers = count(1)
    return lambda: f"v{next(numbers)}"


def rows_opened(wanted: FormatField, raw: str) -> list[tuple[FormatField, str]]:
    """The field, or if it is a ROW those inside, with their paths as names: an error should name the very field."""
    if wanted.type.name != "ROW":
        return [(wanted, raw)]
    inner = [(FormatField(f"{wanted.name}.{f.name}", f.type), field_of(raw, f.name)) for f in wanted.type.fields]
    return [part for below, at in inner for part in rows_opened(below, at)]


def misread(wanted: FormatField, shown: str) -> str:
    """The sentence about a field that has no value of its type."""
    start, end = f"Fail to deserialize at field: {wanted.name}. ", f" is not {wanted.type.as_nullable()}."
    return f"concat({string_literal(start)}, coalesce(left({shown}, 200), 'It'), {string_literal(end)})"


def shown(raw: str, kind: SqlType) -> str:
    """A raw value as a person may read it."""
    return f"to_json({raw})" if kind.is_nested else f"CAST({raw} AS STRING)"


FAST = Scalars(_fast_raw, _fast_value)
LENIENT = Scalars(lambda _: "STRING", _lenient_value)
