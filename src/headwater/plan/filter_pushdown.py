"""Filters move towards the sources, through every node that lets them: what is filtered out is neither shuffled nor
kept in state. Below a node that is used twice nothing changes for one of its users."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headwater.plan import nodes as n
from headwater.sql.functions.spark_sql import combine
from headwater.sql.spark_text import renamed
from headwater.sql.typed import Expr, Predicate
from headwater.sql.types import BOOLEAN

__all__ = ["push_filters"]

_WORDS = re.compile(r"'(?:[^']|'')*'|\.?[^\W\d]\w*")


def push_filters(root: n.Write) -> n.Write:
    return _Pushing(root).rewritten(root)


class _Pushing:
    """Nodes are known by their ids, so all that were made on the way are kept."""

    def __init__(self, root: n.Write) -> None:
        self._uses: dict[int, int] = {}
        for node in n.walk(root):
            for child in node.inputs:
                self._uses[id(child)] = self._uses.get(id(child), 0) + 1
        self._done: dict[int, n.Node] = {}
        self._made: list[n.Node] = []

    def rewritten(self, root: n.Write) -> n.Write:
        found = self._rewritten(root)
        assert isinstance(found, n.Write)
        return found

    def _rewritten(self, node: n.Node) -> n.Node:
        """A node that is used twice stays one node."""
        if id(node) not in self._done:
            self._done[id(node)] = self._pushed(node)
        return self._done[id(node)]

    def _pushed(self, node: n.Node) -> n.Node:
        while isinstance(node, n.Filter) and (moved := self._moved(node)) is not None:
            self._made.append(moved)
            node = moved
        inputs = [self._rewritten(child) for child in node.inputs]
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        return node if same else node.with_inputs(inputs)

    def _moved(self, node: n.Filter) -> n.Node | None:
        """The node with as much of the filter as possible below its input; None if nothing can move."""
        below = node.input
        # Another user of the input needs the rows that this filter drops; pushed below, the input would become two.
        if self._uses.get(id(below), 0) > 1:
            return None
        parts = node.predicate.conjuncts or (node.predicate,)
        # A non-deterministic condition stays where it is: evaluated for other rows, or another number of times, it
        # gives another result. One without columns is not about rows.
        places = [below.filtered_below(part.refs) if part.deterministic and part.refs else () for part in parts]
        moving = [(part, place) for part, place in zip(parts, places, strict=True) if place]
        if not moving:
            return None
        inputs = list(below.inputs)
        for index, child in enumerate(below.inputs):
            mine = [_renamed(part, names) for part, place in moving if (names := place[index]) is not None]
            if mine:
                inputs[index] = n.Filter(child.columns, child, _all_of(mine))
        left = [part for part, place in zip(parts, places, strict=True) if not place]
        moved = below.with_inputs(inputs)
        return n.Filter(node.columns, moved, _all_of(left)) if left else moved


def _all_of(parts: Sequence[Expr]) -> Expr:
    if len(parts) == 1:
        return parts[0]
    kind = BOOLEAN.as_nullable(nullable=any(part.type.nullable for part in parts))
    text = f"({' AND '.join(part.text for part in parts)})"
    return replace(combine(parts, f"({' AND '.join(part.sql for part in parts)})", kind, text), conjuncts=tuple(parts))


def _renamed(expression: Expr, names: Mapping[str, str]) -> Expr:
    """The same over columns with other names."""
    if all(old == new for old, new in names.items()):
        return expression
    predicate = expression.as_predicate
    return replace(
        expression,
        sql=renamed(expression.sql, names),
        text=_WORDS.sub(lambda found: names.get(found[0], found[0]), expression.text),
        refs=frozenset(names.get(ref, ref) for ref in expression.refs),
        column=names.get(expression.column, expression.column) if expression.column is not None else None,
        predicate=_renamed_predicate(predicate, names) if predicate is not None else None,
        # The parts would still have the old names.
        conjuncts=(),
        paths=frozenset((names.get(first, first), *rest) for first, *rest in expression.reads),
    )


def _renamed_predicate(predicate: Predicate, names: Mapping[str, str]) -> Predicate:
    operands = tuple(_renamed_predicate(operand, names) for operand in predicate.operands)
    column = names.get(predicate.column, predicate.column)
    return replace(predicate, sql=renamed(predicate.sql, names), column=column, operands=operands)
