"""Conditions on times: which of them make an interval, and joins with the version of a row that was valid at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.plan.nodes import Mode, Node, Project, Rank, TimeKind, column_reference
from headwater.plan.predicates import unwrapped
from headwater.sql.typed import Expr
from headwater.sql.types import BIGINT

__all__ = ["Interval", "event_time", "interval_of", "versions"]

Compile = Callable[[exp.Expr], Expr]

_MIRRORED: dict[type[exp.Expr], type[exp.Expr]] = {
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
    exp.EQ: exp.EQ,
}

_FIRST = Expr("1L", BIGINT.not_null(), frozenset(), "1")
"""The number of a row that is the only one of its rank."""


@dataclass(frozen=True)
class Interval:
    """right time - left time is from `low` to `high`, in microseconds. `rest` are the conditions that say other
    things."""

    left_time: str
    right_time: str
    low: int
    high: int
    rest: tuple[exp.Expr, ...]


@dataclass(frozen=True)
class _Bound:
    left_time: str
    right_time: str
    low: int | None = None
    high: int | None = None


def interval_of(conditions: Sequence[exp.Expr], left: Node, right: Node, compile_: Compile) -> Interval | None:
    """The interval that conditions on one time attribute of each side make, if it has two ends."""
    bounds: dict[tuple[str, str], list[tuple[_Bound, exp.Expr]]] = {}
    for condition in conditions:
        for part in _parts(condition):
            bound = _bound(part, left, right, compile_)
            if bound is not None:
                bounds.setdefault((bound.left_time, bound.right_time), []).append((bound, condition))
    for (left_time, right_time), found in bounds.items():
        low = max((b.low for b, _ in found if b.low is not None), default=None)
        high = min((b.high for b, _ in found if b.high is not None), default=None)
        # Open at one end, rows could never be removed: that is a regular join with state for good.
        if low is not None and high is not None:
            used = [tree for _, tree in found]
            return Interval(left_time, right_time, low, high, tuple(c for c in conditions if c not in used))
    return None


def _parts(condition: exp.Expr) -> list[exp.Expr]:
    tree = unwrapped(condition)
    if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
        low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
        return [low, exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())]
    return [tree]


def _bound(tree: exp.Expr, left: Node, right: Node, compile_: Compile) -> _Bound | None:
    """left time + a <= right time + b says that right time - left time >= a - b."""
    kind = type(tree)
    if kind not in _MIRRORED or not isinstance(tree, exp.Binary):
        return None
    here, there = _point(tree.left, compile_), _point(tree.right, compile_)
    if here is None or there is None:
        return None
    (first, a), (second, b) = here, there
    if first in right.times and second in left.times:
        (first, a), (second, b), kind = (second, b), (first, a), _MIRRORED[kind]
    if not _comparable(left, first, right, second):
        return None
    # In whole microseconds, the precision of all times here: that makes < the same as <= with a bound of one more.
    difference = a - b
    match kind:
        case exp.EQ:
            return _Bound(first, second, difference, difference)
        case exp.LT | exp.LTE:
            return _Bound(first, second, low=difference + (kind is exp.LT))
    return _Bound(first, second, high=difference - (kind is exp.GT))


def _comparable(left: Node, left_time: str, right: Node, right_time: str) -> bool:
    """Whether both are time attributes of one kind and type."""
    kinds = left.times.get(left_time), right.times.get(right_time)
    if kinds[0] is None or kinds[0] is not kinds[1]:
        return False
    # A TIMESTAMP and a TIMESTAMP_LTZ differ by the session's time zone, which no constant interval can express.
    types = [c.type.name for c in left.columns if c.name == left_time]
    return types == [c.type.name for c in right.columns if c.name == right_time]


def _point(tree: exp.Expr, compile_: Compile) -> tuple[str, int] | None:
    """A column, and the interval that is added to it."""
    tree = unwrapped(tree)
    if isinstance(tree, exp.Add | exp.Sub):
        point, amount = _point(tree.left, compile_), _amount(tree.right, compile_)
        if point is None and isinstance(tree, exp.Add):
            point, amount = _point(tree.right, compile_), _amount(tree.left, compile_)
        if point is None or amount is None:
            return None
        return point[0], point[1] + (amount if isinstance(tree, exp.Add) else -amount)
    if not isinstance(tree, exp.Column | exp.Dot):
        return None
    column = compile_(tree).column
    return (column, 0) if column is not None else None


def _amount(tree: exp.Expr, compile_: Compile) -> int | None:
    """An interval in microseconds; one of months has no length."""
    tree = unwrapped(tree)
    if not isinstance(tree, exp.Interval):
        return None
    compiled = compile_(tree)
    if compiled.type.name != "INTERVAL DAY" or not isinstance(compiled.literal, int):
        return None
    return compiled.literal


def event_time(node: Node) -> str | None:
    """The only column with event time."""
    found = [name for name, kind in node.times.items() if kind is TimeKind.EVENT]
    return found[0] if len(found) == 1 else None


def versions(node: Node) -> Node:
    """Of a query that keeps the last row of each key by event time, all rows: each is a version, valid from its time.
    What the query itself emits is the last one of a batch. Other nodes stay as they are."""
    if isinstance(node, Project):
        return node.with_inputs([versions(node.input)])
    if not isinstance(node, Rank) or not _keeps_last_by_time(node):
        return node
    number = [_FIRST] if node.number else []
    return Project(node.columns, node.input, (*map(column_reference, node.input.columns), *number))


def _keeps_last_by_time(rank: Rank) -> bool:
    first = (rank.function, rank.first, rank.last) == ("row_number", 1, 1)
    times = [rank.input.times.get(column.name) if column.descending else None for column in rank.order]
    return first and rank.input.mode is Mode.APPEND and rank.closes is None and times == [TimeKind.EVENT]
