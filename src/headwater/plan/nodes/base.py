"""What every plan node declares. A node that leaves out one of these does not import.

Immutable values: two nodes are equal if they compute the same. Facts flow up as properties (`mode`, `keys`,
`constants`, `times`), needs flow down as methods (`takes`, `needs`): the passes in `plan.changelog`,
`plan.column_pruning` and others are the same for all nodes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, ClassVar

from headwater.plan.cached import cached_property
from headwater.plan.display_names import is_internal, shown_text
from headwater.sql.typed import Expr
from headwater.sql.types import SqlType

if TYPE_CHECKING:
    from headwater.plan.nodes.time import WindowSpec

__all__ = [
    "Column",
    "Key",
    "Mode",
    "Node",
    "StateSchema",
    "Takes",
    "TimeKind",
    "Window",
    "distinct_keys",
    "item_text",
    "source_of_updates",
    "typed",
    "walk",
]

Key = tuple[str, ...]
"""Columns that hold a row apart from all others at any time. () means that there is at most one row."""

MOST_KEYS = 8


@dataclass(frozen=True)
class Column:
    name: str
    type: SqlType


class Mode(Enum):
    """APPEND: inserts only. UPSERT: the row of a key now, or that the key is gone; at most one per key and batch after
    Normalize, Aggregate and Consolidate. RETRACT: a full changelog, every -U and -D with the full old row."""

    APPEND = "I"
    UPSERT = "I,UA,D"
    RETRACT = "I,UB,UA,D"


class Takes(Enum):
    """What a node can work with. INSERTS: nothing but inserts. CHANGES: inserts, or a full changelog. UPSERTS: upserts
    as well, by a key of the input."""

    INSERTS = "inserts"
    CHANGES = "changes"
    UPSERTS = "upserts"


class TimeKind(Enum):
    """Which time a time attribute is: the rows' own, which has a watermark, or that of the batch."""

    EVENT = "event time"
    PROCESSING = "processing time"


@dataclass(frozen=True)
class Window:
    """Columns that hold the window of a row: its start and end, which a local clock shows, and its last moment as a
    time attribute (empty if that is not passed on). `local`: the time attribute is an instant, and windows are those of
    the session's time zone. `session`: its start and end are known when it has ended; before, `time` is the row's
    own. `panes`: rows are not in their windows yet, which these are, but in a pane: see `WindowTable`."""

    start: str
    end: str
    time: str
    kind: TimeKind
    local: bool
    function: str
    session: SessionGap | None = None
    panes: WindowSpec | None = None

    @property
    def bounds(self) -> tuple[Key, ...]:
        """The columns that tell the windows of a key apart, each enough by itself."""
        start, end = (self.start,), (self.end,)
        return ((*start, *end), end) if self.function == "CUMULATE" else ((*start, *end), start, end)

    def renamed(self, names: Mapping[str, str]) -> Window | None:
        """The same under other names; None if a bound is not passed on."""
        if self.start not in names or self.end not in names:
            return None
        session = self.session
        if session is not None and session.by is not None:
            if not set(session.by) <= names.keys():
                return None
            session = replace(session, by=tuple(names[name] for name in session.by))
        start, end, time = names[self.start], names[self.end], names.get(self.time, "")
        return replace(self, start=start, end=end, time=time, session=session)


@dataclass(frozen=True)
class SessionGap:
    """What makes a session: rows that are not more than `gap` apart, in milliseconds, and have the same values in the
    columns `by`; None: in the other columns that are grouped by."""

    gap: int
    by: tuple[str, ...] | None


@dataclass(frozen=True)
class StateSchema:
    """One table of an operator's state. `keys` and `values` are columns with their types: 'who STRING'."""

    name: str
    keys: tuple[str, ...]
    values: tuple[str, ...]


@dataclass(frozen=True)
class Node:
    """`columns` are what the node emits, in order, with unique names."""

    columns: tuple[Column, ...]

    ttls: tuple[int | None, ...] = field(default=(), kw_only=True)
    """What STATE_TTL says about the state of each input, in milliseconds, where 0 is forever; None, and (), if it says
    nothing: then `table.exec.state.ttl` does."""

    state_version: ClassVar[int] = 0
    """Of what the operator writes into its state tables; 0 if it has none. Count one up when the same bytes would mean
    something else: another accumulator, another hash, another order."""

    row_wise: ClassVar[bool] = False
    """Whether every change is taken on its own and in its order: then Normalize may stand above the node."""

    def __init_subclass__(cls, *, abstract: bool = False) -> None:
        super().__init_subclass__()
        required = _REQUIRED if not cls.state_version else (*_REQUIRED, *_REQUIRED_OF_STATE)
        # Checked when the class is made: a node that forgets a trait fails the import and not, much later, one query.
        missing = [name for name in required if getattr(cls, name) is getattr(Node, name)]
        if missing and not abstract:
            raise TypeError(f"plan node {cls.__name__} does not declare {', '.join(missing)}")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(c.name for c in self.columns)

    @property
    def stateful(self) -> bool:
        return self.state_version > 0

    @property
    def key(self) -> Key | None:
        """The first of its keys."""
        return self.keys[0] if self.keys else None

    def with_inputs(self, inputs: Sequence[Node]) -> Node:
        """The same over other inputs, which have the same columns."""
        raise NotImplementedError

    # facts that flow up

    @cached_property
    def mode(self) -> Mode:
        """The changes it emits, given its inputs. Before `plan.changelog` has decided: the most it can emit."""
        raise NotImplementedError

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """Its unique keys, as far as they are known; the one that is shown comes first."""
        raise NotImplementedError

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        """Columns that have the same value in every row."""
        return {}

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """Its time attributes."""
        return {}

    @cached_property
    def delay(self) -> int:
        """By how many microseconds the event time of a row may be behind the watermark of its sources, if the row is
        not late."""
        return max((child.delay for child in self.inputs), default=0)

    @cached_property
    def window(self) -> Window | None:
        """The window of each row, if there is one."""
        return None

    @property
    def partitioned_by(self) -> Key | None:
        """The columns by which its rows are distributed over state partitions, () if all are in one; None if they are
        where its inputs have them."""
        return None

    @cached_property
    def distribution(self) -> Key | None:
        """Columns for which rows with the same values are in one partition; None if there are none."""
        return self.partitioned_by

    @cached_property
    def closes(self) -> Window | None:
        """The window whose rows it computes once, when the window closes; None if it computes row by row."""
        return None

    @property
    def timed(self) -> bool:
        """Whether what it emits depends on the watermark, or on processing time."""
        return self.closes is not None

    @property
    def clock(self) -> TimeKind:
        """Which time it depends on, if it is `timed`."""
        return self.closes.kind if self.closes is not None else TimeKind.EVENT

    # needs that flow down

    @property
    def takes(self) -> tuple[Takes, ...]:
        """What it can work with, for each input."""
        raise NotImplementedError

    def net(self, key: Key) -> Node | None:
        """The node so that it emits one net change per `key` and batch, without before-images; None if it cannot.
        A key of the node is part of `key`, and what its inputs emit is decided."""
        return None

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        """Of each input the columns that it reads, if `needed` are those that somebody reads of it."""
        raise NotImplementedError

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        """The node with no more columns than `needed` and those it cannot do without, over narrowed inputs."""
        raise NotImplementedError

    def filtered_below(self, names: frozenset[str]) -> tuple[Mapping[str, str] | None, ...]:
        """Where a filter that reads these columns can stand below the node with the same result: for each input their
        names there, or None if that input needs no filter. Empty if it must stay above."""
        return ()

    # what a retraction depends on: see `plan.determinism`

    @property
    def decisive(self) -> tuple[Expr, ...]:
        """Expressions that must give for a retraction what they gave for the row that is retracted."""
        return ()

    def recomputed(self, names: frozenset[str]) -> list[Expr]:
        """Of an operator with state, how those of these columns are computed that it does not store."""
        del names
        return []

    @property
    def matched(self) -> tuple[frozenset[str], ...]:
        """Of each input the columns by which retractions are matched with what was inserted."""
        return tuple(frozenset(i.names) if self.stateful else frozenset() for i in self.inputs)

    # how it is shown and what it keeps

    def described(self) -> str:
        """What the operator does, for EXPLAIN. The planner's own names of columns are replaced afterwards."""
        raise NotImplementedError

    def update_source(self) -> str:
        """In words what makes the stream an updating one, if it is this node; empty if it only passes updates on."""
        return ""

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        """For each of the planner's own columns of a node, the expression that it holds."""
        return {name: text for child in self.inputs for name, text in child.display_names.items()}

    @property
    def remembers(self) -> str:
        """What it keeps as state, in words, for EXPLAIN."""
        return ""

    def state_tables(self) -> tuple[StateSchema, ...]:
        """What it keeps, in types of SQL; which Arrow types that is follows from them and `state_version`."""
        return ()

    def shown(self, text: str) -> str:
        """A text about columns of the inputs, without the planner's own names."""
        return shown_text(text, {name: text for child in self.inputs for name, text in child.display_names.items()})


_REQUIRED = ("mode", "keys", "takes", "needs", "narrowed", "described", "with_inputs")
_REQUIRED_OF_STATE = ("partitioned_by", "remembers", "state_tables")


def walk(node: Node) -> list[Node]:
    """The node and everything below it, inputs first. A node that is used twice is there once."""
    found: dict[int, Node] = {}
    _walk(node, found)
    return list(found.values())


def _walk(node: Node, found: dict[int, Node]) -> None:
    # By identity: equal nodes at two places are two operators, unless a pass has made them one.
    if id(node) not in found:
        for child in node.inputs:
            _walk(child, found)
        found[id(node)] = node


def distinct_keys(keys: Sequence[Key]) -> tuple[Key, ...]:
    """Each set of columns once, and not too many: joins would multiply them."""
    found: dict[frozenset[str], Key] = {}
    for key in keys:
        found.setdefault(frozenset(key), key)
    return tuple(found.values())[:MOST_KEYS]


def item_text(name: str, text: str) -> str:
    """An expression under its name, without those that the planner has given."""
    return text if text == name or is_internal(name) else f"{text} AS {name}"


def typed(columns: Sequence[Column]) -> tuple[str, ...]:
    return tuple(f"{c.name} {c.type}" for c in columns)


def source_of_updates(node: Node) -> str:
    """The operator at or below `node` that makes the stream an updating one, in words."""
    return next((text for below in reversed(walk(node)) if (text := below.update_source())), "the query")
