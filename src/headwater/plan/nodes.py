"""Immutable plan nodes. Each knows its columns; `traits` knows what kind of changes it emits.

    Scan      read a table                        Project    compute columns
    Values    rows written in the query           Filter     keep rows
    UnionAll  rows of all inputs                   Aggregate  GROUP BY
    Write     the root: into a table

Inserted by `plan.changelog`:
    Guard      over upserts: a row that fails the predicate becomes a delete of its key
    Normalize  upserts to exact changes, with the last row of every key as state
    Collapse   one net change per key and batch
"""

from __future__ import annotations

from dataclasses import dataclass

from headwater.catalog.tables import Table
from headwater.plan.expression import AggregateCall, Expr
from headwater.sql.types import SqlType

__all__ = [
    "Aggregate",
    "Collapse",
    "Column",
    "Filter",
    "Guard",
    "Node",
    "Normalize",
    "Project",
    "Scan",
    "UnionAll",
    "Values",
    "Write",
    "walk",
]


@dataclass(frozen=True)
class Column:
    name: str
    type: SqlType


@dataclass(frozen=True)
class Node:
    """`columns` are what the node emits, in order, with unique names."""

    columns: tuple[Column, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)


@dataclass(frozen=True)
class Scan(Node):
    """`columns` are physical and metadata columns of `table`, under their own names. With `repeats`, a changelog may
    say the same again, so only the newest change of a key counts."""

    table: Table
    repeats: bool = False


@dataclass(frozen=True)
class Values(Node):
    rows: tuple[tuple[Expr, ...], ...]


@dataclass(frozen=True)
class _Unary(Node):
    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)


@dataclass(frozen=True)
class Project(_Unary):
    """One expression over the input per column."""

    expressions: tuple[Expr, ...]


@dataclass(frozen=True)
class Filter(_Unary):
    predicate: Expr


@dataclass(frozen=True)
class Aggregate(_Unary):
    """`columns` are the groups (input columns, same names) and then one per call. With `before`, updates are -U, +U."""

    groups: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    before: bool = False


@dataclass(frozen=True)
class UnionAll(Node):
    parts: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts


@dataclass(frozen=True)
class Write(_Unary):
    """`columns` are those of the table that are written; `key` is its primary key where upserts are written."""

    table: Table
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class Guard(_Unary):
    predicate: Expr


@dataclass(frozen=True)
class Normalize(_Unary):
    key: tuple[str, ...]
    before: bool


@dataclass(frozen=True)
class Collapse(_Unary):
    key: tuple[str, ...]


def walk(node: Node) -> list[Node]:
    """The node and everything below it, inputs first."""
    below = [n for child in node.inputs for n in walk(child)]
    return [*below, node]
