"""The root of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.catalog.connector import Accepts
from headwater.catalog.tables import Table
from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Key, Mode, Node, Takes
from headwater.plan.nodes.rows import Unary

__all__ = ["Write"]


@dataclass(frozen=True)
class Write(Unary):
    """Into a table. `columns` are those of the table that are written; `by` is its primary key where upserts are
    written. `conflict` is what happens to rows with one primary key: what ON CONFLICT says (NOTHING, ERROR or
    DEDUPLICATE), or 'table.exec.sink.upsert-materialize' (auto, none or force). State of keys that are not used
    is kept for `ttl` milliseconds; 0 is forever."""

    table: Table
    by: Key = ()
    conflict: str = "auto"
    ttl: int = 0

    @cached_property
    def mode(self) -> Mode:
        return self.input.mode

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return (self.by,) if self.by else ()

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.UPSERTS,)

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (frozenset(self.input.names),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        return self.with_inputs(inputs)

    @property
    def matched(self) -> tuple[frozenset[str], ...]:
        """Everything, if readers of the table match retractions with inserts; nobody does if rows are only shown."""
        connector = self.table.connector
        kept = connector.takes(self.table) is Accepts.ALL and connector.accepts is not Accepts.ALL
        return (frozenset(self.input.names) if kept else frozenset(),)

    def described(self) -> str:
        kept = f", unused state is kept for {self.ttl / 1000:g} s" if self.ttl else ""
        return f"Write {self.table.name} ({self.table.connector.identifier}){kept}"
