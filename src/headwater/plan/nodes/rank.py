"""ROW_NUMBER, RANK and DENSE_RANK within limits: Top-N, deduplication, ORDER BY … LIMIT."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from headwater.errors import Position
from headwater.plan.cached import cached_property
from headwater.plan.display_names import is_internal
from headwater.plan.nodes.base import (
    Column,
    Key,
    Mode,
    Node,
    StateSchema,
    Takes,
    TimeKind,
    Window,
    distinct_keys,
    typed,
)
from headwater.plan.nodes.rows import Unary
from headwater.sql.types import BIGINT

__all__ = ["Rank", "RankFunction", "SortColumn"]

RankFunction = Literal["row_number", "rank", "dense_rank"]


@dataclass(frozen=True)
class SortColumn:
    name: str
    descending: bool = False
    nulls_first: bool = True

    def __str__(self) -> str:
        nulls = " NULLS FIRST" if self.nulls_first else " NULLS LAST"
        shown = nulls if self.nulls_first == self.descending else ""  # by default NULL is less than everything
        return f"{self.name}{' DESC' if self.descending else ''}{shown}"


@dataclass(frozen=True)
class Rank(Unary):
    """Of each partition the rows whose number is from `first` to `last`; all rows while `last` is not known. `columns`
    are those of the input and then, unless nobody needs it, the `number`. `updates` is the key whose updates are
    emitted without before-images, if `before` is False. `by_arrival`: it is ordered by processing time alone."""

    partition: tuple[str, ...]
    order: tuple[SortColumn, ...]
    function: RankFunction = "row_number"
    number: str = ""
    first: int = 1
    last: int | None = None
    before: bool = True
    updates: Key = ()
    by_arrival: bool = False
    position: Position | None = field(default=None, compare=False)

    state_version = 1

    @property
    def deduplicates(self) -> bool:
        """Whether only the best row of each partition is kept: inserts that are not it will never be."""
        best = self.function == "row_number" and (self.first, self.last) == (1, 1) and not self.number
        return best and bool(self.partition) and self.input.mode is Mode.APPEND and self.closes is None

    @cached_property
    def closes(self) -> Window | None:
        """The window by which rows are partitioned, if they are: its rows are numbered once, when it closes."""
        window = self.input.window
        whole = window is not None and window.session is None and {window.start, window.end} <= set(self.partition)
        return window if whole else None

    @cached_property
    def window(self) -> Window | None:
        return self.closes

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """The first row to come is passed on when it comes, and never again: its time is as good as it was. Rows that
        others replace have none: the watermark may have passed them when they are retracted."""
        if self.kept == "first":
            return self.input.times
        return {self.closes.time: self.closes.kind} if self.closes is not None and self.closes.time else {}

    @property
    def kept(self) -> Literal["", "first", "last"]:
        """Of the rows of a partition only the first or the last one to come is kept."""
        if not self.deduplicates or not self.by_arrival:
            return ""
        return "last" if self.order[0].descending else "first"

    @cached_property
    def mode(self) -> Mode:
        if self.closes is not None or self.kept == "first":
            return Mode.APPEND
        return Mode.RETRACT if self.before else Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        numbered: list[Key] = []
        if self.function == "row_number":
            # A single number per partition: the partition itself is the key of the result, as in a deduplication.
            if self.first == self.last:
                numbered.append(self.partition)
            elif self.number:
                numbered.append((*self.partition, self.number))
        return distinct_keys([*numbered, *self.input.keys])

    @property
    def partitioned_by(self) -> Key | None:
        return self.partition

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def net(self, key: Key) -> Node | None:
        """Without the partition in the key, a row that moves between two is retracted and added in different tasks."""
        if self.closes is not None:
            return None
        known = any(set(own) <= set(key) for own in self.keys)
        return replace(self, before=False, updates=key) if known and set(self.partition) <= set(key) else None

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (frozenset({*self.partition, *(s.name for s in self.order), *(needed - {self.number})}),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Rank:
        # Without the number in the result, a row that only moves up or down emits nothing: far fewer changes.
        number = self.number if self.number in needed else ""
        columns = (*inputs[0].columns, *([Column(number, BIGINT.not_null())] if number else []))
        return replace(self, columns=columns, input=inputs[0], number=number)

    def described(self) -> str:
        what = f"{self.function.upper()}()"
        if self.kept:
            return f"Deduplicate by ({', '.join(self.partition)}), {self.kept} to come"
        if self.deduplicates:
            return f"Deduplicate by ({', '.join(self.partition)}), first by ({self._ordered})"
        if not self.partition and not self.number and self.function == "row_number":
            skipped = f" offset {self.first - 1}" if self.first > 1 else ""
            limit = f"Limit {(self.last or 0) - self.first + 1}{skipped}"
            return f"{limit} order by ({self._ordered})" if self.order else limit
        limits = f"<= {self.last}" if self.first == 1 else f"from {self.first} to {self.last}"
        clauses = [f"PARTITION BY {', '.join(self.partition)}"] if self.partition else []
        clauses += [f"ORDER BY {self._ordered}"] if self.order else []
        name = f" AS {self.number}" if self.number and not is_internal(self.number) else ""
        word = "WindowRank" if self.closes is not None else "Rank"
        return f"{word} {what} OVER ({' '.join(clauses)}){name} {limits}"

    @property
    def _ordered(self) -> str:
        return ", ".join(map(str, self.order))

    def update_source(self) -> str:
        if self.closes is not None:
            return ""
        return f"{self.function.upper()}()" if self.partition or self.number else "ORDER BY … LIMIT"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        own = {self.number: f"{self.function.upper()}()"} if is_internal(self.number) else {}
        return {**self.input.display_names, **own}

    @property
    def remembers(self) -> str:
        if self.closes is not None:
            return "the rows of open windows"
        if self.deduplicates:
            return f"one row per ({', '.join(self.partition)})"
        if self.input.mode is Mode.APPEND:
            return "the rows that are numbered"
        return "all rows, in order"

    def state_tables(self) -> tuple[StateSchema, ...]:
        order = f"by {', '.join(self.partition)} in order of {self._ordered}"
        columns = typed(self.input.columns)
        if self.closes is not None:
            return (StateSchema("rows of open windows", (), columns),)
        if self.kept:
            order = f"{self.kept} to come"
        if self.deduplicates:
            own = [c for c in self.input.columns if c.name in self.partition]
            rest = [c for c in self.input.columns if c.name not in self.partition]
            return (StateSchema(f"first row {order}", typed(own), typed(rest) if self.kept != "first" else ()),)
        rows = StateSchema(f"rows {order}", columns, ("count BIGINT",))
        if self.input.mode is Mode.APPEND:
            return (replace(rows, name=f"first {self.last} rows {order} ({self.function})"),)
        return (rows, StateSchema(f"levels for {self.last}", self.partition, ()))
