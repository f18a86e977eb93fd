"""GROUPING SETS: every row once for each set of groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.plan.cached import cached_property
from headwater.plan.display_names import shown_text
from headwater.plan.nodes.base import Column, Key, Mode, Node, Takes, Window
from headwater.plan.nodes.rows import Unary

__all__ = ["Expand"]


@dataclass(frozen=True)
class Expand(Unary):
    """`columns` are those of the input, one for each of `groups` (the input columns that they copy), and the number of
    the set. In a row of a set, the groups that are not in it are NULL; its number has a bit set for each of those, the
    lowest one for the last of the groups."""

    groups: tuple[str, ...]
    sets: tuple[tuple[bool, ...], ...]

    @property
    def copies(self) -> tuple[Column, ...]:
        return self.columns[-len(self.groups) - 1 : -1]

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(sum((not kept) << bit for bit, kept in enumerate(reversed(one))) for one in self.sets)

    @cached_property
    def mode(self) -> Mode:
        return Mode.APPEND if self.input.mode is Mode.APPEND else Mode.RETRACT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        # A row is there once per set: only with the number of the set it is unique again.
        return tuple((*key, self.columns[-1].name) for key in self.input.keys)

    @cached_property
    def window(self) -> Window | None:
        return self.input.window

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        return ((needed & set(self.input.names)) | set(self.groups),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Expand:
        return replace(self, columns=(*inputs[0].columns, *self.copies, self.columns[-1]), input=inputs[0])

    def described(self) -> str:
        names = [self.shown(group) for group in self.groups]
        sets = [", ".join(name for name, kept in zip(names, one, strict=True) if kept) for one in self.sets]
        return f"Expand [{', '.join(f'({one})' for one in sets)}]"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        below = self.input.display_names
        copies = {copy.name: shown_text(group, below) for copy, group in zip(self.copies, self.groups, strict=True)}
        return {**below, **copies, self.columns[-1].name: f"GROUPING_ID({', '.join(copies.values())})"}
