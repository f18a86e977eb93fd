"""Where rows come from: a table, or rows written in the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from headwater.catalog.connector import Emits
from headwater.catalog.tables import Table
from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Key, Mode, Node, Takes
from headwater.sql.typed import Expr

__all__ = ["Scan", "Values"]

_GIVEN = {None: Mode.APPEND, Emits.APPEND: Mode.APPEND, Emits.UPSERT: Mode.UPSERT, Emits.CHANGES: Mode.RETRACT}


@dataclass(frozen=True)
class _Source(Node, abstract=True):
    @property
    def takes(self) -> tuple[Takes, ...]:
        return ()

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        assert not inputs
        return self

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return ()


@dataclass(frozen=True)
class Scan(_Source):
    """Read a table. `columns` are physical and metadata columns of `table`, under their own names. With `repeats`, a
    changelog may say the same again, so only the newest change of a key counts. `placed` rows come in the order of
    their partition, for a watermark. `fields` names columns of type ROW of which only these fields are read: a source
    may leave out the others, and no node above has them in its state."""

    table: Table
    repeats: bool = False
    placed: bool = False
    fields: tuple[tuple[str, Key], ...] = ()

    @cached_property
    def mode(self) -> Mode:
        return Mode.UPSERT if self.repeats else _GIVEN[self.table.connector.gives(self.table)]

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        key = self.table.primary_key
        return (key,) if key and self.mode is not Mode.APPEND and set(key) <= set(self.names) else ()

    def net(self, key: Key) -> Node | None:
        upserts = self.mode is Mode.UPSERT and not self.repeats
        return self if upserts and set(key) == set(self.table.primary_key) else None

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Scan:
        """A changelog source always needs its key; and a message is only checked if some column of it is decoded."""
        wanted = set(needed)
        if self.mode is Mode.UPSERT:
            wanted |= set(self.table.primary_key or ())
        return replace(self, columns=tuple(c for c in self.columns if c.name in wanted) or self.columns[:1])

    def described(self) -> str:
        opened = dict(self.fields)
        names = [f"{name}.{field}" for name in self.names for field in opened.get(name, ())]
        names = [*(name for name in self.names if name not in opened), *names]
        return f"Scan {self.table.name} ({self.table.connector.identifier}) [{', '.join(names)}]"

    def update_source(self) -> str:
        if self.mode is Mode.APPEND:
            return ""
        return f"the {self.table.connector.identifier} table '{self.table.name}'"


@dataclass(frozen=True)
class Values(_Source):
    """Rows written in the query."""

    rows: tuple[tuple[Expr, ...], ...]

    @cached_property
    def mode(self) -> Mode:
        return Mode.APPEND

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        # () is a key: at most one row at any time.
        return ((),) if len(self.rows) == 1 else ()

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Values:
        return self

    def described(self) -> str:
        return f"Values {len(self.rows)} rows"
