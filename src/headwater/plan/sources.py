"""What a job reads: scans of one table read it together, at one position."""

from __future__ import annotations

from headwater.plan.nodes import Node, Scan, Values, walk

__all__ = ["sources_of"]


def sources_of(root: Node) -> list[tuple[Scan | Values, ...]]:
    """For every source its scans, in the order of the plan. A table with other options is another source."""
    found: list[tuple[Scan | Values, ...]] = []
    for node in walk(root):
        if not isinstance(node, Scan | Values):
            continue
        place = next((i for i, scans in enumerate(found) if _same(scans[0], node)), None)
        if place is None:
            found.append((node,))
        else:
            found[place] += (node,)
    return found


def _same(one: Scan | Values, other: Scan | Values) -> bool:
    return isinstance(one, Scan) and isinstance(other, Scan) and one.table == other.table
