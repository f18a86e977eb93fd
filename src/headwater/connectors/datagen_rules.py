"""What the options of `datagen` must keep to: a wrong number would otherwise fail the job, or be passed over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from headwater.options.problems import Problem

if TYPE_CHECKING:
    from headwater.catalog.tables import Table
    from headwater.sql.types import SqlType

__all__ = ["BITS", "value_problems"]

BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def value_problems(table: Table) -> Iterator[Problem]:
    for key in ("rows-per-second", "scan.parallelism"):
        given = table.options.integer(key)
        if given is not None and given < 1:
            yield Problem(f"'{key}' must be greater than zero.", key=key)
    if (table.options.integer("number-of-rows") or 0) < 0:
        yield Problem("'number-of-rows' must not be negative.", key="number-of-rows")
    for column in table.physical_columns:
        prefix = f"fields.{column.name}."
        yield from _column_problems(table, prefix, column.type)
        for key in table.raw_options:
            if key.startswith(prefix) and "." in key.removeprefix(prefix):
                yield Problem(f"'{key}' is for a field inside of a column; only columns have options.", key=key)


def _column_problems(table: Table, prefix: str, kind: SqlType) -> Iterator[Problem]:
    options = table.options.values
    is_sequence = options.get(f"{prefix}kind") == "sequence"
    read = _whole_number if is_sequence or kind.is_integer else _number
    yield from _range_problems(table, [prefix + end for end in _ENDS[is_sequence]], kind, read)
    length, share = options.get(f"{prefix}length"), options.get(f"{prefix}null-rate")
    if length is not None and length < 1:
        yield Problem(f"'{prefix}length' must be greater than zero.", key=f"{prefix}length")
    rate = _number(share or "0")
    if rate is None or not 0 <= rate <= 1:
        yield Problem(f"'{prefix}null-rate' = '{share}' is no number between 0 and 1.", key=f"{prefix}null-rate")


_ENDS = {True: ("start", "end"), False: ("min", "max")}


def _range_problems(
    table: Table, ends: list[str], kind: SqlType, read: Callable[[str], Decimal | None]
) -> Iterator[Problem]:
    found: list[Decimal] = []
    for key in ends:
        text = table.options.values.get(key)
        number = read(text) if text is not None else None
        if text is not None and number is None:
            yield Problem(f"'{key}' = '{text}' is no {'whole ' if read is _whole_number else ''}number.", key=key)
        elif number is not None and not _fits(number, kind):
            yield Problem(f"'{key}' = '{text}' is no value of {kind.as_nullable()}.", key=key)
        elif number is not None:
            found.append(number)
    if len(found) == len(ends) and found != sorted(found):
        yield Problem(f"'{ends[0]}' must not be greater than '{ends[1]}'.", key=ends[0])


def _whole_number(text: str) -> Decimal | None:
    try:
        return Decimal(int(text))
    except ValueError:
        return None


def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _fits(number: Decimal, kind: SqlType) -> bool:
    if kind.is_integer:
        half = 1 << (BITS[kind.name] - 1)
        return -half <= number < half
    if kind.name == "DECIMAL":
        return abs(number) <= Decimal(10) ** ((kind.precision or 0) - (kind.scale or 0)) - 1
    return True
