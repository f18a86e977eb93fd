"""INTERVAL literals: the units, and what a string such as '1 10:20:30.5' is worth in them."""

from __future__ import annotations

import re

from sqlglot import exp

__all__ = ["DAY_UNITS", "UNITS", "YEAR_UNITS", "interval_amount", "interval_parts", "units_of"]

YEAR_UNITS = ("YEAR", "MONTH")
DAY_UNITS = ("DAY", "HOUR", "MINUTE", "SECOND")
UNITS = (*YEAR_UNITS, *DAY_UNITS)

_MONTHS = {"YEAR": 12, "MONTH": 1}
_MICROS = {"DAY": 86_400_000_000, "HOUR": 3_600_000_000, "MINUTE": 60_000_000, "SECOND": 1_000_000}
# How the part for a unit is joined to the part before it: '1-2' YEAR TO MONTH, '1 10:20:30.5' DAY TO SECOND.
_SEPARATOR = {"MONTH": "-", "HOUR": " ", "MINUTE": ":", "SECOND": ":"}


def interval_amount(node: exp.Interval) -> tuple[str, int]:
    """What an INTERVAL literal is worth: ('months', n) or ('micros', n). The parser has checked its form."""
    units = units_of(node)
    text = node.this.name
    sign = -1 if text.strip().startswith("-") else 1
    pairs = list(zip(units, interval_parts(text, units) or [], strict=True))
    if units[0] in _MONTHS:
        return "months", sign * sum(int(part) * _MONTHS[unit] for unit, part in pairs)
    return "micros", sign * sum(_micros(unit, part) for unit, part in pairs)


def _micros(unit: str, text: str) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole or 0) * _MICROS[unit] + int(fraction.ljust(6, "0")[:6] or 0)


def units_of(node: exp.Interval) -> tuple[str, ...]:
    """All units that the literal has a part for: DAY TO MINUTE is DAY, HOUR and MINUTE."""
    unit = node.args["unit"]
    if isinstance(unit, exp.IntervalSpan):
        first, last = UNITS.index(unit.this.name), UNITS.index(unit.expression.name)
        return UNITS[first : last + 1]
    return (unit.name,)


def interval_parts(text: str, units: tuple[str, ...]) -> list[str] | None:
    """The text without its sign, cut at its units; None if it does not have that form."""
    pattern = "".join(
        (re.escape(_SEPARATOR[u]) if i else "") + (r"(\d+(?:\.\d{0,9})?)" if u == "SECOND" else r"(\d+)")
        for i, u in enumerate(units)
    )
    found = re.fullmatch(pattern, text.strip().lstrip("+-").strip())
    return list(found.groups()) if found else None
