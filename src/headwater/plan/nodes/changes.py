"""Nodes that `plan.changelog` inserts, so that every operator gets the changes it can work with.

FilterToDelete  over upserts: a row that fails the predicate becomes a delete of its key
Normalize       upserts to a full changelog, with the last row of every key as state
Materialize     the rows of every key of the sink, of which one is shown
Consolidate     one net change per key and batch
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Key, Mode, Node, StateSchema, Takes, distinct_keys, typed
from headwater.plan.nodes.rows import PassThrough
from headwater.sql.typed import Expr

__all__ = ["Consolidate", "FilterToDelete", "Materialize", "Normalize"]


@dataclass(frozen=True)
class _Inserted(PassThrough, abstract=True):
    """Columns are pruned before these nodes are inserted."""

    @cached_property
    def distribution(self) -> Key | None:
        return self.partitioned_by

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

    def described(self) -> str:
        return f"FilterToDelete {self.predicate.text} (else delete)"


@dataclass(frozen=True)
class _ByKey(_Inserted, abstract=True):
    """What is known of each key `by` is kept. With `before`, updates are -U, +U."""

    by: Key
    before: bool

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
    def _split(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns of the key, and the others."""
        keys = typed([c for c in self.columns if c.name in self.by])
        return keys, typed([c for c in self.columns if c.name not in self.by])


@dataclass(frozen=True)
class Normalize(_ByKey):
    """`by` is the key of the upserts."""

    state_version = 1

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
        return (StateSchema("rows", *self._split),)


@dataclass(frozen=True)
class Materialize(_ByKey):
    """A result by the primary key of the table that it is written to, where that is not a key of the query. Of the rows
    with one key, in the order of their changes, the `last` one is shown, or the `first`, or it is an `error` if there
    is more than one."""

    conflict: str
    table: str

    state_version = 1

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def net(self, key: Key) -> Node | None:
        return replace(self, before=False) if set(key) == set(self.by) else None

    def described(self) -> str:
        kept = {"last": "last row", "first": "first row", "error": "one row only"}[self.conflict]
        return f"Materialize by ({', '.join(self.by)}) [{kept}]"

    @property
    def remembers(self) -> str:
        return f"all rows per ({', '.join(self.by)})"

    def state_tables(self) -> tuple[StateSchema, ...]:
        keys, values = self._split
        return (StateSchema("groups", keys, values), StateSchema("rows", (*keys, *values), ("orders ARRAY<BIGINT>",)))


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
        # A delete needs nothing but its key: other columns may come out differently.
        return (frozenset(self.by),)

    def described(self) -> str:
        return f"Consolidate by ({', '.join(self.by)})"
