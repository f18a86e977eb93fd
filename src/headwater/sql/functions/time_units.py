"""What takes a unit of time: EXTRACT, FLOOR and CEIL … TO, TIMESTAMPADD, TIMESTAMPDIFF."""

from __future__ import annotations

from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.functions.time_arithmetic import (
    EPOCH,
    MILLIS_OF,
    as_utc,
    at_utc,
    ceil_to,
    day_of,
    floor_to,
    micros_of,
    seconds_since_epoch,
)
from headwater.sql.functions.type_rules import is_temporal
from headwater.sql.typed import Expr
from headwater.sql.types import BIGINT, INT, SqlType, timestamp

__all__ = ["extract", "extract_sql", "round_to", "timestamp_add", "timestamp_diff"]

_DATE_PARTS = {
    "MILLENNIUM": "((year({0}) + 999) DIV 1000)",
    "CENTURY": "((year({0}) + 99) DIV 100)",
    "DECADE": "(year({0}) DIV 10)",
    "YEAR": "year({0})",
    "ISOYEAR": "extract(YEAROFWEEK FROM {0})",
    "QUARTER": "quarter({0})",
    "MONTH": "month({0})",
    "WEEK": "weekofyear({0})",
    "DAY": "dayofmonth({0})",
    "DOY": "dayofyear({0})",
    "DOW": "dayofweek({0})",
    "ISODOW": "(weekday({0}) + 1)",
}
_CLOCK_PARTS = {
    "HOUR": "hour({0})",
    "MINUTE": "minute({0})",
    "SECOND": "second({0})",
    "MILLISECOND": "(extract(SECOND FROM {0}) % 1 * 1000)",
    "MICROSECOND": "(extract(SECOND FROM {0}) % 1 * 1000000)",
    "NANOSECOND": "(extract(SECOND FROM {0}) % 1 * 1000000000)",
}
_MIDNIGHT = "CASE WHEN {0} IS NOT NULL THEN 0 END"
_TIME_PARTS = {
    "HOUR": "({0} DIV 3600000)",
    "MINUTE": "({0} DIV 60000 % 60)",
    "SECOND": "({0} DIV 1000 % 60)",
    "MILLISECOND": "({0} % 1000)",
}
_EPOCH_PARTS = {
    "DATE": f"(datediff({{0}}, CAST({EPOCH} AS DATE)) * 86400L)",
    "TIMESTAMP": f"floor({seconds_since_epoch('{0}')})",
    "TIMESTAMP_LTZ": "unix_seconds({0})",
}
_INTERVAL_PARTS = {
    "INTERVAL DAY": {u: f"extract({u} FROM {{0}})" for u in ("DAY", "HOUR", "MINUTE", "SECOND")},
    "INTERVAL YEAR": {u: f"extract({u} FROM {{0}})" for u in ("YEAR", "MONTH")},
}
_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}
_DAY_MILLIS = MILLIS_OF["DAY"]


def extract(unit: str, value: Expr) -> Expr:
    sql_type = BIGINT.as_nullable(nullable=value.type.nullable)
    sql = evaluated_once([value], lambda parts: extract_sql(unit, parts[0]))
    return combine([value], sql, sql_type, f"EXTRACT({unit} FROM {value.text})")


def extract_sql(unit: str, value: Expr) -> str:
    """The part as BIGINT."""
    kind = value.type.name
    parts = {
        "DATE": {**_DATE_PARTS, **dict.fromkeys(_CLOCK_PARTS, _MIDNIGHT), "EPOCH": _EPOCH_PARTS["DATE"]},
        "TIMESTAMP": {**_DATE_PARTS, **_CLOCK_PARTS, "EPOCH": _EPOCH_PARTS["TIMESTAMP"]},
        "TIMESTAMP_LTZ": {**_DATE_PARTS, **_CLOCK_PARTS, "EPOCH": _EPOCH_PARTS["TIMESTAMP_LTZ"]},
        "TIME": _TIME_PARTS,
        **_INTERVAL_PARTS,
    }.get(kind)
    if parts is None:
        raise Refused(f"A value of type {value.type.as_nullable()} has no {unit}", hint=_STRING_HINT, argument=0)
    if unit not in parts:
        raise Refused(f"A {kind} has no {unit}", hint=f"It has {', '.join(parts)}.", argument=0)
    return f"CAST({parts[unit].replace('{0}', value.sql)} AS BIGINT)"


_STRING_HINT = "CAST(s AS DATE), CAST(s AS TIMESTAMP) or TO_TIMESTAMP make a date or a time of a string."


def _require_temporal(what: str, value: Expr, argument: int) -> None:
    if not is_temporal(value.type):
        fact = f"{what} takes a DATE, TIME, TIMESTAMP or TIMESTAMP_LTZ, not {value.type.as_nullable()}"
        raise Refused(fact, hint=_STRING_HINT if value.type.is_string else "", argument=argument)


def round_to(function: str, value: Expr, unit: str) -> Expr:
    """`FLOOR(value TO unit)` or CEIL."""
    _require_temporal(f"{function} TO {unit}", value, 0)
    if unit not in {*MILLIS_OF, *_MONTHS}:
        raise Refused(f"{function} to {unit} is not supported", hint=f"Units: {', '.join((*MILLIS_OF, *_MONTHS))}.")
    rule = floor_to if function == "FLOOR" else ceil_to
    sql = evaluated_once([value], lambda parts: rule(parts[0].sql, value.type.name, unit))
    return combine([value], sql, value.type, f"{function}({value.text} TO {unit})")


def timestamp_add(unit: str, amount: Expr, value: Expr) -> Expr:
    """`TIMESTAMPADD(unit, amount, value)`: calendar units move a TIMESTAMP_LTZ on the clock of UTC, as in Flink."""
    _require_temporal("TIMESTAMPADD", value, 2)
    if not amount.type.is_integer:
        raise Refused(f"TIMESTAMPADD adds a whole number of units, not {amount.type.as_nullable()}", argument=1)
    if unit not in {*MILLIS_OF, *_MONTHS}:
        raise Refused(
            f"TIMESTAMPADD has no unit {unit}", hint=f"Units: {', '.join((*MILLIS_OF, *_MONTHS))}.", argument=0
        )
    kind, number = value.type.name, f"CAST({amount.sql} AS BIGINT)"
    result: SqlType = value.type
    if kind == "DATE" and unit in MILLIS_OF and unit not in {"DAY", "WEEK"}:
        kind, result = "TIMESTAMP", timestamp(6)
        value = combine([value], f"CAST({value.sql} AS TIMESTAMP_NTZ)", result, value.text)
    sql = (
        _months_added(value.sql, kind, unit, number) if unit in _MONTHS else _time_added(value.sql, kind, unit, number)
    )
    text = f"TIMESTAMPADD({unit}, {amount.text}, {value.text})"
    return combine([amount, value], sql, result.as_nullable(nullable=amount.type.nullable or value.type.nullable), text)


def _months_added(value: str, kind: str, unit: str, number: str) -> str:
    interval = f"make_ym_interval(0, CAST({number} * {_MONTHS[unit]} AS INT))"
    if kind == "TIME":
        return value
    if kind == "DATE":
        return f"add_months({value}, CAST({number} * {_MONTHS[unit]} AS INT))"
    return at_utc(f"({as_utc(value)} + {interval})") if kind == "TIMESTAMP_LTZ" else f"({value} + {interval})"


def _time_added(value: str, kind: str, unit: str, number: str) -> str:
    millis = MILLIS_OF[unit]
    if kind == "TIME":
        return f"CAST(pmod({value} + {number} * {millis}L, {_DAY_MILLIS}) AS INT)"
    if kind == "DATE":
        return f"date_add({value}, CAST({number} * {millis // _DAY_MILLIS} AS INT))"
    if kind == "TIMESTAMP_LTZ":
        return f"timestamp_micros(unix_micros({value}) + {number} * {millis * 1000}L)"
    return f"({value} + make_dt_interval(0, 0, 0, CAST({number} AS DECIMAL(18,0)) * {millis / 1000:.3f}BD))"


def timestamp_diff(unit: str, start: Expr, end: Expr) -> Expr:
    """`TIMESTAMPDIFF(unit, start, end)`: whole units, as INT."""
    for index, value in enumerate((start, end), 1):
        _require_temporal("TIMESTAMPDIFF", value, index)
    kinds = {start.type.name, end.type.name}
    if "TIME" in kinds or ("TIMESTAMP_LTZ" in kinds and len(kinds) > 1):
        raise Refused(
            f"TIMESTAMPDIFF cannot take {start.type.as_nullable()} and {end.type.as_nullable()} together",
            hint="CAST both to TIMESTAMP or both to TIMESTAMP_LTZ.",
            argument=2,
        )
    if unit not in {*MILLIS_OF, *_MONTHS}:
        units = ", ".join((*MILLIS_OF, *_MONTHS))
        raise Refused(f"TIMESTAMPDIFF has no unit {unit}", hint=f"Units: {units}.", argument=0)
    rule = _months_between if unit in _MONTHS else _time_between
    sql = evaluated_once([start, end], lambda parts: rule(unit, *(_timestamp(part) for part in parts)))
    result = INT.as_nullable(nullable=start.type.nullable or end.type.nullable)
    return combine([start, end], sql, result, f"TIMESTAMPDIFF({unit}, {start.text}, {end.text})")


def _timestamp(value: Expr) -> str:
    """The value as a TIMESTAMP; an instant on the clock of UTC, so that no day is longer than another."""
    if value.type.name == "TIMESTAMP_LTZ":
        return as_utc(value.sql)
    return f"CAST({value.sql} AS TIMESTAMP_NTZ)" if value.type.name == "DATE" else value.sql


def _time_between(unit: str, start: str, end: str) -> str:
    return f"CAST({micros_of(f'{end} - {start}')} DIV {MILLIS_OF[unit] * 1000}L AS INT)"


def _months_between(unit: str, start: str, end: str) -> str:
    """From the last of a month a month reaches the last of the next, as in Flink."""

    def months(first: str, last: str) -> str:
        calendar = f"((year({last}) - year({first})) * 12 + month({last}) - month({first}))"
        day = f"CAST(add_months(CAST({first} AS DATE), {calendar}) AS TIMESTAMP_NTZ)"
        return f"({calendar} - if({day} + ({first} - {day_of(first)}) > {last}, 1, 0))"

    forth, back = months(start, end), months(end, start)
    return f"CAST(CASE WHEN {end} >= {start} THEN {forth} ELSE - {back} END DIV {_MONTHS[unit]} AS INT)"
