"""Hints of a query: `SELECT /*+ STATE_TTL('orders' = '1 d', 'c' = '0 s') */ …`.

STATE_TTL says for how long the state of a table, view or query in FROM is kept that is not used: by the join, the
aggregation, the rank or the DISTINCT of this SELECT that reads it. Hints that tell Flink how to compute a join say
nothing about its result: they are taken, with a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from sqlglot import exp

from headwater.errors import SqlError
from headwater.options.closest import did_you_mean
from headwater.options.types import DURATION
from headwater.plan import nodes as n
from headwater.plan.relation import Locate

__all__ = ["hint_notes", "state_ttls", "with_state_ttls"]

_TTL = "STATE_TTL"
_WITHOUT_EFFECT = ("BROADCAST", "SHUFFLE_HASH", "SHUFFLE_MERGE", "NEST_LOOP", "LOOKUP", "MULTI_JOIN")


def hint_notes(query: exp.Expr) -> tuple[str, ...]:
    """What is to be said about hints of the query, and of those in it, that have no effect."""
    names = [_name(call) for hint in query.find_all(exp.Hint) for call in hint.expressions]
    found = dict.fromkeys(name for name in names if name in _WITHOUT_EFFECT)
    return tuple(f"The hint {name} has no effect: how a join is computed is not chosen by hints." for name in found)


def state_ttls(select: exp.Select, locate: Locate) -> dict[str, tuple[int, exp.Expr]]:
    """What STATE_TTL says about each name, in milliseconds; 0 is forever. Of a hint that is given twice the first
    counts, as in Flink."""
    hint = select.args.get("hint")
    found: dict[str, tuple[int, exp.Expr]] = {}
    for call in hint.expressions if hint is not None else ():
        name = _name(call)
        if name in _WITHOUT_EFFECT:
            continue
        if name != _TTL:
            raise _unknown(call, locate)
        for item in call.expressions:
            if not isinstance(item, exp.Property):
                raise SqlError("STATE_TTL takes names and durations.", position=locate(item), hint=_EXAMPLE)
            found.setdefault(item.this.name, (_millis(item.args["value"], locate), item.this))
    return found


_EXAMPLE = "Write for example /*+ STATE_TTL('orders' = '1 d', 'customers' = '0 s') */; 0 is forever."


def _millis(value: exp.Expr, locate: Locate) -> int:
    try:
        duration: timedelta = DURATION.parse(value.name)
    except ValueError as error:
        raise SqlError("STATE_TTL takes a duration.", position=locate(value), detail=str(error)) from None
    return duration // timedelta(milliseconds=1)


def _name(call: exp.Expr) -> str:
    return str(call.this).upper()


def _unknown(call: exp.Expr, locate: Locate) -> SqlError:
    known = [_TTL, *_WITHOUT_EFFECT]
    detail = f"Hints of a query: {', '.join(known)}."
    if _name(call) == "OPTIONS":
        fact, detail = "OPTIONS is a hint of a table, not of a query.", f"Flink ignores it here. {detail}"
        return SqlError(fact, position=locate(call), detail=detail, hint="Write FROM t /*+ OPTIONS(…) */.")
    hint = did_you_mean(_name(call), known)
    return SqlError(f"Unknown hint '{call.this}'.", position=locate(call), detail=detail, hint=hint)


def with_state_ttls(
    root: n.Node, ttls: Mapping[str, tuple[int, exp.Expr]], read: Mapping[str, n.Node], locate: Locate
) -> n.Node:
    """The plan of a SELECT whose operators keep state of what stands in its FROM (`read`, by name) as `ttls` says."""
    for name, (_, at) in ttls.items():
        if name not in read:
            raise SqlError(
                f"STATE_TTL names '{name}', which is not in FROM.",
                position=locate(at),
                detail=f"There are {', '.join(read)}." if read else "",
                hint=did_you_mean(name, read) or "A table with an alias is named by that.",
            )
    applied = _Applied({id(node): ttls.get(name, (None,))[0] for name, node in read.items()})
    found = applied.to(root)
    for name, (_, at) in ttls.items():
        if id(read[name]) not in applied.seen:
            hint = f"Give it in the query that '{name}' stands for."
            raise SqlError(f"STATE_TTL cannot be given for '{name}' here.", position=locate(at), hint=hint)
    return found


class _Applied:
    """`kept` has the nodes in FROM by their ids, and their TTLs."""

    def __init__(self, kept: Mapping[int, int | None]) -> None:
        self._kept = kept
        self.seen: set[int] = set()

    def to(self, node: n.Node) -> n.Node:
        if id(node) in self._kept:
            self.seen.add(id(node))
            return node
        inputs = [self.to(child) for child in node.inputs]
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        found = node if same else node.with_inputs(inputs)
        ttls = tuple(self._of(child) for child in node.inputs)
        # What depends on time cleans its state by time; other joins keep no state of their left side.
        if node.stateful and not node.timed and (isinstance(node, n.Join) or len(ttls) == 1) and set(ttls) != {None}:
            return replace(found, ttls=ttls)
        return found

    def _of(self, node: n.Node) -> int | None:
        """That of the table whose rows these are, unless an operator with state made others of them."""
        while id(node) not in self._kept:
            if node.stateful or len(node.inputs) != 1:
                return None
            (node,) = node.inputs
        return self._kept[id(node)]
