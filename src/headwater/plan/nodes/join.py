"""The join of two inputs by equal keys, and what else a pair of rows must fulfil."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Key, Mode, Node, StateSchema, Takes, TimeKind, Window, distinct_keys, typed
from headwater.plan.nodes.rows import Binary, narrow
from headwater.sql.typed import Expr

__all__ = ["Comparison", "Condition", "Flag", "Join", "JoinKind", "KeyedJoin", "Logic", "Negation", "Truth"]

JoinKind = Literal["inner", "left", "right", "full", "semi", "anti", "mark"]

_WORDS = {"inner": "Join", "semi": "SemiJoin", "anti": "AntiJoin"}
_SUBQUERIES = {"semi": "IN or EXISTS", "anti": "NOT IN or NOT EXISTS", "mark": "IN or EXISTS"}


@dataclass(frozen=True)
class Flag:
    """A BOOLEAN column of one side."""

    column: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset([self.column])


@dataclass(frozen=True)
class Comparison:
    """Two columns of the same type. `operator` is one of = <> < <= > >= and IS NOT DISTINCT FROM."""

    operator: str
    left: str
    right: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset([self.left, self.right])


@dataclass(frozen=True)
class Logic:
    operator: Literal["AND", "OR"]
    parts: tuple[Condition, ...]

    @property
    def columns(self) -> frozenset[str]:
        return frozenset().union(*(part.columns for part in self.parts))


@dataclass(frozen=True)
class Negation:
    operand: Condition

    @property
    def columns(self) -> frozenset[str]:
        return self.operand.columns


@dataclass(frozen=True)
class Truth:
    """TRUE if the operand is, else FALSE, never unknown."""

    operand: Condition

    @property
    def columns(self) -> frozenset[str]:
        return self.operand.columns


Condition = Flag | Comparison | Logic | Negation | Truth
"""What is asked of a pair of rows. Everything that one side can say alone is a column of that side."""


@dataclass(frozen=True)
class KeyedJoin(Binary, abstract=True):
    """What all joins by keys share. The names of columns differ between the sides. Keys are compared in order; NULL
    equals nothing. `text` is the condition for EXPLAIN."""

    kind: JoinKind
    left_keys: Key
    right_keys: Key
    condition: Condition | None
    text: str

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        kept = {"inner": self.inputs, "right": (self.right,), "full": ()}.get(self.kind, (self.left,))
        return {name: e for side in kept for name, e in side.constants.items()}

    @property
    def partitioned_by(self) -> Key | None:
        return self.right_keys if self.kind == "right" else self.left_keys

    @cached_property
    def distribution(self) -> Key | None:
        """Rows of a full join that are only on one side have NULL in the key of the other."""
        return None if self.kind == "full" and self.left_keys else self.partitioned_by

    @property
    def mark(self) -> str:
        """The column of a mark join that says whether a row has a match."""
        return self.columns[-1].name if self.kind == "mark" else ""

    @property
    def read(self) -> frozenset[str]:
        """The columns that the join reads itself."""
        asked = self.condition.columns if self.condition is not None else frozenset()
        return frozenset({*self.left_keys, *self.right_keys}) | asked

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        wanted = needed | self.read
        # Rows are counted even where nobody asks for a column of them.
        return tuple(wanted & frozenset(side.names) or frozenset(side.names[:1]) for side in self.inputs)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        """Columns that only the join reads go no further: they would be kept in the state of the next one."""
        left, right = inputs
        # A mark that nobody reads changes nothing: each row of the left is there once, with or without it.
        if self.kind == "mark" and self.mark not in needed:
            return narrow(left, tuple(c for c in left.columns if c.name in needed))
        there = {*left.names, *right.names, self.mark}
        node = replace(self, columns=tuple(c for c in self.columns if c.name in there), left=left, right=right)
        return narrow(node, tuple(c for c in node.columns if c.name in needed))


@dataclass(frozen=True)
class Join(KeyedJoin):
    """`columns` are those of both sides, or of the left alone (semi, anti), or of the left and then a BOOLEAN that says
    whether the row has a match (mark); their names differ between the sides.
    `left_keys` and `right_keys` are compared in order; NULL equals nothing. `text` is the condition for EXPLAIN.

    With `unknown_matches` a pair matches unless its condition is FALSE: an anti join is then NOT IN. Without `before`,
    it emits one net change per `net_key`."""

    condition: Condition | None = None
    text: str = ""
    unknown_matches: bool = False
    before: bool = True
    net_key: Key = ()

    state_version = 1

    @property
    def shows_pairs(self) -> bool:
        return self.kind not in ("semi", "anti", "mark")

    @cached_property
    def closes(self) -> Window | None:
        """The left side's window, if both sides have one and they are compared: their rows meet once, when it
        closes."""
        left, right = self.left.window, self.right.window
        if left is None or right is None or left.session or right.session or left.kind is not right.kind:
            return None
        pairs = list(zip(self.left_keys, self.right_keys, strict=True))
        whole = (left.start, right.start) in pairs and (left.end, right.end) in pairs and left.local == right.local
        return left if whole else None

    @cached_property
    def window(self) -> Window | None:
        """Rows of the right side alone have no window on the left."""
        return self.closes if self.kind not in ("right", "full") else None

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        window = self.window
        return {window.time: window.kind} if window is not None and window.time else {}

    @cached_property
    def mode(self) -> Mode:
        if self.closes is not None:
            return Mode.APPEND
        inserts = all(side.mode is Mode.APPEND for side in self.inputs)
        if self.kind in ("inner", "semi") and inserts:
            return Mode.APPEND
        return Mode.RETRACT if self.before else Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """One side's keys where a row of it meets at most one of the other; and those of both together."""
        if not self.shows_pairs:
            return self.left.keys
        found: list[Key] = []
        if self.kind in ("inner", "left") and _is_unique(self.right, self.right_keys):
            found += self.left.keys
        if self.kind in ("inner", "right") and _is_unique(self.left, self.left_keys):
            found += self.right.keys
        # A pair is identified by both its rows.
        found += [tuple(dict.fromkeys((*a, *b))) for a, b in product(self.left.keys, self.right.keys)]
        found += self._with_equal_columns(found)
        return distinct_keys([key for key in found if not any(set(other) < set(key) for other in found)])

    def _with_equal_columns(self, keys: Sequence[Key]) -> list[Key]:
        """An inner join's columns that are compared hold the same values: one may stand for the other."""
        if self.kind != "inner":
            return []
        pairs = list(zip(self.left_keys, self.right_keys, strict=True))
        # A sink may declare either of two columns that are equal as its key.
        renamings = [{right: left for left, right in pairs}, dict(pairs)]
        return [tuple(dict.fromkeys(same.get(name, name) for name in key)) for key in keys for same in renamings]

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES, Takes.CHANGES)

    def net(self, key: Key) -> Node | None:
        """Only where all rows of a key meet in one state partition: else one would retract what another adds."""
        if self.closes is not None:
            return None
        # A net change needs all changes of a key in one task; each task would otherwise net its own part.
        together = self.distribution is not None and set(self.distribution) <= set(key)
        return replace(self, before=False, net_key=key) if together else None

    def filtered_below(self, names: frozenset[str]) -> tuple[Mapping[str, str] | None, ...]:
        """On the side that it reads, unless rows of that side are shown as missing."""
        same = {name: name for name in names}
        if self.kind not in ("right", "full") and names <= set(self.left.names):
            return (same, None)
        return (None, same) if self.kind in ("inner", "right") and names <= set(self.right.names) else ()

    def described(self) -> str:
        word = ("Window" if self.closes is not None else "") + _WORDS.get(self.kind, f"{self.kind.capitalize()}Join")
        return f"{word} on {self._asked}" if self.text else f"{word} of all rows"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        below = super().display_names
        return {**below, self.mark: f"MATCHED({self.shown(self._asked)})"} if self.mark else below

    @property
    def _asked(self) -> str:
        return f"{self.text} IS NOT FALSE" if self.unknown_matches else self.text

    def update_source(self) -> str:
        if self.mode is Mode.APPEND or any(side.mode is not Mode.APPEND for side in self.inputs):
            return ""
        return _SUBQUERIES.get(self.kind, f"{self.kind.upper()} JOIN")

    @property
    def remembers(self) -> str:
        return "the rows of open windows" if self.closes is not None else "the rows of both sides"

    def state_tables(self) -> tuple[StateSchema, ...]:
        if self.closes is not None:
            return tuple(StateSchema("rows of open windows", (), typed(side.columns)) for side in self.inputs)
        matches = {"inner": (), "right": ("right",), "full": ("left", "right")}.get(self.kind, ("left",))
        sides = {"left": (self.left, self.left_keys), "right": (self.right, self.right_keys)}
        found = []
        for name, (side, _) in sides.items():
            # The number of matches is kept per row only where a condition makes it differ between rows of one key.
            counted = ("matches BIGINT",) if name in matches and self.condition is not None else ()
            found.append(StateSchema(name, typed(side.columns), ("count BIGINT", *counted)))
        for name, other in (("left", "right"), ("right", "left")):
            if self.condition is None and other in matches:
                side, keys = sides[name]
                columns = {c.name: c for c in side.columns}
                found.append(StateSchema(f"{name}_keys", typed([columns[key] for key in keys]), ("count BIGINT",)))
        return tuple(found)


def _is_unique(side: Node, columns: Key) -> bool:
    return any(set(key) <= set(columns) for key in side.keys)
