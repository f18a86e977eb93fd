"""CROSS JOIN UNNEST (…) and LEFT JOIN UNNEST (…) ON TRUE: a row for every element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Column, Key, Mode, Node, Takes, TimeKind, Window, distinct_keys
from headwater.plan.nodes.rows import Unary
from headwater.sql.typed import Expr

__all__ = ["Unnest"]


@dataclass(frozen=True)
class Unnest(Unary):
    """`columns` are those of the input, then the `elements`, then perhaps the `ordinality`: the number of the element,
    from 1 up. With `outer`, a row without elements is kept once, with NULL."""

    collection: Expr
    elements: tuple[Column, ...]
    ordinality: str = ""
    outer: bool = False

    @cached_property
    def mode(self) -> Mode:
        """A row that is updated may have other elements: its old ones are needed."""
        return Mode.APPEND if self.input.mode is Mode.APPEND else Mode.RETRACT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        # Elements may be equal; only their number tells them apart.
        return distinct_keys([(*key, self.ordinality) for key in self.input.keys]) if self.ordinality else ()

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return self.input.times

    @cached_property
    def window(self) -> Window | None:
        return self.input.window

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    @property
    def _own(self) -> tuple[Column, ...]:
        return self.columns[len(self.input.columns) :]

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return ((needed & frozenset(self.input.names)) | self.collection.refs,)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Unnest:
        return replace(self, columns=(*inputs[0].columns, *self._own), input=inputs[0])

    @property
    def decisive(self) -> tuple[Expr, ...]:
        return (self.collection,)

    def described(self) -> str:
        names = ", ".join(c.name for c in self._own)
        return f"Unnest{' outer' if self.outer else ''} {self.shown(self.collection.text)} AS ({names})"
