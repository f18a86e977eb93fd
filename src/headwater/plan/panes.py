"""GROUP BY windows that overlap: a row is added up once, in its pane, and not once per window.

The windows of HOP and CUMULATE begin and end at multiples of their slide, so all rows of a pane, a piece of time of
that length, are in the same windows. What a pane adds up to is then added to each of its windows.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.plan import nodes as n
from headwater.plan.rewrite import rewrite

__all__ = ["in_panes"]


def in_panes(root: n.Write) -> n.Write:
    def rule(node: n.Node) -> n.Node:
        if not isinstance(node, n.WindowAggregate):
            return node
        used = frozenset(node.by).union(*(expression.refs for expression in node.decisive))
        below = _paned(node.input, used)
        return replace(node, input=below) if below is not None else node

    return rewrite(root, rule)


def _paned(node: n.Node, used: frozenset[str]) -> n.Node | None:
    """The same rows in panes; None if that makes a difference to somebody. `used` are columns that mean more than to
    say which window a row is in."""
    window = node.window
    if window is None or used & {window.start, window.end, window.time}:
        return None
    if isinstance(node, n.WindowTable):
        spec = node.spec
        overlap = spec.function in {"HOP", "CUMULATE"} and spec.size > spec.slide and spec.size % spec.slide == 0
        return replace(node, paned=True) if overlap and node.kind is n.TimeKind.EVENT else None
    if isinstance(node, n.Filter):
        below = _paned(node.input, used | node.predicate.refs)
    elif isinstance(node, n.Project):
        # A second copy of a bound, or one that something is computed from, must be that of the window.
        others = [e.refs for c, e in node.items if c.name not in {window.start, window.end, window.time}]
        below = _paned(node.input, frozenset().union(*others))
    else:
        return None
    return node.with_inputs([below]) if below is not None else None
