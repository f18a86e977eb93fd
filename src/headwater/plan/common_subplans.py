"""Equal subplans become one node: what a view or a WITH computes is computed once, with one state, however often it is
used."""

from __future__ import annotations

from headwater.plan import nodes as n
from headwater.plan.expressions import expressions_of
from headwater.plan.rewrite import rewrite

__all__ = ["keeps_state", "share_equal"]


def share_equal(root: n.Write) -> n.Write:
    """Only what has state is worth it: rows that are merely read and computed are cheaper to read twice, each time with
    no more columns than are needed."""
    known: list[n.Node] = []

    def shared(node: n.Node) -> n.Node:
        # What is written twice is computed twice, where that makes a difference: two calls of UUID() are two values.
        if not keeps_state(node) or not _same_every_time(node):
            return node
        for other in known:
            # Compared as values, inputs included: two views over the same query are the same operator, whatever their
            # names.
            if type(other) is type(node) and other == node:
                return other
        known.append(node)
        return node

    return rewrite(root, shared)


def keeps_state(node: n.Node) -> bool:
    return any(below.stateful for below in n.walk(node))


def _same_every_time(node: n.Node) -> bool:
    return all(e.deterministic for below in n.walk(node) for e in expressions_of(below))
