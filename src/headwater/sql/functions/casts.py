"""CAST and TRY_CAST between all of Flink's types, as Spark SQL.

What Spark's own cast does differently, and is done here as Flink does it: '12.7' is 12 as an INT; TRUE is 'TRUE';
a TIMESTAMP(3) is written with three digits; a string with a time zone is no TIMESTAMP; a TIME is an INT; a CHAR(5) has
five characters; '[a, NULL]', '{k=v}' and '(1, x)' are the strings of nested values; a number too large for its DECIMAL
is NULL. One thing is stricter than in Flink: a number that does not fit its type is an error in CAST to a whole number
(Flink wraps it around). Two are wider: a string with 'T' between date and time is a TIMESTAMP, and blanks around a
string are ignored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headwater.sql.functions.cast_to_string import string_of
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once, lambda_name
from headwater.sql.functions.time_arithmetic import from_millis, millis_of_day, truncated
from headwater.sql.spark_text import quote_name, string_literal
from headwater.sql.typed import Expr
from headwater.sql.types import FRACTIONS, STRING, SqlType

__all__ = ["cast", "convert", "with_length"]

INTEGER_DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
_WHOLE_PART = r"^(\s*[+-]?\d*)\.\d*\s*$"
# 'Z', an offset, or the name of a zone behind a blank.
_ZONE = r"^(.*?)\s*(Z|[+-]\d\d:?\d\d|\s[A-Za-z][A-Za-z/_]*)\s*$"


@dataclass(frozen=True)
class _Job:
    """One conversion. `word` is CAST or TRY_CAST; `depth` names the variables of lambdas."""

    sql: str
    source: SqlType
    target: SqlType
    word: str
    depth: int = 0

    def plain(self) -> str:
        return f"{self.word}({self.sql} AS {self.target.spark()})"

    def inner(self, sql: str, source: SqlType, target: SqlType) -> str:
        return _converted(_Job(sql, source, target, self.word, self.depth + 1))


def cast(value: Expr, target: SqlType, name: Literal["CAST", "TRY_CAST"] = "CAST") -> Expr:
    """`CAST(value AS target)` or TRY_CAST, as a user may write it. Refuses what Flink refuses."""
    # Whether the result may be NULL is part of its type, from which the planner draws conclusions.
    target = target.as_nullable(nullable=value.type.nullable or name == "TRY_CAST" or may_overflow(value.type, target))
    sql = _sql(value, target, name)
    result = combine([value], sql, target, f"{name}({value.text} AS {target.as_nullable()})")
    if sql == value.sql:
        return replace(result, column=value.column, keeps=value.identifies)
    # A key that was only cast still identifies rows, if different values stay different.
    return replace(result, column=None, keeps=_kept(value, target))


def convert(value: Expr, target: SqlType) -> Expr:
    """The value as `target` where the query has no CAST: the text for EXPLAIN does not show it."""
    target = target.as_nullable(nullable=value.type.nullable or may_overflow(value.type, target))
    if value.type == target:
        return value
    sql = _sql(value, target, "CAST")
    if sql == value.sql:
        return replace(value, type=target)
    return replace(combine([value], sql, target, value.text), keeps=_kept(value, target))


def _kept(value: Expr, target: SqlType) -> str | None:
    return value.identifies if keeps_apart(value.type, target) else None


def keeps_apart(source: SqlType, target: SqlType) -> bool:
    """Whether different values stay different. Fractions do not: they are rounded, and have two zeros."""
    if source.is_integer:
        wide = target.is_integer and INTEGER_DIGITS[target.name] >= INTEGER_DIGITS[source.name]
        exact = target.name == "DECIMAL" and not may_overflow(source, target)
        return wide or exact or _is_plain_string(target)
    if source.name == "DECIMAL" and target.name == "DECIMAL":
        return (source.scale or 0) <= (target.scale or 0) and not may_overflow(source, target)
    if source.name == "VARCHAR" and target.name == "VARCHAR":
        return (source.length or 0) <= (target.length or 0)
    if source.name == "DATE":
        return target.name == "TIMESTAMP" or _is_plain_string(target)
    return source.name in {"BOOLEAN", "DECIMAL"} and _is_plain_string(target)


def _is_plain_string(kind: SqlType) -> bool:
    return kind == STRING.as_nullable(nullable=kind.nullable)


def may_overflow(source: SqlType, target: SqlType) -> bool:
    """Whether a number may be too large for this DECIMAL, and so become NULL."""
    if target.name != "DECIMAL" or not source.is_numeric:
        return False
    if source.name in FRACTIONS:
        return True
    digits = INTEGER_DIGITS.get(source.name, (source.precision or 0) - (source.scale or 0))
    return digits > (target.precision or 0) - (target.scale or 0) or _may_round_up(source, target)


def _may_round_up(source: SqlType, target: SqlType) -> bool:
    """99.9 needs three digits as a DECIMAL(3, 0): two are not enough once it is rounded."""
    whole = (target.precision or 0) - (target.scale or 0)
    exact = source.name != "DECIMAL" or (source.scale or 0) <= (target.scale or 0)
    return not exact and (source.precision or 0) - (source.scale or 0) >= whole


def with_length(value: Expr, target: SqlType, too_long: Literal["trim-pad", "error"]) -> Expr:
    """The value with the length that CHAR, VARCHAR, BINARY and VARBINARY ask for: shortened and padded, or
    an error at run time where it is too long. A value of any other type is returned as it is."""
    length = target.length
    if length is None or target.name not in {"CHAR", "VARCHAR", "BINARY", "VARBINARY"}:
        return value
    measure = "length" if target.is_string else "octet_length"
    fixed = target.name in {"CHAR", "BINARY"}

    def body(parts: Sequence[Expr]) -> str:
        sql = parts[0].sql
        if too_long == "error":
            wrong = f"{measure}({sql}) {'<>' if fixed else '>'} {length}"
            fact = string_literal(f"A value does not have the length of its column, {target.as_nullable()}.")
            return f"CASE WHEN {wrong} THEN raise_error({fact}) ELSE {sql} END"
        pad = "' '" if target.is_string else "X'00'"
        return f"rpad({sql}, {length}, {pad})" if fixed else f"substring({sql}, 1, {length})"

    return combine([value], evaluated_once([value], body), value.type, value.text)


def _sql(value: Expr, target: SqlType, word: str) -> str:
    return evaluated_once([value], lambda parts: _converted(_Job(parts[0].sql, value.type, target, word)))


def _family(t: SqlType) -> str:
    if t.is_string:
        return "STRING"
    if t.is_binary:
        return "BYTES"
    if t.is_integer:
        return "INTEGER"
    return "NUMBER" if t.is_numeric else t.name


def _converted(job: _Job) -> str:
    source, target = _family(job.source), _family(job.target)
    if source == "NULL":
        return f"CAST(NULL AS {job.target.spark()})"
    if job.source.as_nullable() == job.target.as_nullable():
        return job.sql
    rule = _RULES.get((source, target))
    if rule is None:
        raise _refusal(job.source, job.target)
    return rule(job)


def _refusal(source: SqlType, target: SqlType) -> Refused:
    fact = f"A value of type {source.as_nullable()} cannot be cast to {target.as_nullable()}"
    hint = ""
    if source.is_numeric and target.name in {"TIMESTAMP_LTZ", "TIMESTAMP"}:
        hint = "TO_TIMESTAMP_LTZ(number, 3) reads milliseconds, TO_TIMESTAMP_LTZ(number, 0) seconds since 1970."
    elif target.is_numeric and source.name in {"TIMESTAMP_LTZ", "TIMESTAMP"}:
        hint = "EXTRACT(EPOCH FROM value) gives the seconds since 1970."
    return Refused(fact, hint=hint)


def _identity(job: _Job) -> str:
    return job.sql


def _plain(job: _Job) -> str:
    return job.sql if job.source.spark() == job.target.spark() else job.plain()


def _to_number(job: _Job) -> str:
    """Spark's CAST would be an error where Flink's gives NULL: a number too large for its DECIMAL."""
    return replace(job, word="TRY_CAST").plain() if may_overflow(job.source, job.target) else _plain(job)


def _to_text(job: _Job) -> str:
    """Any value as a string, then shortened or padded to the length that the type asks for."""
    text = job.sql if job.source.is_string else string_of(job.sql, job.source, job.depth)
    length = job.target.length
    if length is None or job.target.name == "STRING" or job.source.as_nullable() == job.target.as_nullable():
        return text
    return f"rpad({text}, {length}, ' ')" if job.target.name == "CHAR" else f"left({text}, {length})"


def _to_bytes(job: _Job) -> str:
    binary = job.sql if job.source.is_binary else f"CAST({job.sql} AS BINARY)"
    length = job.target.length
    if length is None or job.target.name == "BYTES":
        return binary
    return f"rpad({binary}, {length}, X'00')" if job.target.name == "BINARY" else f"substring({binary}, 1, {length})"


def _string_to_integer(job: _Job) -> str:
    """Spark's cast first, which is quick; only a string that it does not take is looked at again."""
    whole = f"regexp_replace({job.sql}, {string_literal(_WHOLE_PART)}, '$1')"
    kind = job.target.spark()
    return f"coalesce(TRY_CAST({job.sql} AS {kind}), {job.word}({whole} AS {kind}))"


def _without_zone(text: str) -> str:
    """A string that names a zone is made one that no cast takes: Spark would drop the zone."""
    return f"regexp_replace({text}, {string_literal(_ZONE)}, 'no time zone expected: $1$2')"


def _string_to_timestamp(job: _Job) -> str:
    value = f"{job.word}({_without_zone(job.sql)} AS TIMESTAMP_NTZ)"
    return truncated(value, job.target.precision or 0)


def _string_to_instant(job: _Job) -> str:
    return truncated(f"{job.word}({job.sql} AS TIMESTAMP)", job.target.precision or 0)


def _string_to_time(job: _Job) -> str:
    timestamp = f"{job.word}(concat('1970-01-01 ', trim({job.sql})) AS TIMESTAMP_NTZ)"
    return millis_of_day(timestamp, job.target.precision or 0)


def _to_time(job: _Job) -> str:
    timestamp = job.sql if job.source.name == "TIMESTAMP" else f"CAST({job.sql} AS TIMESTAMP_NTZ)"
    return millis_of_day(timestamp, job.target.precision or 0)


def _time_to_time(job: _Job) -> str:
    precision = job.target.precision or 0
    if precision >= min(job.source.precision or 0, 3):
        return job.sql
    return f"({job.sql} - {job.sql} % {10 ** (3 - precision)})"


def _time_to_timestamp(job: _Job) -> str:
    """A TIME is that time on the first day of 1970."""
    timestamp = from_millis(job.sql)
    return timestamp if job.target.name == "TIMESTAMP" else f"CAST({timestamp} AS TIMESTAMP)"


def _timestamp_to_timestamp(job: _Job) -> str:
    value = _plain(job)
    shorter = (job.target.precision or 0) < (job.source.precision or 0)
    return truncated(value, job.target.precision or 0) if shorter else value


def _array(job: _Job) -> str:
    assert job.source.element is not None
    assert job.target.element is not None
    variable = lambda_name(job.depth)
    inner = job.inner(variable, job.source.element, job.target.element)
    # Spark casts whole arrays and maps in generated code; a lambda is several times slower, and needed only where
    # Flink's rule for the elements differs.
    if inner in (variable, f"{job.word}({variable} AS {job.target.element.spark()})"):
        return _plain(job)
    return f"transform({job.sql}, {variable} -> {inner})"


def _map(job: _Job) -> str:
    assert job.source.key is not None
    assert job.target.key is not None
    assert job.source.element is not None
    assert job.target.element is not None
    entry = lambda_name(job.depth)
    key = job.inner(f"{entry}.key", job.source.key, job.target.key)
    value = job.inner(f"{entry}.value", job.source.element, job.target.element)
    simple_key = key in (f"{entry}.key", f"{job.word}({entry}.key AS {job.target.key.spark()})")
    if simple_key and value in (f"{entry}.value", f"{job.word}({entry}.value AS {job.target.element.spark()})"):
        return _plain(job)
    return f"map_from_entries(transform(map_entries({job.sql}), {entry} -> struct({key}, {value})))"


def _row(job: _Job) -> str:
    """Field by field, by place: names do not matter."""
    if len(job.source.fields) != len(job.target.fields):
        raise _refusal(job.source, job.target)
    parts = []
    for source, target in zip(job.source.fields, job.target.fields, strict=True):
        # Without the CASE a NULL row would become a row of NULLs.
        field = f"({job.sql}).{quote_name(source.name)}"
        parts.append(f"{string_literal(target.name)}, {job.inner(field, source.type, target.type)}")
    return f"CASE WHEN {job.sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


_SCALARS = ("BOOLEAN", "INTEGER", "NUMBER", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "BYTES", "STRING")
_NESTED = ("ARRAY", "MAP", "MULTISET", "ROW")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_RULES: dict[tuple[str, str], Callable[[_Job], str]] = {
    **{(source, "STRING"): _to_text for source in (*_SCALARS, *_NESTED)},
    **{(a, b): _plain for a in ("BOOLEAN", "INTEGER", "NUMBER") for b in ("BOOLEAN", "INTEGER", "NUMBER")},
    **{(a, "NUMBER"): _to_number for a in ("INTEGER", "NUMBER")},
    ("STRING", "BOOLEAN"): _plain,
    ("STRING", "INTEGER"): _string_to_integer,
    ("STRING", "NUMBER"): _plain,
    ("STRING", "DATE"): _plain,
    ("STRING", "TIME"): _string_to_time,
    ("STRING", "TIMESTAMP"): _string_to_timestamp,
    ("STRING", "TIMESTAMP_LTZ"): _string_to_instant,
    ("STRING", "BYTES"): _to_bytes,
    ("BYTES", "BYTES"): _to_bytes,
    **{("DATE", b): _plain for b in _TIMESTAMPS},
    **{(a, b): _timestamp_to_timestamp for a in _TIMESTAMPS for b in _TIMESTAMPS},
    **{(a, "DATE"): _plain for a in _TIMESTAMPS},
    **{(a, "TIME"): _to_time for a in _TIMESTAMPS},
    **{("TIME", b): _time_to_timestamp for b in _TIMESTAMPS},
    ("TIME", "TIME"): _time_to_time,
    ("INTERVAL DAY", "INTERVAL DAY"): _identity,
    ("INTERVAL YEAR", "INTERVAL YEAR"): _identity,
    ("ARRAY", "ARRAY"): _array,
    ("MULTISET", "MULTISET"): _plain,
    ("MAP", "MAP"): _map,
    ("ROW", "ROW"): _row,
}
