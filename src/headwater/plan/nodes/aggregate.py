"""GROUP BY."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from headwater.plan.cached import cached_property
from headwater.plan.nodes.base import Column, Key, Mode, Node, StateSchema, Takes, distinct_keys, item_text, typed
from headwater.plan.nodes.rows import Unary
from headwater.sql.typed import ACCUMULATOR_FORM, AggregateCall, Expr

__all__ = ["Aggregate"]


@dataclass(frozen=True)
class Aggregate(Unary):
    """`columns` are the groups (input columns, same names) and then one per call. With `before`, updates are -U, +U."""

    groups: tuple[str, ...]
    calls: tuple[AggregateCall, ...]
    before: bool = True

    state_version = 1

    @property
    def called(self) -> Iterator[tuple[Column, AggregateCall]]:
        first = len(self.groups)
        return zip(self.columns[first : first + len(self.calls)], self.calls, strict=True)

    @cached_property
    def mode(self) -> Mode:
        return Mode.RETRACT if self.before else Mode.UPSERT

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The groups, also without those that are the same in all rows."""
        # A group that is a constant identifies nothing; without it, GROUP BY 'x', a is unique by a.
        return distinct_keys([self.groups, tuple(g for g in self.groups if g not in self.input.constants)])

    @cached_property
    def constants(self) -> Mapping[str, Expr]:
        return {name: e for name, e in self.input.constants.items() if name in self.groups}

    @property
    def partitioned_by(self) -> Key | None:
        return self.groups

    @property
    def takes(self) -> tuple[Takes, ...]:
        return (Takes.CHANGES,)

    def net(self, key: Key) -> Node | None:
        # By its own groups it emits one change per key and batch; by any other key, several groups may change the same
        # row.
        return replace(self, before=False) if set(key) == set(self.groups) else None

    def filtered_below(self, names: frozenset[str]) -> tuple[Mapping[str, str] | None, ...]:
        """A condition on groups keeps or drops all rows of a group."""
        return ({name: name for name in names},) if names <= set(self.groups) else ()

    def needs(self, needed: frozenset[str]) -> tuple[frozenset[str], ...]:
        used = [_expressions(call) for column, call in self.called if column.name in needed]
        return (frozenset(self.groups).union(*(e.refs for found in used for e in found)),)

    def narrowed(self, needed: frozenset[str], inputs: Sequence[Node]) -> Aggregate:
        kept = [(c, call) for c, call in self.called if c.name in needed]
        columns = (*self.columns[: len(self.groups)], *(c for c, _ in kept))
        return replace(self, columns=columns, input=inputs[0], calls=tuple(call for _, call in kept))

    @property
    def decisive(self) -> tuple[Expr, ...]:
        return tuple(e for call in self.calls for e in _expressions(call))

    def recomputed(self, names: frozenset[str]) -> list[Expr]:
        """Results of the user's functions are computed from what is stored, and not stored themselves."""
        return [call.user.call for column, call in self.called if column.name in names and call.user is not None]

    def described(self) -> str:
        items = ", ".join(item_text(c.name, call.text) for c, call in self.called)
        return f"Aggregate group by ({', '.join(self.groups)}) [{items}]"

    def update_source(self) -> str:
        groups = ", ".join(self.shown(group) for group in self.groups)
        return f"GROUP BY {groups}" if groups else "the aggregate over all rows"

    @cached_property
    def display_names(self) -> Mapping[str, str]:
        return {**self.input.display_names, **{column.name: call.text for column, call in self.called}}

    def _kept_values(self) -> list[AggregateCall]:
        """Calls whose values are remembered one by one."""
        # Without retractions the best value is enough for MIN and MAX.
        retracting = self.input.mode is not Mode.APPEND
        return [call for call in self.calls if call.keeps_values(retracting=retracting)]

    @property
    def remembers(self) -> str:
        accumulators = [f"the accumulator of {self.shown(c.text)} per group" for c in self.calls if c.accumulates]
        values = [f"{self._values(c)} per group" for c in self._kept_values()]
        return ", ".join(dict.fromkeys(["one row per group", *accumulators, *values]))

    def _values(self, call: AggregateCall) -> str:
        if call.user is not None and not call.accumulates:
            return f"all values for {self.shown(call.text)}"
        return f"values of {self.shown(call.argument.text)}" if call.argument is not None else ""

    def state_tables(self) -> tuple[StateSchema, ...]:
        groups = typed(self.columns[: len(self.groups)])
        values = tuple(
            f"{call.text}{_of(call.argument and call.argument.type)} {call.type}{_kept(call)}" for call in self.calls
        )
        tables = {(call.argument, call.filter, call.keeps_order, call.nulls): call for call in self._kept_values()}
        found = [StateSchema("groups", groups, ("COUNT(*) BIGINT", *values))]
        for argument, condition, in_order, _ in tables:
            assert argument is not None
            where = f" where {condition.text}" if condition is not None else ""
            value = f"{argument.text} {argument.type}"
            orders = ("orders ARRAY<BIGINT>",) if in_order else ()
            found.append(StateSchema(f"values of {argument.text}{where}", (*groups, value), ("count BIGINT", *orders)))
        return tuple(found)


def _expressions(call: AggregateCall) -> list[Expr]:
    return [e for e in (call.argument, call.filter) if e is not None]


def _kept(call: AggregateCall) -> str:
    """What a checkpoint remembers of a function of the user's: it cannot go on from what it does not keep."""
    if call.user is None:
        return ""
    return f" by accumulator (form {ACCUMULATOR_FORM})" if call.accumulates else " by all values"


def _of(kind: object) -> str:
    return "" if kind is None else f" of {kind}"
