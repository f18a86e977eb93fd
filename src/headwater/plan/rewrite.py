"""A plan with some of its nodes replaced, inputs first. A node that is used twice stays one node."""

from __future__ import annotations

from collections.abc import Callable

from headwater.plan import nodes as n

__all__ = ["rewrite"]


def rewrite(root: n.Write, rule: Callable[[n.Node], n.Node]) -> n.Write:
    """`rule` gets each node over inputs that are rewritten already."""
    done: dict[int, n.Node] = {}
    for node in n.walk(root):
        inputs = [done[id(child)] for child in node.inputs]
        # A node whose inputs stayed is not copied: identity says what is shared.
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        done[id(node)] = rule(node if same else node.with_inputs(inputs))
    rewritten = done[id(root)]
    assert isinstance(rewritten, n.Write)
    return rewritten
