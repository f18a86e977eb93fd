"""A result by the primary key of the table that it is written to, where that is not a key of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from headwater.plan.nodes.base import Key, Mode, Node, StateSchema, Takes, distinct_keys, typed
from headwater.plan.nodes.rows import Unary

__all__ = ["Materialize"]


@dataclass(frozen=True)
class Materialize(Unary):
    """Inserted by `plan.changelog`. Of the rows with one key `by`, in the order of their changes, the `last` one is
    shown, or the `first`, or it is an `error` if there is more than one. With `before`, updates are -U, +U."""

    by: Key
    conflict: str
    table: str
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
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def net(self, key: Key) -> Node | None:
        return replace(self, before=False) if set(key) == set(self.by) else None

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (frozenset(self.input.names),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        return self.with_inputs(inputs)

    def described(self) -> str:
        kept = {"last": "last row", "first": "first row", "error": "one row only"}[self.conflict]
        return f"Materialize by ({', '.join(self.by)}) [{kept}]"

    @property
    def remembers(self) -> str:
        return f"all rows per ({', '.join(self.by)})"

    def state_tables(self) -> tuple[StateSchema, ...]:
        keys = typed([c for c in self.columns if c.name in self.by])
        values = typed([c for c in self.columns if c.name not in self.by])
        return (StateSchema("groups", keys, values), StateSchema("rows", (*keys, *values), ("orders ARRAY<BIGINT>",)))
