"""A row that is taken back must look as it did when it came: nothing may compute it anew from chance or the clock.

Below Normalize anything goes, because what it has seen is in its state. Above it, an aggregate, a filter or the key of
a sink would meet another value on the way back than on the way in.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields

from headwater.catalog.tables import Table
from headwater.connectors.base import Accepts
from headwater.errors import ValidationError
from headwater.plan import nodes as n
from headwater.plan.expression import AggregateCall, Expr
from headwater.plan.traits import Mode, describe_source_of_updates, mode_of

__all__ = ["is_repeatable", "keeps_tasks", "refuse_chance"]


def refuse_chance(root: n.Write) -> n.Write:
    """The same plan. Raises if a value that changes by itself decides what a change of a row means."""
    for node in n.walk(root):
        for expression in _decisive(node):
            if not expression.deterministic:
                raise _changes_by_itself(expression, node)
    return root


def is_repeatable(root: n.Write) -> bool:
    """Whether computing a batch again gives the very same rows. Without a key of their own not even sums are: those of
    floating point numbers depend on the order in which rows come."""
    nodes = n.walk(root)
    if not root.table.primary_key and any(isinstance(node, n.Aggregate) for node in nodes):
        return False
    return all(e.deterministic for node in nodes for e in _expressions([getattr(node, f.name) for f in fields(node)]))


def keeps_tasks(root: n.Write) -> bool:
    """Whether rows stay in the tasks that read them: nothing on the way brings rows together."""
    return not any(isinstance(node, n.Aggregate | n.Normalize | n.Collapse) for node in n.walk(root))


def _expressions(parts: object) -> Iterator[Expr]:
    """Those of one node, not of its inputs."""
    match parts:
        case Expr():
            yield parts
        case AggregateCall():
            yield from _expressions([parts.argument, parts.filter])
        case tuple() | list():
            for part in parts:
                yield from _expressions(part)


def _decisive(node: n.Node) -> Iterable[Expr]:
    match node:
        case n.Filter() if mode_of(node.input) is not Mode.APPEND:
            return [node.predicate]
        case n.Aggregate() if mode_of(node.input) is not Mode.APPEND:
            parts = [part for call in node.calls for part in (call.argument, call.filter) if part is not None]
            return [*parts, *_computed(node.input, node.input.names)]
        case n.Collapse():
            return _computed(node.input, node.key)
        case n.Write() if _keeps_every_change(node.table):
            return _computed(node.input, node.input.names)
    return []


def _keeps_every_change(table: Table) -> bool:
    """Whether readers of the table match what is taken back with what was given; nobody does if it is only shown."""
    return table.connector.takes(table) is Accepts.ALL and table.connector.accepts is not Accepts.ALL


def _computed(node: n.Node, names: Iterable[str]) -> list[Expr]:
    """How these columns are computed from changes, between the last operator with state and here."""
    if mode_of(node) is Mode.APPEND:
        return []
    wanted = set(names)
    match node:
        case n.Project():
            mine = [e for name, e in zip(node.names, node.expressions, strict=True) if name in wanted]
            return [*mine, *_computed(node.input, {ref for e in mine for ref in e.refs})]
        case n.Filter():
            return _computed(node.input, wanted)
        case n.UnionAll():
            return [expression for part in node.parts for expression in _computed(part, wanted)]
    return []


def _changes_by_itself(expression: Expr, node: n.Node) -> ValidationError:
    return ValidationError(
        f"{expression.text} gives another value each time, but rows of this query are taken back as they were.",
        detail=f"The query updates rows, because of {describe_source_of_updates(node.inputs[0])}.",
        hint="Compute it from the row's own columns, for example from a column with a time, or leave it out.",
    )
