"""Aggregates OVER windows of rows.

OverTime  of inserts in the order of time: results are final, and emitted once
Over      in any order, of rows that may be updated: results are updated
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Column, Key, Mode, Node, StateSchema, Takes, TimeKind, distinct_keys, typed
from headwater.plan.nodes.rank import SortColumn
from headwater.plan.nodes.rows import Unary
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

__all__ = ["Over", "OverCall", "OverFrame", "OverTime"]


@dataclass(frozen=True)
class OverFrame:
    """From `preceding` rows, or so much of the sort key, before the current row to `following` after it; None is
    unbounded. A time is measured in microseconds."""

    kind: Literal["rows", "range"] = "range"
    preceding: int | None = None
    following: int | None = 0


@dataclass(frozen=True)
class OverCall:
    """A function of the column `argument`, if it has one. `offset` and the column `default` are those of LAG and
    LEAD."""

    function: str
    argument: str
    frame: OverFrame
    type: SqlType
    text: str
    offset: int = 1
    default: str = ""

    @property
    def columns(self) -> frozenset[str]:
        return frozenset(name for name in (self.argument, self.default) if name)

    @property
    def looks_ahead(self) -> bool:
        return self.function == "LEAD" or self.frame.following != 0


@dataclass(frozen=True)
class _Over(Unary, abstract=True):
    """`columns` are those of the input and then one for each call."""

    partition: Key
    order: tuple[SortColumn, ...]
    calls: tuple[OverCall, ...]

    @property
    def called(self) -> Iterator[tuple[Column, OverCall]]:
        return zip(self.columns[len(self.columns) - len(self.calls) :], self.calls, strict=True)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        # Results are added to rows, and no row is dropped or repeated.
        return distinct_keys(self.input.keys)

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        return self.input.constants

    @property
    def partitioned_by(self) -> Key | None:
        return self.partition

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        used = [call.columns for column, call in self.called if column.name in needed]
        wanted = frozenset({*self.partition, *(sort.name for sort in self.order)}).union(*used)
        return ((needed & frozenset(self.input.names)) | wanted or frozenset(self.input.names[:1]),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        kept = [(c, call) for c, call in self.called if c.name in needed]
        # No call is read: the operator, with all its state, is not needed.
        if not kept:
            return inputs[0]
        columns = (*inputs[0].columns, *(c for c, _ in kept))
        return replace(self, columns=columns, input=inputs[0], calls=tuple(call for _, call in kept))

    def _described(self, word: str) -> str:
        by = f" by ({', '.join(self.partition)})" if self.partition else ""
        order = f" order by ({', '.join(map(str, self.order))})" if self.order else ""
        return f"{word}{by}{order} [{', '.join(call.text for call in self.calls)}]"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        return {**self.input.display_names, **{column.name: call.text for column, call in self.called}}

    def _order_text(self) -> str:
        return f"by {', '.join(self.partition)} in order of {', '.join(map(str, self.order))}"


@dataclass(frozen=True)
class OverTime(_Over):
    """In the order of a time attribute."""

    state_version = 2
    timed = True

    @property
    def time(self) -> str:
        return self.order[0].name

    @property
    def clock(self) -> TimeKind:
        return self.input.times[self.time]

    @cached_property
    def mode(self) -> Mode:
        return Mode.APPEND

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """A row is emitted in the batch in which the watermark passes its time: it is not late behind it."""
        return {self.time: self.clock}

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.INSERTS,)

    def described(self) -> str:
        return self._described("Over")

    @property
    def remembers(self) -> str:
        waiting = "rows until the watermark passes, and " if self.clock is TimeKind.EVENT else ""
        return f"{waiting}what later frames reach back to"

    def state_tables(self) -> tuple[StateSchema, ...]:
        calls = tuple(f"{call.text} {call.type}" for call in self.calls)
        return (
            StateSchema(f"rows {self._order_text()}", typed(self.input.columns), ("count BIGINT",)),
            StateSchema("carry", typed([c for c in self.input.columns if c.name in self.partition]), calls),
        )


@dataclass(frozen=True)
class Over(_Over):
    """Without `before`, updates are emitted by the key `updates` without before-images."""

    before: bool = True
    updates: Key = ()

    state_version = 1

    @cached_property
    def mode(self) -> Mode:
        return Mode.RETRACT if self.before else Mode.UPSERT

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def net(self, key: Key) -> Node | None:
        known = any(set(own) <= set(key) for own in self.keys) and set(self.partition) <= set(key)
        return replace(self, before=False, updates=key) if known else None

    def described(self) -> str:
        return self._described("OverTable")

    def update_source(self) -> str:
        return "OVER"

    @property
    def remembers(self) -> str:
        return "all rows"

    def state_tables(self) -> tuple[StateSchema, ...]:
        return (StateSchema(f"rows {self._order_text()}", typed(self.input.columns), ("count BIGINT",)),)
