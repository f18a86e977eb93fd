"""GROUP BY the windows of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.plan.cached import cached_property
from headwater.plan.nodes.aggregate import Aggregate
from headwater.plan.nodes.base import Column, Key, Mode, Node, StateSchema, TimeKind, Window, typed

__all__ = ["WindowAggregate"]


@dataclass(frozen=True)
class WindowAggregate(Aggregate):
    """As `Aggregate`; two of its groups are start and end of the input's window. A result is emitted when the window
    closes. With `early`, changes are emitted before that; with `lateness`, in milliseconds, after it, too. The last of
    its columns is the last moment of the window as a time attribute."""

    early: bool = False
    lateness: int = 0

    state_version = 2

    @property
    def timed(self) -> bool:
        return True

    @property
    def over(self) -> Window:
        window = self.input.window
        assert window is not None
        return window

    @property
    def clock(self) -> TimeKind:
        return self.over.kind

    @property
    def time(self) -> Column:
        return self.columns[-1]

    @property
    def by(self) -> Key:
        """The groups without the window."""
        return tuple(g for g in self.groups if g not in {self.over.start, self.over.end})

    @cached_property
    def mode(self) -> Mode:
        if not self.early and not self.lateness:
            return Mode.APPEND
        return Mode.RETRACT if self.before else Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        return tuple((*self.by, *bounds) for bounds in self.over.bounds)

    def filtered_below(self, names: frozenset[str]) -> tuple[Mapping[str, str] | None, ...]:
        """The bounds of a session are known when it has ended: below, each row has bounds of its own."""
        known = self.over.session is None or names <= set(self.by)
        return super().filtered_below(names) if known else ()

    def net(self, key: Key) -> Node | None:
        same = any(set(own) == set(key) for own in self.keys)
        return replace(self, before=False) if same and self.mode is not Mode.APPEND else None

    @cached_property
    def times(self) -> Mapping[str, TimeKind]:
        return {self.time.name: self.over.kind}

    @cached_property
    def window(self) -> Window | None:
        # Above, the bounds are known: what was a session is a window like others.
        return replace(self.over, time=self.time.name, session=None, panes=None)

    @property
    def partitioned_by(self) -> Key | None:
        # Sessions of a key may merge, so they have to be in one partition.
        together = self.over.session is not None or self.over.panes is not None
        return self.by if together else self.groups

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        (used,) = super().needs(needed)
        return (used | {self.over.time},) if self.over.session is not None else (used,)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> WindowAggregate:
        narrow = super().narrowed(needed, inputs)
        return replace(self, columns=(*narrow.columns, self.time), input=inputs[0], calls=narrow.calls)

    def described(self) -> str:
        text = f"Window{super().described()}"
        early = ", results early" if self.early else ""
        return f"{text}{early}{f', late by {self.lateness} ms' if self.lateness else ''}"

    def update_source(self) -> str:
        return super().update_source() if self.mode is not Mode.APPEND else ""

    @property
    def remembers(self) -> str:
        return super().remembers.replace("group", "group and instant" if self.over.session else "open window")

    def state_tables(self) -> tuple[StateSchema, ...]:
        """Beside those of an `Aggregate`, indexes by time."""
        groups = typed([c for c in self.columns if c.name in self.groups])
        return (*super().state_tables(), StateSchema("times", groups, ()))
