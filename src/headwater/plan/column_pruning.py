"""Every node carries only the columns somebody above needs: nothing else is decoded, shuffled or kept in state."""

from __future__ import annotations

from headwater.plan import nodes as n
from headwater.plan.common_subplans import keeps_state

__all__ = ["prune"]


def prune(root: n.Write) -> n.Write:
    """1. From the root down, collect what is read of each node with state; of one that is used twice, what any of its
    users reads. 2. From the inputs up, make the nodes narrow. What has no state is read again by each of its users,
    with no more columns than that one needs."""
    # Nodes without state below the last stateful one are copied for each user: reading a column twice is cheaper than
    # keeping one that only one of them needs.
    order = [node for node in n.walk(root) if node is root or keeps_state(node)]
    needed: dict[int, frozenset[str]] = {id(node): frozenset() for node in order}
    for node in reversed(order):  # 1
        for child, names in zip(node.inputs, node.needs(needed[id(node)]), strict=True):
            if id(child) in needed:
                needed[id(child)] |= names
    narrow: dict[int, n.Node] = {}
    for node in order:  # 2
        pairs = zip(node.inputs, node.needs(needed[id(node)]), strict=True)
        inputs = [narrow[id(child)] if id(child) in narrow else _narrowed(child, names) for child, names in pairs]
        narrow[id(node)] = node.narrowed(needed[id(node)], inputs)
    pruned = narrow[id(root)]
    assert isinstance(pruned, n.Write)
    return pruned


def _narrowed(node: n.Node, needed: frozenset[str]) -> n.Node:
    inputs = [_narrowed(child, names) for child, names in zip(node.inputs, node.needs(needed), strict=True)]
    return node.narrowed(needed, inputs)
