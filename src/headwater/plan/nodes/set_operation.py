"""INTERSECT and EXCEPT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Key, Mode, Node, StateSchema, Takes, distinct_keys, typed
from headwater.plan.nodes.rows import Binary

__all__ = ["SetOperation"]


@dataclass(frozen=True)
class SetOperation(Binary):
    """`function` is INTERSECT or EXCEPT, with or without ALL. The columns of both inputs have the same names and
    types."""

    function: str

    state_version = 1

    @property
    def _intersects(self) -> bool:
        return self.function.startswith("INTERSECT")

    @cached_property
    def mode(self) -> Mode:
        """Of inserts the intersection only grows."""
        inserts = all(child.mode is Mode.APPEND for child in self.inputs)
        return Mode.APPEND if inserts and self._intersects else Mode.RETRACT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """A row of the result is a row of the left and, in an intersection, of the right."""
        whole = () if self.function.endswith("ALL") else (self.names,)
        return distinct_keys([*self.left.keys, *(self.right.keys if self._intersects else ()), *whole])

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES, Takes.CHANGES)

    @property
    def partitioned_by(self) -> Key | None:
        return self.names

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        # All columns, read or not: rows are compared as wholes.
        return (frozenset(self.names), frozenset(self.names))

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Node:
        return self.with_inputs(inputs)

    def described(self) -> str:
        return self.function.title().replace(" All", "All")

    def update_source(self) -> str:
        return "" if self.mode is Mode.APPEND else self.function

    @property
    def remembers(self) -> str:
        return "how often each row is on either side"

    def state_tables(self) -> tuple[StateSchema, ...]:
        return (StateSchema("rows", typed(self.columns), ("left BIGINT", "right BIGINT")),)
