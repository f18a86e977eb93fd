"""Joins that time decides: within an interval, and with the version of a row that was valid at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Key, Mode, Node, StateSchema, Takes, TimeKind, distinct_keys, typed
from headwater.plan.nodes.join import KeyedJoin

__all__ = ["IntervalJoin", "LookupJoin", "TemporalJoin"]


@dataclass(frozen=True)
class _TimedJoin(KeyedJoin, abstract=True):
    """Emits inserts only: what a row is joined with is final when it is emitted."""

    @cached_property
    def mode(self) -> Mode:
        return Mode.APPEND

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        # Time attributes stay, even if nobody reads them: operators above close windows by them.
        return super().narrowed(needed | frozenset(self.times), inputs)

    def _words(self, word: str) -> str:
        return word if self.kind == "inner" else f"{self.kind.capitalize()}{word}"


@dataclass(frozen=True)
class IntervalJoin(_TimedJoin):
    """A pair matches if right time - left time, in microseconds, is from `low` to `high`."""

    left_time: str
    right_time: str
    low: int
    high: int

    state_version = 2
    timed = True

    @property
    def clock(self) -> TimeKind:
        return self.left.times[self.left_time]

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """Those that are compared: a row that is further behind the watermark than the interval is long has no
        pairs."""
        return dict.fromkeys((self.left_time, self.right_time), TimeKind.EVENT) if self._by_event_time else {}

    @cached_property
    def delay(self) -> int:
        # The earlier row of a pair may be that far behind the watermark when its partner comes.
        return super().delay + (max(self.high, -self.low, 0) if self._by_event_time else 0)

    @property
    def _by_event_time(self) -> bool:
        return self.clock is TimeKind.EVENT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        # Rows that are emitted alone have NULL in the key of the other side.
        if self.kind != "inner":
            return ()
        return distinct_keys([tuple(dict.fromkeys((*a, *b))) for a, b in product(self.left.keys, self.right.keys)])

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.INSERTS, Takes.INSERTS)

    @property
    def read(self) -> frozenset[str]:
        return super().read | {self.left_time, self.right_time}

    def described(self) -> str:
        bounds = f"{_shown(self.low)} to {_shown(self.high)}"
        return f"{self._words('IntervalJoin')} on {self.text}, {self.right_time} - {self.left_time} from {bounds}"

    @property
    def remembers(self) -> str:
        return "the rows of both sides until their interval is over"

    def state_tables(self) -> tuple[StateSchema, ...]:
        matched = {"inner": (), "full": ("left", "right")}.get(self.kind, (self.kind,))
        found = []
        for name, side in (("left", self.left), ("right", self.right)):
            values = ("count BIGINT", *(("matched BOOLEAN",) if name in matched else ()))
            found += [
                StateSchema(name, (*typed(side.columns), "passed BIGINT"), values),
                StateSchema(f"{name}_expiry", ("key BIGINT",), ()),
            ]
        return tuple(found)


@dataclass(frozen=True)
class TemporalJoin(_TimedJoin):
    """FOR SYSTEM_TIME AS OF `left_time`, by event time. `right_time` is the time from which a version is valid."""

    left_time: str
    right_time: str

    state_version = 3
    timed = True

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """A row of the left meets at most one version."""
        return self.left.keys

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        """Those of the left: a row is emitted in the batch in which the watermark passes its time, so it is not late
        for what comes behind."""
        return {name: kind for name, kind in self.left.times.items() if name == self.left_time}

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.INSERTS, Takes.UPSERTS)

    @property
    def read(self) -> frozenset[str]:
        return super().read | {self.left_time, self.right_time}

    def described(self) -> str:
        return f"{self._words('TemporalJoin')} on {self.text}, as of {self.left_time}"

    @property
    def remembers(self) -> str:
        return "rows until the watermark passes, and versions since then"

    def state_tables(self) -> tuple[StateSchema, ...]:
        return (
            StateSchema("waiting", ("number BIGINT",), typed(self.left.columns)),
            StateSchema(
                "versions", (*typed(self.right.columns), "seen_from BIGINT"), ("deleted BOOLEAN", "came BIGINT")
            ),
        )


@dataclass(frozen=True)
class LookupJoin(_TimedJoin):
    """FOR SYSTEM_TIME AS OF processing time: each row of the left with the newest version of the right."""

    state_version = 1

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return self.left.keys

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return self.left.times

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.INSERTS, Takes.UPSERTS)

    def described(self) -> str:
        return f"{self._words('LookupJoin')} on {self.text}, as of processing time"

    @property
    def remembers(self) -> str:
        return f"last row per ({', '.join(self.right_keys)})"

    def state_tables(self) -> tuple[StateSchema, ...]:
        return (StateSchema("rows", typed(self.right.columns), ()),)


def _shown(micros: int) -> str:
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000)):
        if micros and micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros} us" if micros % 1000 else f"{micros // 1000} ms"
