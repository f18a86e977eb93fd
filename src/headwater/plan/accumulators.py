"""What a group keeps for aggregate functions of the user's: an accumulator wherever the function has the methods for
it, else all values, over which it is evaluated from scratch. Comes after changes are decided."""

from __future__ import annotations

from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.rewrite import rewrite
from headwater.sql.typed import AggregateCall
from headwater.sql.types import has_map

__all__ = ["decide_accumulators"]


def decide_accumulators(root: n.Write) -> n.Write:
    return rewrite(root, _decided)


def _decided(node: n.Node) -> n.Node:
    if not isinstance(node, n.Aggregate) or all(call.user is None for call in node.calls):
        return node
    needed = _needed(node)
    return replace(node, calls=tuple(_with_kept(call, needed) for call in node.calls))


def _needed(node: n.Aggregate) -> frozenset[str]:
    """The methods that the operator would call."""
    needed = {"accumulate"}
    if node.input.mode is not n.Mode.APPEND:
        needed.add("retract")
    if _has_sessions(node):
        needed.add("merge")
    return frozenset(needed)


def _has_sessions(node: n.Aggregate) -> bool:
    return isinstance(node, n.WindowAggregate) and node.over.session is not None


def _with_kept(call: AggregateCall, needed: frozenset[str]) -> AggregateCall:
    if call.user is None:
        return call
    kept = call.user.keeps(needed)
    if call.distinct and call.argument is not None:
        # Accumulators of one session may share values, which merging would count twice; and maps cannot be compared.
        kept = "values" if "merge" in needed or has_map(call.argument.type) else kept
    return replace(call, user=replace(call.user, kept=kept))
