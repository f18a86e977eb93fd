"""docs/functions.md, written from the registry: `python -m headwater.sql.functions.docs FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from headwater.sql.functions import REGISTRY
from headwater.sql.functions.special_calls import SPECIAL_CALLS

__all__ = ["functions_page"]

_HEAD = """# Functions and operators

<!-- Written by `python -m headwater.sql.functions.docs docs/functions.md`; do not edit. -->

Expressions have the meaning they have in Flink SQL and are evaluated by Spark SQL. A function that is not listed is an
error, with the closest name as a hint. In the tables, `[, …]` encloses optional arguments, `…` follows an argument that
may be repeated, and `T` stands for one type in all places. A result is NULL if an argument is NULL, unless stated
otherwise. [Plugins](plugins.md) can add functions.

## Operators

| written | meaning |
|---|---|
| `a + b` `a - b` `a * b` `a / b` `a % b` | arithmetic; integer division truncates towards zero |
| `t + INTERVAL '1' DAY` `t - INTERVAL '2' MONTH` | date and time arithmetic; also `INTERVAL '1' DAY * n` |
| `s \\|\\| s` | concatenation |
| `=` `<>` `<` `<=` `>` `>=` | comparisons; NULL if an operand is NULL |
| `a IS [NOT] DISTINCT FROM b` | comparison in which NULL equals NULL; never NULL |
| `a [NOT] BETWEEN [SYMMETRIC] b AND c` `a [NOT] IN (b, c)` | |
| `s [NOT] LIKE p [ESCAPE c]` `s [NOT] SIMILAR TO p` | patterns with `%` and `_`; no escape character by default |
| `AND` `OR` `NOT` `IS [NOT] NULL, TRUE, FALSE, UNKNOWN` | three-valued logic |
| `s IS [NOT] JSON [VALUE, SCALAR, ARRAY, OBJECT]` | whether a string is JSON |
| `CASE … END` | the first branch whose condition is true |
| `a[1]` `m['key']` `r.field` `r['field']` | an element (from 1), a value, a field; NULL if it does not exist |
| `ARRAY[…]` `MAP[key, value, …]` `ROW(…)` | a new array, map or row with the fields `EXPR$0`, `EXPR$1`, … |

## Types

| operands | result |
|---|---|
| two integer types | the wider one |
| an integer type and a `DECIMAL` | the integer counts as `DECIMAL(3, 0)` to `DECIMAL(19, 0)` |
| `DECIMAL` and `FLOAT` or `DOUBLE`; `FLOAT` and `DOUBLE` | `DOUBLE` |
| `DECIMAL(p1, s1) + DECIMAL(p2, s2)`, and `-` | scale max(s1, s2), and one digit more than needed |
| `DECIMAL(p1, s1) * DECIMAL(p2, s2)` | precision p1 + p2 + 1, scale s1 + s2 |
| `DECIMAL(p1, s1) / DECIMAL(p2, s2)` | scale max(6, s1 + p2 + 1) |
| a string and a `DATE`, `TIME` or `TIMESTAMP`, compared | the string is cast |
| a string and a number, compared | an error: `CAST` one of them |
| `TIMESTAMP` and `TIMESTAMP_LTZ` | converted in the session's time zone |

Beyond 38 digits, the scale of a decimal is reduced, down to 6. Literals: `1` is `INT`, `3000000000` is `BIGINT`, `1.50`
is `DECIMAL(3, 2)`, `1e0` is `DOUBLE`, `'a'` is `STRING`.

## Aggregates

All of them take a `FILTER (WHERE …)` and are exact while rows are updated and deleted. NULLs are skipped, except by
`COUNT(*)` and `ARRAY_AGG`.

| aggregate | result | meaning |
|---|---|---|
| `COUNT(*)` `COUNT([DISTINCT] x)` | BIGINT | rows; values |
| `APPROX_COUNT_DISTINCT(x)` | BIGINT | different values, counted exactly |
| `SUM([DISTINCT] x)` `AVG([DISTINCT] x)` | the type of x, or `DECIMAL(38, s)` | that of whole numbers is truncated |
| `MIN(x)` `MAX(x)` | the type of x | |
| `VAR_POP(x)` `VAR_SAMP(x)` `VARIANCE(x)` | that of `AVG(x)` | variance of the population; of a sample, twice |
| `STDDEV_POP(x)` `STDDEV_SAMP(x)` `STDDEV(x)` | that of `AVG(x)` | standard deviation; `CAST` integers for a fraction |
| `FIRST_VALUE(x)` `LAST_VALUE(x)` | the type of x | in the order in which rows come |
| `LISTAGG([DISTINCT] s [, separator])` | STRING | the strings in the order in which they come, with `,` between them |
| `ARRAY_AGG([DISTINCT] x [IGNORE NULLS])` | ARRAY\\<T> | the values in the order in which they come |
| `COLLECT([DISTINCT] x)` | MULTISET\\<T> | how often each value is there |
| `JSON_ARRAYAGG(x [NULL, ABSENT ON NULL])` | STRING | a JSON array of the values in the order in which they come |
| `JSON_OBJECTAGG(KEY k VALUE x [NULL, ABSENT ON NULL])` | STRING | a JSON object; of equal keys the last one counts |
| `GROUPING(g)` `GROUPING_ID(g, …)` | BIGINT | bits: 1 for a group that is not in the row's grouping set |

The order in which rows come is that of the offsets of a partition; rows of different partitions, and changes of
different keys in an updating input, come in any order. An update moves its value to the end, and a retraction removes
the oldest of equal values. Variances of `DECIMAL` are computed as `DOUBLE`.

## Where it differs from Flink

* A number that does not fit its type is an error: in arithmetic, in CAST, in TIMESTAMPDIFF. Flink wraps integers around
  and makes decimals NULL. TRY_CAST gives NULL here.
* FLOAT with DOUBLE is DOUBLE, whichever comes first. `INTERVAL '1' WEEK` is seven days and a QUARTER three months.
* TIMESTAMP keeps six digits of a second, not nine. TIME(3) keeps its milliseconds.
* CAST of a string to a timestamp also accepts `T` between date and time; to TIMESTAMP_LTZ also a time zone.
* An invalid regular expression is an error. A group that did not take part in a match is empty, not NULL.
* Wildcards in JSON paths are rejected.
* Rejected, with what to do instead: OVERLAPS, CURRENT_DATABASE, JSON (inside JSON_OBJECT and JSON_ARRAY), PARSE_JSON,
  TRY_PARSE_JSON, OBJECT_OF, OBJECT_UPDATE, SOURCE_WATERMARK, PERCENTILE.
* JSON_VALUE … RETURNING gives what ON ERROR says for a value of another type; Flink fails.
* `EXTRACT(EPOCH FROM instant)` is the same in every time zone.
* DATE_FORMAT of a TIMESTAMP within the hour that the session's time zone skips shows the hour after it; in UTC there is
  no such hour. The pattern letters Y, w, W, e, c, A, n, N, B and p are rejected.
"""


def _table(rows: list[tuple[str, str, str]]) -> str:
    lines = ["| function | result | meaning |", "|---|---|---|"]
    lines += [f"| `{written}` | {_cell(result)} | {_cell(meaning)} |" for written, result, meaning in rows]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "\\<")


def functions_page() -> str:
    """The whole page."""
    families: dict[str, list[tuple[str, str, str]]] = {}
    for group in REGISTRY.functions.values():
        for function in group:
            row = (function.signature.text, function.signature.result, function.meaning)
            families.setdefault(function.family, []).append(row)
    for form in SPECIAL_CALLS.values():
        families.setdefault(form.family, []).append((form.written, "", form.meaning))
    parts = [_HEAD.rstrip()]
    parts += [f"## {family}\n\n{_table(sorted(rows))}" for family, rows in families.items()]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(functions_page(), encoding="utf-8")
