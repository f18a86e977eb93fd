"""Values as Debezium encodes them: days, milli- and microseconds since 1970 as numbers, decimals as the bytes of a
number in base64, or as an object with those and the scale. Text that `json` reads is read here too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headwater.formats.json.scalars import CONVERTED, LENIENT, Scalars
from headwater.formats.strings import EPOCH, decimal_of_bytes, decimal_of_scale
from headwater.options.base import Option
from headwater.options.types import enum
from headwater.sql.types import SqlType

__all__ = ["TIME_OPTIONS", "debezium_scalars"]

_DECIMALS = ("string", "double", "precise")
_TIMES = ("adaptive", "adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds")
_WHOLE = "'^-?[0-9]{1,19}$'"

TIME_OPTIONS: tuple[Option, ...] = (
    Option(
        "decimal.handling.mode",
        enum(_DECIMALS),
        "What Debezium's setting of this name says: with 'precise' (Debezium's default) a DECIMAL is base64 text, or "
        "an object with 'scale' and 'value'.",
        "string",
        choices=_DECIMALS,
    ),
    Option(
        "time.precision.mode",
        enum(_TIMES),
        "What Debezium's setting of this name says: which unit a number has that stands for a TIME or TIMESTAMP(p). "
        "'adaptive': milliseconds up to p = 3, then microseconds.",
        "adaptive",
        choices=_TIMES,
    ),
)


def debezium_scalars(options: Mapping[str, Any]) -> tuple[Scalars, Scalars]:
    times, decimals = options["time.precision.mode"], options["decimal.handling.mode"]
    return _Values(times, decimals, _PLAIN), _Values(times, decimals, frozenset())


class _Values(Scalars):
    """Values of the types `read` are read as they are, all others as text."""

    def __init__(self, times: str, decimals: str, read: frozenset[str]) -> None:
        super().__init__(lambda kind: kind.spark() if kind.name in read else "STRING", self._read)
        self._times = times
        self._decimals = decimals
        self._precise = decimals == "precise"

    def in_columns(self) -> Scalars:
        decimal = frozenset() if self._precise else frozenset({"DECIMAL"})
        return _Values(self._times, self._decimals, _PLAIN | CONVERTED | decimal)

    def unit(self, kind: SqlType) -> str | None:
        return "day" if kind.name == "DATE" else self._unit(kind)

    def _read(self, raw: str, kind: SqlType) -> str:
        match kind.name:
            case "DECIMAL" if self._precise:
                number = f"TRY_CAST({decimal_of_bytes(_decoded(raw), kind.scale or 0)} AS {kind.spark()})"
                return f"IF(startswith({raw}, '{{'), {_variable_scale(raw, kind)}, {number})"
            case "DATE":
                days = f"date_from_unix_date(CAST({raw} AS INT))"
                return f"IF({raw} RLIKE '^-?[0-9]{{1,9}}\\\\z', {days}, {LENIENT.convert(raw, kind)})"
            case "TIME":
                return f"IF({raw} RLIKE {_WHOLE}, {self._time(raw, kind)}, {LENIENT.convert(_plain(raw), kind)})"
            case "TIMESTAMP":
                return f"IF({raw} RLIKE {_WHOLE}, {self._timestamp(raw, kind)}, {LENIENT.convert(_plain(raw), kind)})"
            case "TIMESTAMP_LTZ":
                instant = f"timestamp_micros({self._micros(raw, kind)})"
                zoned = f"IF({raw} RLIKE '([Zz]|[+-][0-9]{{2}}:?[0-9]{{2}})$', TRY_CAST({raw} AS TIMESTAMP), NULL)"
                return f"IF({raw} RLIKE {_WHOLE}, {instant}, {zoned})"
        return LENIENT.convert(raw, kind)

    def _scalar_broken(self, raw: str, kind: SqlType) -> str:
        if kind.name == "DECIMAL" and self._precise:
            return f"{raw} IS NOT NULL AND {self._read(raw, kind)} IS NULL"
        return super()._scalar_broken(raw, kind)

    def _time(self, raw: str, kind: SqlType) -> str:
        """Milliseconds of the day; NULL for what is beyond a day."""
        millis = f"({self._micros(raw, kind)} DIV 1000)"
        return f"CAST(IF({millis} BETWEEN 0 AND 86399999, {millis}, NULL) AS INT)"

    def _timestamp(self, raw: str, kind: SqlType) -> str:
        return f"timestampadd(MICROSECOND, {self._micros(raw, kind)}, {EPOCH})"

    def _micros(self, raw: str, kind: SqlType) -> str:
        number = f"TRY_CAST({raw} AS BIGINT)"
        match self._unit(kind):
            case "milli":
                return f"try_multiply({number}, 1000L)"
            case "nano":
                # As a decimal: a DOUBLE has too few digits for nanoseconds since 1970, and DIV would cut towards zero.
                return f"CAST(floor({number} / CAST(1000 AS DECIMAL(4, 0))) AS BIGINT)"
        return number

    def _unit(self, kind: SqlType) -> str:
        precision = kind.precision or 0
        match self._times:
            case "connect":
                return "milli"
            case "microseconds":
                return "micro"
            case "nanoseconds":
                return "nano"
            # Only a TIME is different in this mode; timestamps go on by their precision.
            case "adaptive_time_microseconds" if kind.name == "TIME":
                return "micro"
        return "milli" if precision <= 3 else "micro" if precision <= 6 else "nano"


_PLAIN = frozenset({"BOOLEAN", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "CHAR", "VARCHAR", "STRING", "BYTES"})


def _decoded(raw: str) -> str:
    return f"try_to_binary({raw}, 'base64')"


def _variable_scale(raw: str, kind: SqlType) -> str:
    """An object with the digits and their scale, for columns that have none of their own."""
    digits, scale = (f"get_json_object({raw}, '\\u0024.{member}')" for member in ("value", "scale"))
    return decimal_of_scale(_decoded(digits), f"TRY_CAST({scale} AS INT)", kind)


def _plain(raw: str) -> str:
    """A time without zone may carry the Z of UTC."""
    return f"regexp_replace({raw}, 'Z\\u0024', '')"
