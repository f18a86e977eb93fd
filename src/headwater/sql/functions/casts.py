"""CAST and TRY_CAST between all of Flink's types, as Spark SQL.

What Spark's own cast does differently, and is done here as Flink does it: '12.7' is 12 as an INT; TRUE is 'TRUE';
a TIMESTAMP(3) is written with three digits; a text with a time zone is no TIMESTAMP; a TIME is an INT; a CHAR(5) has
five characters; '[a, NULL]', '{k=v}' and '(1, x)' are the texts of nested values. One thing is stricter than in
Flink: a number that does not fit its type is an error in CAST (Flink wraps whole numbers around, and makes a decimal
NULL). Two are wider: a text with 'T' between date and time is a TIMESTAMP, and blanks around a text are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headwater.plan.expression import Expr
from headwater.sql.functions.cast_text import text_of
from headwater.sql.functions.moments import from_millis, millis_of_day, truncated
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once, lambda_name, quoted_name, quoted_text
from headwater.sql.types import SqlType

__all__ = ["cast", "convert"]

_WHOLE_PART = r"^(\s*[+-]?\d*)\.\d*\s*$"
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


def cast(value: Expr, target: SqlType, *, or_null: bool = False) -> Expr:
    """`CAST(value AS target)` as a user may write it; with `or_null` TRY_CAST. Refuses what Flink refuses."""
    name = "TRY_CAST" if or_null else "CAST"
    target = target.as_nullable(value.type.nullable or or_null)
    sql = _sql(value, target, name)
    result = combine([value], sql, target, f"{name}({value.text} AS {target.as_nullable()})")
    return replace(result, column=value.column if sql == value.sql else None)


def convert(value: Expr, target: SqlType) -> Expr:
    """The value as `target` where the query has no CAST: the text for EXPLAIN does not show it."""
    target = target.as_nullable(value.type.nullable)
    if value.type == target:
        return value
    sql = _sql(value, target, "CAST")
    if sql == value.sql:
        return replace(value, type=target)
    return combine([value], sql, target, value.text)


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


def _to_text(job: _Job) -> str:
    """Any value as text, then shortened or padded to the length that the type asks for."""
    text = job.sql if job.source.is_string else text_of(job.sql, job.source, job.depth)
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


def _text_to_integer(job: _Job) -> str:
    """Spark's cast first, which is quick; only a text that it does not take is looked at again."""
    whole = f"regexp_replace({job.sql}, {quoted_text(_WHOLE_PART)}, '$1')"
    kind = job.target.spark()
    return f"coalesce(TRY_CAST({job.sql} AS {kind}), {job.word}({whole} AS {kind}))"


def _without_zone(text: str) -> str:
    """A text that names a zone is made one that no cast takes: Spark would drop the zone."""
    return f"regexp_replace({text}, {quoted_text(_ZONE)}, 'no time zone expected: $1$2')"


def _text_to_timestamp(job: _Job) -> str:
    value = f"{job.word}({_without_zone(job.sql)} AS TIMESTAMP_NTZ)"
    return truncated(value, job.target.precision or 0)


def _text_to_instant(job: _Job) -> str:
    return truncated(f"{job.word}({job.sql} AS TIMESTAMP)", job.target.precision or 0)


def _text_to_time(job: _Job) -> str:
    moment = f"{job.word}(concat('1970-01-01 ', trim({job.sql})) AS TIMESTAMP_NTZ)"
    return millis_of_day(moment, job.target.precision or 0)


def _to_time(job: _Job) -> str:
    moment = job.sql if job.source.name == "TIMESTAMP" else f"CAST({job.sql} AS TIMESTAMP_NTZ)"
    return millis_of_day(moment, job.target.precision or 0)


def _time_to_time(job: _Job) -> str:
    precision = job.target.precision or 0
    if precision >= min(job.source.precision or 0, 3):
        return job.sql
    return f"({job.sql} - {job.sql} % {10 ** (3 - precision)})"


def _time_to_moment(job: _Job) -> str:
    """A TIME is that time on the first day of 1970."""
    moment = from_millis(job.sql)
    return moment if job.target.name == "TIMESTAMP" else f"CAST({moment} AS TIMESTAMP)"


def _moment_to_moment(job: _Job) -> str:
    value = _plain(job)
    shorter = (job.target.precision or 0) < (job.source.precision or 0)
    return truncated(value, job.target.precision or 0) if shorter else value


def _array(job: _Job) -> str:
    assert job.source.element is not None
    assert job.target.element is not None
    variable = lambda_name(job.depth)
    inner = job.inner(variable, job.source.element, job.target.element)
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
        field = f"({job.sql}).{quoted_name(source.name)}"
        parts.append(f"{quoted_text(target.name)}, {job.inner(field, source.type, target.type)}")
    return f"CASE WHEN {job.sql} IS NOT NULL THEN named_struct({', '.join(parts)}) END"


_SCALARS = ("BOOLEAN", "INTEGER", "NUMBER", "DATE", "TIME", "TIMESTAMP", "TIMESTAMP_LTZ", "BYTES", "STRING")
_NESTED = ("ARRAY", "MAP", "MULTISET", "ROW")
_MOMENTS = ("TIMESTAMP", "TIMESTAMP_LTZ")
_RULES: dict[tuple[str, str], Callable[[_Job], str]] = {
    **{(source, "STRING"): _to_text for source in (*_SCALARS, *_NESTED)},
    **{(a, b): _plain for a in ("BOOLEAN", "INTEGER", "NUMBER") for b in ("BOOLEAN", "INTEGER", "NUMBER")},
    ("STRING", "BOOLEAN"): _plain,
    ("STRING", "INTEGER"): _text_to_integer,
    ("STRING", "NUMBER"): _plain,
    ("STRING", "DATE"): _plain,
    ("STRING", "TIME"): _text_to_time,
    ("STRING", "TIMESTAMP"): _text_to_timestamp,
    ("STRING", "TIMESTAMP_LTZ"): _text_to_instant,
    ("STRING", "BYTES"): _to_bytes,
    ("BYTES", "BYTES"): _to_bytes,
    **{("DATE", b): _plain for b in _MOMENTS},
    **{(a, b): _moment_to_moment for a in _MOMENTS for b in _MOMENTS},
    **{(a, "DATE"): _plain for a in _MOMENTS},
    **{(a, "TIME"): _to_time for a in _MOMENTS},
    **{("TIME", b): _time_to_moment for b in _MOMENTS},
    ("TIME", "TIME"): _time_to_time,
    ("INTERVAL DAY", "INTERVAL DAY"): _identity,
    ("INTERVAL YEAR", "INTERVAL YEAR"): _identity,
    ("ARRAY", "ARRAY"): _array,
    ("MULTISET", "MULTISET"): _plain,
    ("MAP", "MAP"): _map,
    ("ROW", "ROW"): _row,
}
