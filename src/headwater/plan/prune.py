"""Every node carries only the columns somebody above needs: nothing else is decoded, shuffled or kept in state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.traits import Mode, mode_of

__all__ = ["prune"]


def prune(root: n.Write) -> n.Write:
    return replace(root, input=_prune(root.input, set(root.input.names)))


def _prune(node: n.Node, needed: set[str]) -> n.Node:
    match node:
        case n.Scan():
            return replace(node, columns=_scan_columns(node, needed))
        case n.Values():
            return node
        case n.Project():
            kept = [(c, e) for c, e in zip(node.columns, node.expressions, strict=True) if c.name in needed]
            below = _prune(node.input, _refs(e.refs for _, e in kept))
            return n.Project(tuple(c for c, _ in kept), below, tuple(e for _, e in kept))
        case n.Filter():
            below = _prune(node.input, needed | node.predicate.refs)
            return n.Filter(below.columns, below, node.predicate)
        case n.Aggregate():
            return _prune_aggregate(node, needed)
        case n.UnionAll():
            parts = tuple(_prune(part, needed) for part in node.parts)
            return n.UnionAll(tuple(c for c in node.columns if c.name in needed), parts)
    raise AssertionError(f"no pruning rule for {type(node).__name__}")


def _prune_aggregate(node: n.Aggregate, needed: set[str]) -> n.Aggregate:
    split = len(node.groups)
    kept = [(c, call) for c, call in zip(node.columns[split:], node.calls, strict=True) if c.name in needed]
    used = _refs(e.refs for _, call in kept for e in (call.argument, call.filter) if e is not None)
    below = _prune(node.input, used | set(node.groups))
    columns = (*node.columns[:split], *(c for c, _ in kept))
    return replace(node, columns=columns, input=below, calls=tuple(call for _, call in kept))


def _scan_columns(node: n.Scan, needed: set[str]) -> tuple[n.Column, ...]:
    """A changelog source always needs its key; and a message is only checked if some column of it is decoded."""
    wanted = set(needed)
    if mode_of(node) is Mode.UPSERT:
        wanted |= set(node.table.primary_key or ())
    return tuple(c for c in node.columns if c.name in wanted) or node.columns[:1]


def _refs(groups: Iterable[frozenset[str]]) -> set[str]:
    return {name for refs in groups for name in refs}
