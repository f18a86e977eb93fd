"""GROUP BY on its way to the keyed operator: per row, what it contributes to each accumulator.

Where all accumulators are plain sums or best-so-far values, Spark's own hash aggregation reduces the batch to one row
per group before Python sees it. Where values must be remembered (DISTINCT, or MIN and MAX that lose rows) the rows
themselves are shuffled by group, with nothing but the columns needed.

Where nothing but columns of a table is aggregated, a source may do most of that while it reads: `early_groups`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import ArrayType, DataType

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, Aggregate, Extreme
from headwater.changelog.early import Contribution, EarlyGroups, How
from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.multiset import Multiset
from headwater.changelog.results import Result
from headwater.plan import nodes as n
from headwater.plan.expression import AggregateCall
from headwater.runtime.keyed import BUCKET

__all__ = ["early_groups", "lower_aggregate"]

ADDED = f"{KIND} IN (0, 2)"
WEIGHT = f"CASE WHEN {ADDED} THEN 1L ELSE -1L END"


def lower_aggregate(
    node: n.Aggregate, frame: DataFrame, partitions: int, *, begun: bool = False
) -> tuple[DataFrame, Aggregate]:
    """The frame partitioned by group, with HASH, BUCKET and all contributions; and the operator for it. What was
    `begun` early has them already, and lists of the values that must be remembered."""
    contributions, results = _declared(node, retracting=KIND in frame.columns)
    groups = [_quoted(g) for g in node.groups]
    ones = () if begun else contributions.ones()
    rows = frame
    if not begun:
        shuffled = {name: sql for name, sql in contributions.columns.items() if name not in ones}
        rows = frame.selectExpr(*groups, *(f"{sql} AS {name}" for name, sql in shuffled.items()))
    if not contributions.multisets:
        rows = _reduced(rows, groups, contributions)
    elif groups:
        rows = rows.repartition(partitions, *groups)
    else:
        rows = rows.repartition(1)
    rows = _with_hashes(rows, groups, contributions, partitions)
    return rows, _operator(node, rows, contributions, results, ones)


def early_groups(node: n.Aggregate) -> tuple[n.Scan, EarlyGroups] | None:
    """The table whose rows are aggregated and what to do with them while they are read; None if there is more to it
    than columns of one table."""
    names = {name: name for name in node.input.names}
    below = node.input
    while isinstance(below, n.Project):
        taken = {c.name: e.column for c, e in zip(below.columns, below.expressions, strict=True)}
        names = {name: column for name, inner in names.items() if (column := taken.get(inner)) is not None}
        below = below.input
    if not isinstance(below, n.Scan):
        return None
    contributions, _ = _declared(node, retracting=False)
    parts = list(contributions.parts.values())
    if not all(part is not None and (not part.column or part.column in names) for part in parts):
        return None
    if not all(group in names for group in node.groups):
        return None
    kinds = {c.name: c.type for c in below.columns}
    told_apart = [names[g] for g in node.groups] + [names[p.column] for p in parts if p and p.how == "values"]
    if any(kinds[column].name in {"FLOAT", "DOUBLE"} for column in told_apart):  # -0.0 and NaN: Spark knows best
        return None
    groups = tuple((names[group], group) for group in node.groups)
    return below, EarlyGroups(groups, tuple(replace(p, column=names.get(p.column, "")) for p in parts if p))


def _declared(
    node: n.Aggregate, *, retracting: bool
) -> tuple[_Contributions, list[tuple[str, AggregateCall, str, str]]]:
    contributions = _Contributions(retracting)
    names = [c.name for c in node.columns[len(node.groups) :]]
    return contributions, [contributions.add(name, call) for name, call in zip(names, node.calls, strict=True)]


@dataclass
class _Contributions:
    """Columns to compute per row (name → SQL), and the accumulators and multisets they feed. Equal ones are shared.
    `parts` says the same as `columns` where that is nothing but a column's contribution."""

    retracting: bool
    columns: dict[str, str] = field(default_factory=dict)
    parts: dict[str, Contribution | None] = field(default_factory=dict)
    functions: dict[str, str] = field(default_factory=dict)
    multisets: dict[tuple[str, str], str] = field(default_factory=dict)
    fed: list[tuple[str, str, bool, str]] = field(default_factory=list)  # accumulator, multiset, of values, function
    extremes: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.columns[ROWS] = self.weight
        self.parts[ROWS] = Contribution(ROWS, "rows")
        self.functions[ROWS] = "sum"

    @property
    def weight(self) -> str:
        return WEIGHT if self.retracting else "1L"

    def ones(self) -> tuple[str, ...]:
        """Columns that are 1 in every row: where rows are shuffled as they are, these need not be."""
        return tuple(name for name, sql in self.columns.items() if sql == "1L") if self.multisets else ()

    def add(self, name: str, call: AggregateCall) -> tuple[str, AggregateCall, str, str]:
        """Declare what a call needs; answer with (column, call, value accumulator, count accumulator)."""
        if call.argument is None:
            return name, call, self._column(_when(call, self.weight), "sum", call, "rows"), ""
        present = f"{call.argument.sql} IS NOT NULL"
        if call.distinct and call.function in {"COUNT", "SUM", "AVG"}:
            multiset = self._multiset(call)
            count = self._fed(multiset, False, "sum")
            value = count if call.function == "COUNT" else self._fed(multiset, True, "sum")
            return name, call, value, count
        if call.function in {"MIN", "MAX"}:
            return name, call, self._best(call), ""
        count = self._column(_when(call, self.weight, present), "sum", call, "present")
        if call.function == "COUNT":
            return name, call, count, ""
        amount = f"CAST({call.argument.sql} AS {_sum_type(call)})"
        if self.retracting:
            amount = f"CASE WHEN {ADDED} THEN {amount} ELSE -{amount} END"
        total = self._column(_when(call, amount, present, otherwise="NULL"), "sum", call, "sum")
        return name, call, total, count

    def _best(self, call: AggregateCall) -> str:
        assert call.argument is not None
        function = call.function.lower()
        if not self.retracting:
            how: How = "min" if function == "min" else "max"
            return self._column(_when(call, call.argument.sql, otherwise="NULL"), function, call, how)
        multiset = self._multiset(call)
        accumulator = self._fed(multiset, False, function)
        if (accumulator, multiset, function) not in self.extremes:
            self.extremes.append((accumulator, multiset, function))
        return accumulator

    def _column(self, sql: str, function: str, call: AggregateCall, how: How) -> str:
        for name, existing in self.columns.items():
            if existing == sql and self.functions.get(name) == function:
                return name
        name = f"__a{len(self.columns)}"
        self.columns[name], self.functions[name] = sql, function
        self.parts[name] = _part(name, call, how)
        return name

    def _multiset(self, call: AggregateCall) -> str:
        assert call.argument is not None
        key = (call.argument.sql, call.filter.sql if call.filter else "")
        if key not in self.multisets:
            name = f"values{len(self.multisets) + 1}"
            self.multisets[key] = name
            self.columns[f"{name}_value"] = call.argument.sql
            self.parts[f"{name}_value"] = _part(f"{name}_value", call, "values")
            self.columns[f"{name}_weight"] = _when(call, self.weight, f"{call.argument.sql} IS NOT NULL")
        return self.multisets[key]

    def _fed(self, multiset: str, of_values: bool, function: str) -> str:
        for accumulator, *rest in self.fed:
            if rest == [multiset, of_values, function]:
                return accumulator
        accumulator = f"{multiset}_{'sum' if of_values else function if function != 'sum' else 'count'}"
        self.fed.append((accumulator, multiset, of_values, function))
        return accumulator


def _part(name: str, call: AggregateCall, how: How) -> Contribution | None:
    if call.filter is not None:
        return None
    if call.argument is None:
        return Contribution(name, how)
    if call.argument.column is None or call.argument.type.name == "DECIMAL":
        return None
    return Contribution(name, how, call.argument.column)


def _when(call: AggregateCall, then: str, present: str = "", otherwise: str = "0L") -> str:
    conditions = [f"({c})" for c in (call.filter.sql if call.filter else "", present) if c]
    return f"CASE WHEN {' AND '.join(conditions)} THEN {then} ELSE {otherwise} END" if conditions else then


def _sum_type(call: AggregateCall) -> str:
    assert call.argument is not None
    kind = call.argument.type
    if kind.is_integer:
        return "BIGINT"
    return f"DECIMAL(38,{kind.scale})" if kind.name == "DECIMAL" else "DOUBLE"


def _reduced(rows: DataFrame, groups: list[str], contributions: _Contributions) -> DataFrame:
    sums = [F.expr(f"{function}({name})").alias(name) for name, function in contributions.functions.items()]
    frame = rows.groupBy(*groups).agg(*sums)
    # A sum of DECIMAL(38,s) stays DECIMAL(38,s); an aggregate over no rows at all would still give one row.
    return frame.where(f"{ROWS} IS NOT NULL") if not groups else frame


def _with_hashes(rows: DataFrame, groups: list[str], contributions: _Contributions, partitions: int) -> DataFrame:
    of_group = f"xxhash64({', '.join(groups)})" if groups else "0L"
    bucket = f"pmod(hash({', '.join(groups)}), {partitions})" if groups else "0"
    extra = [f"{of_group} AS {HASH}", f"CAST({bucket} AS INT) AS {BUCKET}"]
    scanned = {multiset for _, multiset, _ in contributions.extremes}
    for name in contributions.multisets.values():
        value = f"{name}_value"
        if name in scanned:
            low = f"(xxhash64({value}) & 4294967295L)"
            extra.append(f"shiftleft(shiftright({of_group}, 32), 32) | {low} AS {name}_hash")
        elif isinstance(rows.schema[value].dataType, ArrayType):
            extra.append(f"transform({value}, v -> xxhash64({', '.join([*groups, 'v'])})) AS {name}_hash")
        else:
            extra.append(f"xxhash64({', '.join([*groups, value])}) AS {name}_hash")
    return rows.selectExpr("*", *extra)


def _operator(
    node: n.Aggregate,
    rows: DataFrame,
    contributions: _Contributions,
    results: list[tuple[str, AggregateCall, str, str]],
    ones: tuple[str, ...],
) -> Aggregate:
    schema = to_arrow_schema(rows.schema)
    groups = pa.schema([schema.field(g) for g in node.groups])
    plain = [
        Accumulator(name, pa.int64() if name in ones else schema.field(name).type, function)
        for name, function in contributions.functions.items()
        if name != ROWS
    ]
    fed = [_fed_accumulator(schema, *entry) for entry in contributions.fed]
    multisets = tuple(
        Multiset(name, groups, _one_value(schema.field(f"{name}_value")), f"{name}_weight", f"{name}_hash")
        for name in contributions.multisets.values()
    )
    return Aggregate(
        groups,
        (*plain, *fed),
        tuple(Result(name, _arrow(call), call.function, value, count) for name, call, value, count in results),
        node.before,
        multisets,
        tuple(Extreme(*entry) for entry in contributions.extremes),
        ones,
    )


def _fed_accumulator(schema: pa.Schema, name: str, multiset: str, of_values: bool, function: str) -> Accumulator:
    value = _one_value(schema.field(f"{multiset}_value")).type
    if function != "sum":
        return Accumulator(name, value, function, multiset)
    if not of_values:
        return Accumulator(name, pa.int64(), "sum", multiset)
    if pa.types.is_decimal(value):
        total = pa.decimal128(38, value.scale)
    else:
        total = pa.float64() if pa.types.is_floating(value) else pa.int64()
    return Accumulator(name, total, "sum", multiset, of_values=True)


def _one_value(field: pa.Field) -> pa.Field:
    return field.with_type(field.type.value_type) if pa.types.is_list(field.type) else field


def _arrow(call: AggregateCall) -> pa.DataType:
    dtype = DataType.fromDDL(call.type.spark())
    return to_arrow_type(dtype)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
