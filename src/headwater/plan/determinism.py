"""A retraction must carry the row as it was inserted: no non-deterministic expression may compute it a second time.

Below Normalize anything goes, because what it has seen is in its state. Above it, an aggregate, a filter or the key of
a sink would see another value in the retraction than in the insert.
"""

from __future__ import annotations

from collections.abc import Iterable

from headwater.errors import ValidationError
from headwater.plan import nodes as n
from headwater.plan.expressions import expressions_of
from headwater.plan.nodes import Mode, source_of_updates
from headwater.sql.typed import Expr

__all__ = ["is_deterministic", "refuse_non_deterministic"]


def refuse_non_deterministic(root: n.Write) -> n.Write:
    """The same plan. Raises if a non-deterministic expression decides which row is retracted."""
    for node in n.walk(root):
        for expression in _decisive(node):
            if not expression.deterministic or expression.by_arrival:
                raise _non_deterministic(expression, node)
    return root


def is_deterministic(root: n.Write) -> bool:
    """Whether computing a batch again gives the very same rows. Without a primary key of the sink, what an operator
    emits is not: its rows, and sums of floating point numbers, depend on the order in which rows come."""
    nodes = n.walk(root)
    # With a key, a repeated batch overwrites what the first try wrote, in whatever order it comes out.
    if not root.table.primary_key and any(node.stateful and not isinstance(node, n.Normalize) for node in nodes):
        return False
    return all(e.deterministic for node in nodes for e in expressions_of(node))


def _decisive(node: n.Node) -> Iterable[Expr]:
    if any(child.mode is not Mode.APPEND for child in node.inputs):
        yield from node.decisive
        # What it decides by may have been computed further down: in a view, for example.
        refs = frozenset(name for expression in node.decisive for name in expression.refs)
        for child in node.inputs:
            yield from _computed(child, refs)
    for child, names in zip(node.inputs, node.matched, strict=True):
        yield from _computed(child, names)


def _computed(node: n.Node, names: frozenset[str]) -> list[Expr]:
    """How these columns are computed from changes, between the last stateful operator and here."""
    # Inserts are never computed a second time; and an operator with state retracts what it has stored, not what it
    # computes again.
    if node.mode is Mode.APPEND:
        return []
    if node.stateful:
        return node.recomputed(names)
    if isinstance(node, n.Project):
        mine = [e for name, e in zip(node.names, node.expressions, strict=True) if name in names]
        return [*mine, *_computed(node.input, frozenset(ref for e in mine for ref in e.refs))]
    return [expression for child in node.inputs for expression in _computed(child, names)]


def _non_deterministic(expression: Expr, node: n.Node) -> ValidationError:
    return ValidationError(
        f"{expression.text} is non-deterministic, but rows of this query are retracted as they were inserted.",
        detail=f"The query updates rows, because of {source_of_updates(node.inputs[0])}.",
        hint="Compute it from the row's own columns, for example from a column with a time, or leave it out.",
    )
