"""Where time attributes come from, and the windows that rows belong to.

Watermark       event time: the WATERMARK of a table
ProcessingTime  a column that has the time of the batch: PROCTIME()
WindowTable     the table functions TUMBLE, HOP, CUMULATE and SESSION: windows as columns
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.plan.cached import cached_property
from headwater.plan.display_names import is_internal, shown_text
from headwater.plan.nodes.base import Column, Key, Mode, Node, SessionGap, Takes, TimeKind, Window, distinct_keys
from headwater.plan.nodes.rows import PassThrough, Unary
from headwater.sql.typed import Expr

__all__ = ["ProcessingTime", "Watermark", "WindowSpec", "WindowTable"]


@dataclass(frozen=True)
class _Stamped(PassThrough, abstract=True):
    """Rows pass as they are, but for their time. `column` is the time attribute."""

    column: str

    row_wise = True

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        return {name: e for name, e in self.input.constants.items() if name != self.column}

    def net(self, key: Key) -> Node | None:
        found = self.input.net(key)
        return replace(self, input=found) if found is not None else None

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        return replace(self, columns=inputs[0].columns, input=inputs[0])


@dataclass(frozen=True)
class Watermark(_Stamped):
    """`expression` is what the table says that a row makes of its watermark."""

    expression: Expr

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return {**self.input.times, self.column: TimeKind.EVENT}

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (needed | self.expression.refs,)

    @property
    def decisive(self) -> tuple[Expr, ...]:
        return (self.expression,)

    def described(self) -> str:
        return f"Watermark for {self.column} as {self.expression.text}"


@dataclass(frozen=True)
class ProcessingTime(_Stamped):
    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return {**self.input.times, self.column: TimeKind.PROCESSING}

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return (needed | {self.column},)

    def described(self) -> str:
        return f"ProcessingTime {self.column}"


_ARGUMENTS = {
    "TUMBLE": "size {0}",
    "HOP": "slide {1}, size {0}",
    "CUMULATE": "step {1}, size {0}",
    "SESSION": "gap {0}",
}


@dataclass(frozen=True)
class WindowSpec:
    """What a window function says, in milliseconds. `slide` is the second interval: HOP's slide, CUMULATE's step; that
    of TUMBLE is its size. `by` are the columns of SESSION's PARTITION BY; None: whatever else is grouped by."""

    function: str
    size: int
    slide: int
    offset: int = 0
    by: tuple[str, ...] | None = ()

    def __str__(self) -> str:
        text = _ARGUMENTS[self.function].format(_shown(self.size), _shown(self.slide))
        offset = f", offset {_shown(self.offset)}" if self.offset else ""
        by = f", by {', '.join(self.by)}" if self.by else ""
        return f"{self.function}({text}{offset}{by})"


@dataclass(frozen=True)
class WindowTable(Unary):
    """`columns` are those of the input and then start, end and time of the row's window. A row is there once for each
    of its windows; without a time it is in none.

    `paned`: it is there once, in its pane: the piece of time, as long as the slide, that is in the same windows as a
    whole. Start is that of the pane, end that of its last window."""

    time: str
    spec: WindowSpec
    kind: TimeKind
    paned: bool = False

    @property
    def timed(self) -> bool:
        return self.kind is TimeKind.PROCESSING

    @property
    def clock(self) -> TimeKind:
        return self.kind

    @property
    def added(self) -> tuple[Column, ...]:
        return self.columns[-3:]

    @cached_property
    def mode(self) -> Mode:
        return Mode.APPEND if self.input.mode is Mode.APPEND else Mode.RETRACT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        start, end = self.added[0].name, self.added[1].name
        # HOP and CUMULATE put a row into several windows, so its key is not enough.
        once = self.spec.function in {"TUMBLE", "SESSION"} or self.paned
        return self.input.keys if once else distinct_keys([(*key, start, end) for key in self.input.keys])

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        return self.input.constants

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """The time of the window takes the place of the row's own, as in Flink."""
        return {self.added[2].name: self.kind}

    @cached_property
    def window(self) -> Window | None:
        start, end, time = (c.name for c in self.added)
        local = next(c.type.name for c in self.input.columns if c.name == self.time) == "TIMESTAMP_LTZ"
        session = SessionGap(self.spec.size, self.spec.by) if self.spec.function == "SESSION" else None
        panes = self.spec if self.paned else None
        return Window(start, end, time, self.kind, local, self.spec.function, session, panes)

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        added = {c.name for c in self.added}
        return (frozenset({*(needed - added), self.time, *(self.spec.by or ())}),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        return replace(self, columns=(*inputs[0].columns, *self.added), input=inputs[0])

    def described(self) -> str:
        return f"WindowTable {self.spec} of {self.time}{', in panes' if self.paned else ''}"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        """The columns of GROUP BY TUMBLE(…) are the planner's own: they stand for TUMBLE_START(…) and its kin."""
        below = self.input.display_names
        parts = ("START", "END", "PROCTIME" if self.kind is TimeKind.PROCESSING else "ROWTIME")
        shown = {c.name: f"{self.spec.function}_{part}({self.time})" for c, part in zip(self.added, parts, strict=True)}
        return {**below, **{name: shown_text(text, below) for name, text in shown.items() if is_internal(name)}}


def _shown(millis: int) -> str:
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000)):
        if millis and millis % size == 0:
            return f"{millis // size} {unit}"
    return f"{millis} ms"
