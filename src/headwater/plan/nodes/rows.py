"""Nodes that take every row on its own: Project, Filter and UnionAll."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product

from headwater.plan.cached import cached_property
from headwater.plan.display_names import is_internal, shown_text
from headwater.plan.nodes.base import (
    MOST_KEYS,
    Column,
    Key,
    Mode,
    Node,
    Takes,
    TimeKind,
    Window,
    distinct_keys,
    item_text,
)
from headwater.sql.spark_text import quote_name
from headwater.sql.typed import Expr

__all__ = ["Binary", "Filter", "PassThrough", "Project", "Unary", "UnionAll", "column_reference", "narrow"]


def column_reference(column: Column) -> Expr:
    return Expr(quote_name(column.name), column.type, frozenset({column.name}), column.name, column=column.name)


@dataclass(frozen=True)
class Unary(Node, abstract=True):
    """A node with one input."""

    input: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.input,)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        (only,) = inputs
        return replace(self, input=only)


@dataclass(frozen=True)
class PassThrough(Unary, abstract=True):
    """Rows that are passed on stay as they are, and where they are: all facts about them hold further on."""

    @cached_property
    def mode(self) -> Mode:
        return self.input.mode

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return self.input.keys

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        return self.input.constants

    @cached_property
    def distribution(self) -> Key | None:
        return self.input.distribution

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return self.input.times

    @cached_property
    def window(self) -> Window | None:
        return self.input.window

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.UPSERTS,)


@dataclass(frozen=True)
class Binary(Node, abstract=True):
    """A node with two inputs."""

    left: Node
    right: Node

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (self.left, self.right)

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        left, right = inputs
        return replace(self, left=left, right=right)


@dataclass(frozen=True)
class Project(Unary):
    """One expression over the input per column."""

    expressions: tuple[Expr, ...]

    row_wise = True

    @cached_property
    def mode(self) -> Mode:
        return self.input.mode

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Those of the input under their new names, if every column is passed on with its values kept apart."""
        passed: dict[str, list[str]] = {}
        for column, expression in self.items:
            if expression.identifies is not None:
                passed.setdefault(expression.identifies, []).append(column.name)
        # A column may be passed on twice, and each copy makes another key: bounded, or they would multiply.
        renamed = [islice(product(*(passed.get(name, []) for name in key)), MOST_KEYS) for key in self.input.keys]
        return distinct_keys([key for found in renamed for key in found])

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        below = self.input.constants
        pairs = [(c.name, below.get(e.column, e) if e.column is not None else e) for c, e in self.items]
        return {name: e for name, e in pairs if not e.refs and e.deterministic}

    @cached_property
    def distribution(self) -> Key | None:
        # An injective conversion keeps rows together as well: equal values stay equal, different ones different.
        passed = {e.identifies: c.name for c, e in reversed(list(self.items)) if e.identifies is not None}
        below = self.input.distribution
        return tuple(passed[name] for name in below) if below is not None and set(below) <= set(passed) else None

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """Those that are passed on as they are; a CAST makes a plain value of one."""
        below = self.input.times
        return {name: below[column] for name, column in self._plain if column in below}

    @cached_property
    def window(self) -> Window | None:
        below = self.input.window
        return below.renamed({column: name for name, column in reversed(self._plain)}) if below is not None else None

    @property
    def _plain(self) -> list[tuple[str, str]]:
        """Names of columns that are passed on, and what they are in the input."""
        found = [(c.name, e) for c, e in self.items if e.column is not None]
        return [(name, e.column) for name, e in found if e.column and e.sql == quote_name(e.column)]

    @property
    def items(self) -> Iterator[tuple[Column, Expr]]:
        return zip(self.columns, self.expressions, strict=True)

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.UPSERTS,)

    def net(self, key: Key) -> Node | None:
        taken = {column.name: expression.identifies for column, expression in self.items}
        below = [taken[name] for name in key]
        found = self.input.net(tuple(name for name in below if name is not None)) if None not in below else None
        return replace(self, input=found) if found is not None else None

    def filtered_below(self, names: frozenset[str]) -> tuple[Mapping[str, str] | None, ...]:
        taken = {column.name: expression.column for column, expression in self.items}
        found = {name: column for name in names if (column := taken[name]) is not None}
        return (found,) if len(found) == len(names) else ()

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (frozenset().union(*(e.refs for c, e in self.items if c.name in needed)),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Project:
        kept = [(c, e) for c, e in self.items if c.name in needed]
        return Project(tuple(c for c, _ in kept), inputs[0], tuple(e for _, e in kept))

    def described(self) -> str:
        return f"Project [{', '.join(item_text(c.name, self.shown(e.text)) for c, e in self.items)}]"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        below = self.input.display_names
        return {c.name: shown_text(e.text, below) for c, e in self.items if is_internal(c.name)}


def narrow(node: Node, columns: tuple[Column, ...]) -> Node:
    """The node with these of its columns alone."""
    if columns == node.columns or not columns:
        return node
    return Project(columns, node, tuple(map(column_reference, columns)))


@dataclass(frozen=True)
class Filter(PassThrough):
    """Keep rows for which the predicate is TRUE."""

    predicate: Expr

    row_wise = True

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (needed | self.predicate.refs,)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        """Columns that only the predicate reads go no further. The key of upserts does: it has to be normalized by."""
        (below,) = inputs
        # The filter itself needs its columns; a projection above drops those that nobody else reads.
        node = Filter(below.columns, below, self.predicate)
        kept = {*needed, *((below.key or ()) if below.mode is Mode.UPSERT else ())}
        return narrow(node, tuple(c for c in node.columns if c.name in kept))

    @property
    def decisive(self) -> tuple[Expr, ...]:
        return (self.predicate,)

    def described(self) -> str:
        return f"Filter {self.predicate.text}"


@dataclass(frozen=True)
class UnionAll(Node):
    """The rows of all inputs. Their columns have the same names and types."""

    parts: tuple[Node, ...]

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.parts

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        return replace(self, parts=tuple(inputs))

    @cached_property
    def mode(self) -> Mode:
        return Mode.APPEND if all(part.mode is Mode.APPEND for part in self.parts) else Mode.RETRACT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """With a column that has another literal in each part, that column and a key that all parts have."""
        tags = [name for name in self.names if self._is_tag(name)]
        if not tags:
            return ()
        # Parts of a union may repeat each other's keys; a literal that is different in each of them keeps their rows
        # apart.
        first, *others = [{frozenset(key): key for key in part.keys} for part in self.parts]
        common = [key for same, key in first.items() if all(same in other for other in others)]
        return distinct_keys([key if tags[0] in key else (*key, tags[0]) for key in common])

    def _is_tag(self, name: str) -> bool:
        found = [part.constants.get(name) for part in self.parts]
        literals = {repr(e.literal) for e in found if e is not None and e.literal is not None}
        return len(literals) == len(self.parts)

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        first, *others = [part.constants for part in self.parts]
        return {name: e for name, e in first.items() if all(other.get(name) == e for other in others)}

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        first, *others = [part.times for part in self.parts]
        return {name: kind for name, kind in first.items() if all(other.get(name) is kind for other in others)}

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,) * len(self.parts)

    def filtered_below(self, names: frozenset[str]) -> tuple[Mapping[str, str] | None, ...]:
        return ({name: name for name in names},) * len(self.parts)

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (needed,) * len(self.parts)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> UnionAll:
        return UnionAll(tuple(c for c in self.columns if c.name in needed), tuple(inputs))

    def described(self) -> str:
        return "UnionAll"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        return {}
