"""docs/functions.md, written from the registry: `python -m headwater.sql.functions.docs FILE`."""

from __future__ import annotations

import sys
from pathlib import Path

from headwater.sql.functions import REGISTRY
from headwater.sql.functions.forms import FORMS

__all__ = ["functions_page"]

_HEAD = """# Functions and operators

<!-- Written by `python -m headwater.sql.functions.docs docs/functions.md`; do not edit. -->

Expressions mean what they mean in Flink SQL and run as Spark SQL. A function that is not listed is an error, with the
closest name as a hint. In the tables `[, …]` stands around what may be left out, `…` behind what may be repeated, and
`T` is one type for all arguments that have it. A result is NULL if an argument is, unless the meaning says otherwise.

## Operators

| written | meaning |
|---|---|
| `a + b` `a - b` `a * b` `a / b` `a % b` | arithmetic; whole numbers divide to whole numbers, towards zero |
| `t + INTERVAL '1' DAY` `t - INTERVAL '2' MONTH` | a date or time moved; `INTERVAL '1' DAY * n` |
| `s \\|\\| s` | texts joined |
| `=` `<>` `<` `<=` `>` `>=` | comparisons; NULL if a side is NULL |
| `a IS [NOT] DISTINCT FROM b` | comparison in which NULL equals NULL; never NULL |
| `a [NOT] BETWEEN [SYMMETRIC] b AND c` `a [NOT] IN (b, c)` | |
| `s [NOT] LIKE p [ESCAPE c]` `s [NOT] SIMILAR TO p` | `%` and `_`; there is no escape character unless one is named |
| `AND` `OR` `NOT` `IS [NOT] NULL, TRUE, FALSE, UNKNOWN` | logic with three values |
| `s IS [NOT] JSON [VALUE, SCALAR, ARRAY, OBJECT]` | whether a text is JSON |
| `CASE … END` | the first branch whose condition is true |
| `a[1]` `m['key']` `r.field` `r['field']` | an element (from 1), a value, a field; NULL if there is none |
| `ARRAY[…]` `MAP[key, value, …]` `ROW(…)` | a new array, map or row with the fields `EXPR$0`, `EXPR$1`, … |

## Types

Whole numbers meet in the wider type; with a DECIMAL they count as DECIMAL(3, 0) to DECIMAL(19, 0); DECIMAL with FLOAT
or DOUBLE is DOUBLE. Decimal results: `a + b` has the scale max(s1, s2) and one digit more than needed, `a * b` the
scale s1 + s2 and the precision p1 + p2 + 1, `a / b` the scale max(6, s1 + p2 + 1); beyond 38 digits the scale gives
way, down to 6. `1` is INT, `3000000000` BIGINT, `1.50` DECIMAL(3, 2), `1e0` DOUBLE, `'a'` STRING.

A text and a DATE, TIME or TIMESTAMP are compared as the latter. A text and a number are never compared: CAST one of
them. TIMESTAMP and TIMESTAMP_LTZ meet in the session's time zone.

## Where it differs from Flink

* A number that does not fit its type is an error: in arithmetic, in CAST, in TIMESTAMPDIFF. Flink wraps whole numbers
  around and makes decimals NULL. TRY_CAST gives NULL here.
* FLOAT with DOUBLE is DOUBLE, whichever comes first. `INTERVAL '1' WEEK` is seven days and a QUARTER three months.
* TIMESTAMP keeps six digits of a second, not nine. TIME(3) keeps its milliseconds.
* CAST of a text to a time also takes `T` between date and time; to TIMESTAMP_LTZ also a time zone.
* An invalid regular expression is an error. A group that took no part in a match is empty, not NULL.
* Wildcards in JSON paths are refused.
* JSON_VALUE … RETURNING gives what ON ERROR says for a value of another type; Flink fails.
* `EXTRACT(EPOCH FROM instant)` is the same in every time zone.
* DATE_FORMAT of a TIMESTAMP within the hour that the session's time zone skips shows the hour after it; in UTC there is
  no such hour. The pattern letters Y, w, W, e, c, A, n, N, B and p are refused.
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
    for form in FORMS.values():
        families.setdefault(form.family, []).append((form.written, "", form.meaning))
    parts = [_HEAD.rstrip()]
    parts += [f"## {family}\n\n{_table(sorted(rows))}" for family, rows in families.items()]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(functions_page(), encoding="utf-8")
