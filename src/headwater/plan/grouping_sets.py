"""GROUP BY with GROUPING SETS, ROLLUP and CUBE: which sets of groups there are, and GROUPING and GROUPING_ID."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

from sqlglot import exp

from headwater.errors import SqlError
from headwater.sql.expressions.calls import called_name
from headwater.sql.expressions.compiler import Locate
from headwater.sql.typed import Expr
from headwater.sql.types import BIGINT

__all__ = ["grouping_bits", "grouping_sets", "has_grouping_sets", "is_grouping_call"]

_GROUPING_CALLS = ("GROUPING", "GROUPING_ID")
MOST_SETS = 64

Set = tuple[exp.Expr, ...]


def has_grouping_sets(items: Sequence[exp.Expr]) -> bool:
    return any(isinstance(item, exp.GroupingSets | exp.Rollup | exp.Cube) for item in items)


def grouping_sets(items: Sequence[exp.Expr], locate: Locate) -> list[Set]:
    """The sets of `GROUP BY a, ROLLUP (b, c)`: each item stands for several, of which one is taken for each set."""
    sets = [sum(chosen, ()) for chosen in product(*map(_sets, items))]
    if len(sets) > MOST_SETS:
        raise SqlError(
            f"GROUP BY has {len(sets)} grouping sets; {MOST_SETS} are supported.",
            position=locate(items[0]),
            hint="Write the sets that are needed as GROUPING SETS (…).",
        )
    return sets


def _sets(item: exp.Expr) -> list[Set]:
    match item:
        case exp.GroupingSets():
            return [one for inner in item.expressions for one in _sets(inner)]
        case exp.Rollup():
            parts = [_members(part) for part in item.expressions]
            return [sum(parts[:length], ()) for length in range(len(parts), -1, -1)]
        case exp.Cube():
            parts = [_members(part) for part in item.expressions]
            chosen = [c for length in range(len(parts), -1, -1) for c in combinations(parts, length)]
            return [sum(one, ()) for one in chosen]
    return [_members(item)]


def _members(item: exp.Expr) -> Set:
    """`(a, b)` is one group of two expressions in ROLLUP and CUBE, and a set of two in GROUPING SETS."""
    if isinstance(item, exp.Tuple):
        return tuple(item.expressions)
    return (item.this,) if isinstance(item, exp.Paren) else (item,)


def is_grouping_call(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and called_name(tree) in _GROUPING_CALLS


def grouping_bits(number: str, bits: int, groups: Sequence[int | None], text: str) -> Expr:
    """GROUPING_ID of groups: `number` is the column with the number of the set, which has so many bits, and each
    group's bit in it is given; None is a group of every set, whose bit is 0."""
    parts = [
        f"shiftleft(shiftright(`{number}`, {bit}) & 1L, {place})"
        for place, bit in enumerate(reversed(groups))
        if bit is not None
    ]
    kind = BIGINT.not_null()
    if not parts:
        return Expr("0L", kind, frozenset(), text, literal=0)
    if list(groups) == list(range(bits - 1, -1, -1)):
        return Expr(f"`{number}`", kind, frozenset({number}), text, column=number)
    return Expr(f"({' | '.join(parts)})", kind, frozenset({number}), text)
