"""The plan as text: one line per operator with the changes it emits, the key of its rows, what it keeps as state,
and of a table how its messages are read."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from headwater.plan import nodes as n
from headwater.plan.display_names import shown_text

__all__ = ["describe", "explain"]


def explain(root: n.Node, pre_aggregated: Collection[int] = ()) -> str:
    """`pre_aggregated` are the ids of scans whose readers pre-aggregate, which the lowering decides."""
    lines = list(_lines(root, "", "", pre_aggregated, set()))
    width = max(len(left) for left, _ in lines)
    return "\n".join(f"{left.ljust(width)}  {right}".rstrip() for left, right in lines)


def _lines(
    node: n.Node, first: str, rest: str, pre_aggregated: Collection[int], shown: set[int]
) -> Iterator[tuple[str, str]]:
    """A node that is used twice is shown with its inputs only once."""
    again = id(node) in shown and bool(node.inputs)
    shown.add(id(node))
    yield first + describe(node) + (" (the same as above)" if again else ""), _promises(node, pre_aggregated)
    children = () if again else node.inputs
    for index, child in enumerate(children):
        last = index == len(children) - 1
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        yield from _lines(child, rest + branch, rest + below, pre_aggregated, shown)


def describe(node: n.Node) -> str:
    """What the operator does, without what it promises."""
    return node.shown(node.described())


def _promises(node: n.Node, pre_aggregated: Collection[int]) -> str:
    parts = [f"changes={node.mode.value}"]
    if node.key is not None:
        parts.append(f"key=({', '.join(shown_text(name, node.display_names) for name in node.key)})")
    if node.remembers:
        parts.append(f"state: {node.remembers}{_kept(node)}")
    if isinstance(node, n.Scan):
        reading = node.table.connector.reading(node.table, node.names, dict(node.fields))
        aggregated = ", pre-aggregated" if id(node) in pre_aggregated else ""
        parts += [f"read: {reading}{aggregated}"] if reading else []
    elif isinstance(node, n.Write) and node.table.connector.fallback(node.table):
        parts.append(f"by: {node.table.connector.fallback(node.table)}")
    return "  ".join(parts)


def _kept(node: n.Node) -> str:
    """For how long, where a hint says so."""
    shown = ["as set" if ttl is None else f"for {ttl / 1000:g} s" if ttl else "forever" for ttl in node.ttls]
    if len(shown) > 1:
        shown = [f"{side} {text}" for side, text in zip(("left", "right"), shown, strict=True)]
    return f", kept {', '.join(shown)}" if shown else ""
