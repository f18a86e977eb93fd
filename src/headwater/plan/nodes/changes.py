"""Nodes that `plan.changelog` inserts, so that every operator gets the changes it can work with.

FilterToDelete  over upserts: a row that fails the predicate becomes a delete of its key
Normalize       upserts to a full changelog, with the last row of every key as state
Consolidate     one net change per key and batch
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headwater.plan.nodes.base import Key, Mode, Node, StateSchema, Takes, TimeKind, Window, distinct_keys, typed
from headwater.plan.nodes.rows import Unary
from headwater.sql.typed import Expr

__all__ = ["Consolidate", "FilterToDelete", "Normalize"]


@dataclass(frozen=True)
class _Inserted(Unary, abstract=True):
    """Columns are pruned before these nodes are inserted."""

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.UPSERTS,)

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        return self.input.constants

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return self.input.times

    @cached_property
    def window(self) -> Window | None:
        return self.input.window

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (frozenset(self.input.names),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        return self.with_inputs(inputs)


@dataclass(frozen=True)
class FilterToDelete(_Inserted):
    predicate: Expr

    row_wise = True

    @cached_property
    def mode(self) -> Mode:
        return Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return self.input.keys

    def described(self) -> str:
        return f"FilterToDelete {self.predicate.text} (else delete)"


@dataclass(frozen=True)
class Normalize(_Inserted):
    """`by` is the key of the upserts. With `before`, updates are -U, +U."""

    by: Key
    before: bool

    state_version = 1

    @cached_property
    def mode(self) -> Mode:
        return Mode.RETRACT if self.before else Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return distinct_keys([self.by, *self.input.keys])

    @property
    def partitioned_by(self) -> Key | None:
        return self.by

    @property
    def matched(self) -> tuple[frozenset[str], ...]:
        """Nothing: what a retraction carries is in its state."""
        return (frozenset(),)

    def described(self) -> str:
        return f"Normalize by ({', '.join(self.by)})"

    @property
    def remembers(self) -> str:
        return f"last row per ({', '.join(self.by)})"

    def state_tables(self) -> tuple[StateSchema, ...]:
        keys = typed([c for c in self.columns if c.name in self.by])
        values = typed([c for c in self.columns if c.name not in self.by])
        return (StateSchema("rows", keys, values),)


@dataclass(frozen=True)
class Consolidate(_Inserted):
    by: Key

    @cached_property
    def mode(self) -> Mode:
        return Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return (self.by,)

    @property
    def matched(self) -> tuple[frozenset[str], ...]:
        return (frozenset(self.by),)

    def described(self) -> str:
        return f"Consolidate by ({', '.join(self.by)})"
