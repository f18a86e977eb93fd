"""What each aggregate of a GROUP BY needs of a row: columns, and the accumulators and multisets they feed."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import DataType

from headwater.changelog.aggregate import ROWS
from headwater.changelog.exact_sums import weight_name
from headwater.changelog.exact_sums_sql import DoubleSum
from headwater.changelog.kinds import ADDED, KIND
from headwater.changelog.ordered_values import Collected
from headwater.changelog.preaggregate import PartialAggregate, PartialKind, double_sum
from headwater.changelog.results import AggregateResult
from headwater.changelog.user_aggregate import UserResult
from headwater.changelog.variance import SPREADS, square_sql
from headwater.execution.lowering.base import comparable_sql
from headwater.execution.python_functions import accumulator_step, aggregate_step
from headwater.plan import nodes as n
from headwater.python_functions.aggregates import AccumulatorStep
from headwater.sql.typed import AggregateCall

__all__ = ["WEIGHT", "Declared", "Fed", "Given", "Partials", "UserRows", "declared"]

Given = Literal["rows", "partials"]
"""What an aggregation gets: rows, or the partial aggregates of a local pre-aggregation."""

Fed = Literal["count", "sum", "min", "max"]
"""What an accumulator gets of the values of a multiset: how many there are, their sum, the least or the greatest."""

WEIGHT = f"CASE WHEN {ADDED} THEN 1L ELSE -1L END"


class UserRows(NamedTuple):
    """What an accumulator of a function of the user's gets: rows of arguments from columns with this name, or the
    different values of a multiset."""

    accumulator: str
    step: AccumulatorStep
    columns: str
    multiset: str = ""


class Declared(NamedTuple):
    """A result column, and the accumulators it is computed from; with `evaluate` by a function of the user's."""

    name: str
    call: AggregateCall
    value: str
    counts: str = ""
    squares: tuple[str, ...] = ()
    evaluate: Callable[[pa.Array], pa.Array] | None = None

    def result(self) -> AggregateResult:
        call = self.call
        if self.evaluate is not None:
            return UserResult(self.name, _arrow(call), call.function, self.value, evaluate=self.evaluate)
        return AggregateResult(
            self.name, _arrow(call), call.function, self.value, self.counts, self.squares, separator=call.separator
        )


def declared(node: n.Aggregate, columns: Collection[str] = ()) -> tuple[Partials, list[Declared]]:
    """Of an aggregation over rows with these columns: rows with a KIND may be retractions."""
    partials = Partials(KIND in columns)
    return partials, [partials.add(column.name, call) for column, call in node.called]


@dataclass
class Partials:
    """Columns to compute per row (name → SQL), and the accumulators and multisets they feed. Equal ones are shared.
    `parts` says the same as `columns` where that is nothing but a column's partial."""

    retracting: bool
    columns: dict[str, str] = field(default_factory=dict)
    parts: dict[str, PartialAggregate | None] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    doubles: dict[str, DoubleSum] = field(default_factory=dict)  # sums of DOUBLE, by what is summed
    double_parts: dict[str, tuple[PartialAggregate, ...] | None] = field(default_factory=dict)
    multisets: dict[tuple[str, str], str] = field(default_factory=dict)
    counts: set[str] = field(default_factory=lambda: {ROWS})  # columns that are 0 where there is nothing
    fed: list[tuple[str, str, Fed]] = field(default_factory=list)  # accumulator, multiset, what of it
    extremes: list[tuple[str, str, str]] = field(default_factory=list)
    ordered: dict[tuple[str, str, bool], str] = field(default_factory=dict)  # multisets that keep the order of arrival
    collected: list[Collected] = field(default_factory=list)
    arguments: dict[tuple[str, str], str] = field(default_factory=dict)  # of functions of the user's
    users: list[UserRows] = field(default_factory=list)
    by_arrival: bool = False
    alone: bool = False  # whether rows have more columns than that
    apart: bool = False  # whether rows of a group differ in columns that keep them apart
    given: Given = "rows"  # of partials, a row has the values of a multiset as a list

    def __post_init__(self) -> None:
        self.columns[ROWS] = self.weight
        self.parts[ROWS] = PartialAggregate(ROWS, "rows")
        self.functions[ROWS] = "sum"

    @property
    def weight(self) -> str:
        return WEIGHT if self.retracting else "1L"

    def ones(self) -> tuple[str, ...]:
        """Columns that are 1 in every row: where rows are shuffled as they are, these need not be."""
        as_they_are = self.row_by_row and not self.counts_values
        return tuple(name for name, sql in self.columns.items() if sql == "1L") if as_they_are else ()

    @property
    def by_value(self) -> dict[str, list[str]]:
        """Of each argument the multisets of its values: they differ in what they filter."""
        found: dict[str, list[str]] = {}
        for (argument, _), name in self.multisets.items():
            found.setdefault(argument, []).append(name)
        return found

    @property
    def counts_values(self) -> bool:
        """Whether the values of rows are counted before the shuffle. It costs a pass over all rows, which is little
        beside what the operator does with each row, for each multiset, where several have the same values."""
        others = self.ordered or self.by_arrival or self.alone or self.apart or self.doubles
        return not others and self.given == "rows" and len(self.by_value) < len(self.multisets)

    @property
    def row_by_row(self) -> bool:
        """Whether rows are shuffled one by one."""
        return bool(self.multisets or self.ordered or self.by_arrival or self.alone)

    def add(self, name: str, call: AggregateCall) -> Declared:
        """Declare what a call needs."""
        if call.argument is None:
            return Declared(name, call, self._column(_when(call, self.weight), "sum", call, "rows"))
        if call.accumulates:
            return self._accumulated(name, call)
        if call.keeps_order:
            evaluate = aggregate_step(call) if call.user is not None else None
            return Declared(name, call, self._in_order(call), evaluate=evaluate)
        present = f"{call.argument.sql} IS NOT NULL"
        if call.distinct and call.function in {"COUNT", "SUM", "AVG"}:
            multiset = self._multiset(call)
            count = self._fed(multiset, "count")
            value = count if call.function == "COUNT" else self._fed(multiset, "sum")
            return Declared(name, call, value, count)
        if call.function in {"MIN", "MAX"}:
            return Declared(name, call, self._best(call))
        count = self._column(_when(call, self.weight, present), "sum", call, "present")
        if call.function == "COUNT":
            return Declared(name, call, count)
        amount = f"CAST({call.argument.sql} AS {_sum_type(call)})"
        if call.function in SPREADS:
            parts = [_when(call, sql, present, otherwise="NULL") for sql in (amount, *square_sql(amount))]
            value, *squares = (self._double(part) for part in parts)
            return Declared(name, call, value, count, tuple(squares))
        if _sum_type(call) == "DOUBLE":
            return Declared(name, call, self._double(_when(call, amount, present, otherwise="NULL"), call), count)
        if self.retracting:
            amount = f"CASE WHEN {ADDED} THEN {amount} ELSE -{amount} END"
        total = self._column(_when(call, amount, present, otherwise="NULL"), "sum", call, "sum")
        return Declared(name, call, total, count)

    def _in_order(self, call: AggregateCall) -> str:
        """FIRST_VALUE and LAST_VALUE of inserts are an accumulator; whatever else depends on the order of rows is read
        from all values, which are kept in that order."""
        assert call.argument is not None
        self.by_arrival = True
        function = "list" if call.is_list else call.function.removesuffix("_VALUE").lower()
        if not self.retracting and not call.is_list:
            return self._column(_when(call, call.argument.sql, otherwise="NULL"), function, None, "values")
        key = (call.argument.sql, call.filter.sql if call.filter else "", call.nulls)
        if key not in self.ordered:
            name = self.ordered[key] = f"__hw_ordered{len(self.ordered) + 1}"
            self.columns[f"{name}_value"] = call.argument.sql
            present = "" if call.nulls else f"{call.argument.sql} IS NOT NULL"
            self.columns[f"{name}_weight"] = _when(call, self.weight, present)
            self.parts[f"{name}_value"] = None
        distinct = call.distinct and call.is_list
        accumulator = f"{self.ordered[key]}_{function}{'_distinct' if distinct else ''}"
        collected = Collected(accumulator, self.ordered[key], function, distinct)
        if collected not in self.collected:
            self.collected.append(collected)
        return accumulator

    def _accumulated(self, name: str, call: AggregateCall) -> Declared:
        """A function of the user's that keeps an accumulator: it gets the rows one by one, in their order."""
        assert call.argument is not None
        self.by_arrival = True
        step = accumulator_step(call, retracted=self.retracting)
        columns, multiset = ("", self._multiset(call)) if call.distinct else (self._arguments(call), "")
        rows = UserRows(f"__hw_u{len(self.users) + 1}", step, columns, multiset)
        self.users.append(rows)
        return Declared(name, call, rows.accumulator, evaluate=step.values)

    def _arguments(self, call: AggregateCall) -> str:
        """What the columns with a row of arguments and with its weight begin with."""
        assert call.argument is not None
        key = (call.argument.sql, call.filter.sql if call.filter else "")
        if key not in self.arguments:
            name = self.arguments[key] = f"__hw_arguments{len(self.arguments) + 1}"
            self.columns[f"{name}_value"] = call.argument.sql
            self.columns[f"{name}_weight"] = _when(call, self.weight)
            self.parts[f"{name}_value"] = None  # nothing that a reader could reduce
        return self.arguments[key]

    def _double(self, value: str, call: AggregateCall | None = None) -> str:
        """A sum of DOUBLE is exact: its partial sums have several columns (`changelog.exact_sums`). Without the call it
        is not that of a column."""
        if value not in self.doubles:
            name = f"__hw_d{len(self.doubles) + 1}"
            self.doubles[value] = DoubleSum(name, value, self.weight)
            part = _part(name, call, "sum") if call is not None else None
            self.double_parts[name] = double_sum(name, part.column) if part is not None else None
        return self.doubles[value].name

    def plain_doubles(self) -> dict[str, str]:
        """Columns for rows that are shuffled one by one: the value, and how often it counts."""
        columns = {double.name: value for value, double in self.doubles.items()}
        if self.retracting:
            columns |= {weight_name(double.name): self.weight for double in self.doubles.values()}
        return columns

    def all_parts(self) -> list[PartialAggregate | None]:
        doubles = [part for parts in self.double_parts.values() for part in (parts or (None,))]
        return [*self.parts.values(), *doubles]

    def _best(self, call: AggregateCall) -> str:
        assert call.argument is not None
        function: Literal["min", "max"] = "min" if call.function == "MIN" else "max"
        if not self.retracting:
            return self._column(_when(call, call.argument.sql, otherwise="NULL"), function, call, function)
        # The next best value must be known when the best one is retracted: all of them are kept, with their counts.
        multiset = self._multiset(call)
        accumulator = self._fed(multiset, function)
        if (accumulator, multiset, function) not in self.extremes:
            self.extremes.append((accumulator, multiset, function))
        return accumulator

    def _column(self, sql: str, function: str, call: AggregateCall | None, how: PartialKind) -> str:
        # AVG(x) and COUNT(x) count the same: one column and one accumulator serve both.
        for name, existing in self.columns.items():
            if existing == sql and self.functions.get(name) == function:
                return name
        name = f"__hw_a{len(self.columns)}"
        self.columns[name], self.functions[name] = sql, function
        self.counts |= {name} if how in ("rows", "present") else set()
        self.parts[name] = _part(name, call, how) if call is not None else None
        return name

    def _multiset(self, call: AggregateCall) -> str:
        assert call.argument is not None
        key = (call.argument.sql, call.filter.sql if call.filter else "")
        if key not in self.multisets:
            name = f"__hw_values{len(self.multisets) + 1}"
            self.multisets[key] = name
            # Floats are normalized: 0.0 and -0.0 are one value to SQL, but two keys of the state.
            self.columns[f"{name}_value"] = comparable_sql(call.argument.sql, call.argument.type)
            self.parts[f"{name}_value"] = _part(f"{name}_value", call, "values")
            self.columns[f"{name}_weight"] = _when(call, self.weight, f"{call.argument.sql} IS NOT NULL")
        return self.multisets[key]

    def _fed(self, multiset: str, what: Fed) -> str:
        accumulator = f"{multiset}_{what}"
        if (accumulator, multiset, what) not in self.fed:
            self.fed.append((accumulator, multiset, what))
        return accumulator


def _part(name: str, call: AggregateCall, how: PartialKind) -> PartialAggregate | None:
    if call.filter is not None:
        return None
    if call.argument is None:
        return PartialAggregate(name, how)
    # Workers pre-aggregate plain columns, and sum what fits into 64 bits: decimals are left out.
    if call.argument.column is None or call.argument.type.name == "DECIMAL":
        return None
    return PartialAggregate(name, how, call.argument.column)


def _when(call: AggregateCall, then: str, present: str = "", otherwise: str = "0L") -> str:
    conditions = [f"({c})" for c in (call.filter.sql if call.filter else "", present) if c]
    return f"CASE WHEN {' AND '.join(conditions)} THEN {then} ELSE {otherwise} END" if conditions else then


def _sum_type(call: AggregateCall) -> str:
    assert call.argument is not None
    kind = call.argument.type
    if call.function in SPREADS:
        return "DOUBLE"
    if kind.is_integer:
        return "BIGINT"
    return f"DECIMAL(38,{kind.scale})" if kind.name == "DECIMAL" else "DOUBLE"


def _arrow(call: AggregateCall) -> pa.DataType:
    dtype = DataType.fromDDL(call.type.spark())
    return to_arrow_type(dtype)
