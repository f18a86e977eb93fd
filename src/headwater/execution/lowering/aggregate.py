"""GROUP BY on its way to the keyed operator: per row, the partial aggregate that goes into each accumulator.

Where all accumulators are plain sums or best-so-far values, Spark's own hash aggregation reduces the batch to one row
per group before Python sees it. Where values must be remembered (DISTINCT, MIN and MAX over retractions, lists), or the
order of rows counts, the rows themselves are shuffled by group, with nothing but the columns needed.

Where nothing but columns of a table is aggregated, the tasks that read it pre-aggregate: `local_aggregation`. A WHERE
that compares columns with literals is evaluated there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.changelog.accumulate import Accumulator
from headwater.changelog.aggregate import ROWS, AggregateOperator, Extreme
from headwater.changelog.conditions import And, Condition
from headwater.changelog.exact_sums_sql import SALT, DoubleSum, partial_columns, partial_keys, partial_sums, salted
from headwater.changelog.kinds import HASH
from headwater.changelog.multiset import Held, Multiset
from headwater.changelog.ordered_values import ARRIVAL, Collected, OrderedMultiset, order_of
from headwater.changelog.preaggregate import PreAggregation
from headwater.changelog.user_aggregate import UserAccumulator
from headwater.connectors.runtime import LocalAggregation
from headwater.connectors.spark_types import type_sql
from headwater.execution.lowering.accumulators import Declared, Fed, Given, Partials, UserRows, declared
from headwater.execution.lowering.base import Lowering, comparable_sql, divided, lowers
from headwater.execution.lowering.reading import condition_of
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name
from headwater.sql.typed import Predicate
from headwater.state.partitions import hash_sql

__all__ = ["Beside", "TableBelow", "local_aggregation", "pre_aggregation", "prepared", "table_below"]


@dataclass(frozen=True)
class Beside:
    """Columns of rows besides groups and what is aggregated. With columns to be `kept`, rows are shuffled as they are.
    Rows that differ in columns `apart` are not added up, but their group has them all in one partition."""

    kept: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()


_NOTHING = Beside()
_VALUE = "__hw_value"


@lowers(n.Aggregate)
def _aggregate(lowering: Lowering, node: n.Aggregate) -> DataFrame:
    """Where the source can, groups begin to be added up in the tasks that read them."""
    wanted = local_aggregation(node)
    local = lowering.inputs.scan(*wanted) if wanted is not None else None
    if wanted is not None and local is not None:
        lowering.pre_aggregated.append(wanted[0].table.name)
        rows = lowering.scanned(wanted[0], local)
    else:
        rows = lowering.lower(node.input)
    grouped, operator = prepared(
        node, rows, lowering.partitions, node.groups, given="rows" if local is None else "partials"
    )
    return lowering.keyed(node, grouped, operator)


def prepared(
    node: n.Aggregate,
    frame: DataFrame,
    partitions: int,
    by: Sequence[str],
    beside: Beside = _NOTHING,
    *,
    given: Given = "rows",
) -> tuple[DataFrame, AggregateOperator]:
    """The frame partitioned by the groups `by`, with HASH and all partial aggregates; and the operator for it. The
    'partials' of a local aggregation have partial aggregates already, and lists of the values that must be
    remembered."""
    partials, results = declared(node, frame.columns)
    partials.alone, partials.apart, partials.given = bool(beside.kept), bool(beside.apart), given
    groups = [quote_name(g) for g in by]
    ones = partials.ones() if given == "rows" else ()
    rows = frame
    if given == "rows":
        shuffled = {name: sql for name, sql in partials.columns.items() if name not in ones}
        if partials.row_by_row:
            shuffled |= partials.plain_doubles()
        else:
            shuffled |= {f"{double.name}_of_row": double.value for double in partials.doubles.values()}
        # Rows are numbered as they come in their task, and tasks in their order: the number is the order of arrival.
        if partials.by_arrival:
            shuffled[ARRIVAL] = "monotonically_increasing_id()"
        items = (f"{sql} AS {name}" for name, sql in shuffled.items())
        rows = frame.selectExpr(*_keys(node, by), *map(quote_name, (*beside.kept, *beside.apart)), *items)
    if partials.counts_values:
        rows = _counted(rows, groups, partials)
    if not partials.row_by_row:
        rows = _reduced(rows, groups, partials, [quote_name(name) for name in beside.apart])
    elif groups:
        rows = rows.repartition(partitions, *groups)
    else:
        rows = rows.repartition(1)
    rows = _with_hashes(rows, groups, partials)
    return rows, _operator(node, by, rows, partials, results, ones)


def _keys(node: n.Aggregate, by: Sequence[str]) -> list[str]:
    """The groups, with one spelling of numbers that are equal."""
    kinds = {column.name: column.type for column in node.input.columns}
    return [f"{comparable_sql(quote_name(g), kinds[g])} AS {quote_name(g)}" for g in by]


def local_aggregation(node: n.Aggregate) -> tuple[n.Scan, LocalAggregation] | None:
    """The table whose rows are aggregated and how its readers pre-aggregate them; None if there is more to it than
    columns of one table, and conditions that can be evaluated while reading."""
    found = table_below(node.input)
    local = pre_aggregation(node, found.names, node.groups) if found is not None else None
    if found is None or local is None:
        return None
    where_sql = " AND ".join(predicate.sql for predicate in found.filters)
    return found.scan, LocalAggregation(local, _of_one_row(local), found.where, where_sql)


def pre_aggregation(node: n.Aggregate, names: Mapping[str, str], by: Sequence[str]) -> PreAggregation | None:
    """By groups that are columns; None if there is more to it than columns. `names` are those that there are, and what
    they are called where they are added up."""
    partials, _ = declared(node)
    parts = partials.all_parts()
    if not all(part is not None and (not part.column or part.column in names) for part in parts):
        return None
    if not all(group in names for group in by):
        return None
    kinds = {c.name: c.type for c in node.input.columns}
    # Values that are compared, as groups or as DISTINCT values: Arrow and Spark must agree on what is equal.
    compared = [*by, *(p.column for p in parts if p and p.how == "values")]
    # Numbers that are equal may have several spellings (-0.0, NaN), and Arrow makes no lists of nested values.
    if any(kinds[column].name in {"FLOAT", "DOUBLE"} or kinds[column].is_nested for column in compared):
        return None
    groups = tuple((names[group], group) for group in by)
    return PreAggregation(groups, tuple(replace(p, column=names.get(p.column, "")) for p in parts if p))


@dataclass(frozen=True)
class TableBelow:
    """The table below projections and filters, which of its columns stands behind each name above, and the filters."""

    scan: n.Scan
    names: Mapping[str, str]
    filters: tuple[Predicate, ...]

    @property
    def where(self) -> Condition | None:
        return reduce(And, map(condition_of, self.filters)) if self.filters else None


def table_below(node: n.Node) -> TableBelow | None:
    """None if there is anything else between than projections to columns, and filters that readers can evaluate."""
    names = {name: name for name in node.names}
    filters: list[Predicate] = []
    while isinstance(node, (n.Project, n.Filter)):
        if isinstance(node, n.Filter):
            predicate = node.predicate.as_predicate
            # A reader evaluates the filter on the columns of the table, by their own names.
            if predicate is None or not _keeps_names(node.input, node.predicate.refs):
                return None
            filters.append(predicate)
        else:
            taken = {c.name: e.column for c, e in node.items}
            names = {name: column for name, inner in names.items() if (column := taken.get(inner)) is not None}
        node = node.input
    return TableBelow(node, names, tuple(filters)) if isinstance(node, n.Scan) else None


def _keeps_names(node: n.Node, names: frozenset[str]) -> bool:
    """Whether columns have the same names all the way down: then a predicate holds for the table as it is written."""
    while isinstance(node, (n.Project, n.Filter)):
        taken = {c.name: e.column for c, e in node.items} if isinstance(node, n.Project) else {}
        if any(taken.get(name, name) != name for name in names):
            return False
        node = node.input
    return names <= set(node.names)


def _of_one_row(local: PreAggregation) -> dict[str, str]:
    """What a single row gives to its group, as SQL."""
    found = {name: quote_name(column) for column, name in local.groups}
    for part in local.partials:
        column = quote_name(part.column)
        found[part.name] = {
            "rows": "1L",
            "present": f"IF({column} IS NULL, 0L, 1L)",
            "sum": f"CAST({column} AS BIGINT)",
            "values": f"array({column})",
            "limb": "0L",  # of a single row the value itself is a partial sum
            "beyond": f"CAST({column} AS DOUBLE)",
            "beyond_weight": f"IF({column} IS NULL, 0L, 1L)",
        }.get(part.how, column)
    return found


def _reduced(rows: DataFrame, groups: list[str], partials: Partials, apart: list[str]) -> DataFrame:
    """One row per group, values of columns `apart`, and task, by Spark's own hash aggregation. A sum of DECIMAL(38,s)
    stays DECIMAL(38,s)."""
    # Spark reduces before the shuffle, in generated code, so that one row per group and task travels: the operator in
    # Python sees far fewer rows.
    totals = [F.expr(f"{function}({name})").alias(name) for name, function in partials.functions.items()]
    weight = ROWS if partials.retracting else "1L"  # of a single row, the number of rows is its weight
    doubles = [DoubleSum(d.name, f"{d.name}_of_row", weight) for d in partials.doubles.values()]
    if not doubles and not apart:
        frame = rows.groupBy(*groups).agg(*totals)
        # An aggregate over no rows at all would still give one row.
        return frame.where(f"{ROWS} IS NOT NULL") if not groups else frame
    names, kept = [double.name for double in doubles], [*partials.functions, *apart]
    # Rows of a local aggregation bring their partial sums along, instead of the value of a row.
    if not doubles or doubles[0].value not in rows.columns:
        projections = salted([*apart, *names], groups, [*kept, *names, *partial_columns(names)])
    else:
        projections = partial_sums(doubles, groups, kept, apart)
    for projection in projections:
        rows = rows.selectExpr(*projection)
    totals += [F.expr(f"sum({column})").alias(column) for column in partial_columns(names)]
    frame = rows.groupBy(*groups, *partial_keys([*apart, *names])).agg(*totals).drop(SALT)
    return frame if groups else frame.coalesce(1)


def _counted(rows: DataFrame, groups: list[str], partials: Partials) -> DataFrame:
    """One row per group and value of an argument, with its weight in each of the multisets that have it. A row becomes
    one for each argument; the first of them has the other accumulators as well."""
    arguments = list(partials.by_value.values())
    weights = {name: f"{name}_weight" for names in arguments for name in names}
    kinds = {field.name: type_sql(field.dataType) for field in rows.schema.fields}
    parts = []
    for place, mine in enumerate(arguments):
        items = list(groups)
        for other, (name, *_) in enumerate(arguments):
            value = f"{name}_value" if other == place else f"CAST(NULL AS {kinds[f'{name}_value']})"
            items.append(f"{value} AS {_VALUE}{other}")
        items += [f"{column if name in mine else '0L'} AS {column}" for name, column in weights.items()]
        for name in partials.functions:
            nothing = "0L" if name in partials.counts else f"CAST(NULL AS {kinds[name]})"
            items.append(f"{name if place == 0 else nothing} AS {name}")
        parts.append(("", items))
    values = [f"{_VALUE}{place}" for place in range(len(arguments))]
    totals = [F.expr(f"sum({column})").alias(column) for column in weights.values()]
    totals += [F.expr(f"{function}({name})").alias(name) for name, function in partials.functions.items()]
    counted = divided(rows, parts).groupBy(*groups, *values).agg(*totals)
    named = [f"{_VALUE}{place} AS {name}_value" for place, names in enumerate(arguments) for name in names]
    return counted.selectExpr(*groups, *weights.values(), *partials.functions, *named)


def _with_hashes(rows: DataFrame, groups: list[str], partials: Partials) -> DataFrame:
    """HASH of the group, and for values that are remembered one whose upper half is that of the group: they lie
    together in the state, and in the group's state partition."""
    # Computed by Spark beside the rows: hashing in Python would need a pass over all keys as objects.
    of_group = hash_sql(groups)
    extra = [f"{of_group} AS {HASH}"]
    for name in partials.multisets.values():
        value = f"{name}_value"
        if partials.given == "partials":
            # In a lambda, its variable hides columns of the same name.
            extra.append(f"transform({value}, __hw_v -> {hash_sql(groups, '__hw_v')}) AS {name}_hash")
        else:
            extra.append(f"{hash_sql(groups, value)} AS {name}_hash")
    for name in partials.ordered.values():
        value = f"{name}_value"
        has_map = "map<" in rows.schema[value].dataType.simpleString()  # Spark has no hash of a map
        extra.append(f"{hash_sql(groups, f'CAST({value} AS STRING)' if has_map else value)} AS {name}_hash")
    return rows.selectExpr("*", *extra)


def _operator(
    node: n.Aggregate,
    by: Sequence[str],
    rows: DataFrame,
    partials: Partials,
    results: list[Declared],
    ones: tuple[str, ...],
) -> AggregateOperator:
    schema = to_arrow_schema(rows.schema)
    groups = pa.schema([schema.field(g) for g in by])
    plain = [
        Accumulator(name, pa.int64() if name in ones else schema.field(name).type, function)
        for name, function in partials.functions.items()
        if name != ROWS
    ]
    plain += [Accumulator(double.name, pa.float64(), "sum") for double in partials.doubles.values()]
    values = {name: _one_value(schema.field(f"{name}_value"), partials) for name in partials.multisets.values()}
    fed = [_fed_accumulator(values, *entry) for entry in partials.fed]
    arriving = {rows.multiset for rows in partials.users}
    held: Held = "list" if partials.given == "partials" else "value"
    multisets = tuple(
        Multiset(name, groups, value, f"{name}_weight", f"{name}_hash", held, ARRIVAL if name in arriving else "")
        for name, value in values.items()
    )
    ordered = tuple(
        OrderedMultiset(name, groups, schema.field(f"{name}_value"), f"{name}_weight", f"{name}_hash")
        for name in partials.ordered.values()
    )
    collected = [a for c in partials.collected for a in _collected_accumulators(schema, c)]
    users = [_user_accumulator(schema, rows) for rows in partials.users]
    return AggregateOperator(
        groups,
        (*plain, *fed, *collected, *users),
        tuple(one.result() for one in results),
        node.before,
        (*multisets, *ordered),
        tuple(Extreme(*entry) for entry in partials.extremes),
        tuple(partials.collected),
        ones,
    )


def _collected_accumulators(schema: pa.Schema, collected: Collected) -> list[Accumulator]:
    name, multiset = collected.accumulator, collected.multiset
    value = schema.field(f"{multiset}_value").type
    if collected.function == "list":
        return [Accumulator(name, pa.list_(value), "collected", multiset)]
    order = Accumulator(order_of(name), pa.int64(), "collected", multiset)
    return [Accumulator(name, value, "collected", multiset), order]


def _user_accumulator(schema: pa.Schema, rows: UserRows) -> UserAccumulator:
    if rows.multiset:
        return UserAccumulator(rows.accumulator, pa.binary(), "user", rows.multiset, aggregate=rows.step)
    arguments, weight = f"{rows.columns}_value", f"{rows.columns}_weight"
    kind = schema.field(arguments).type
    return UserAccumulator(rows.accumulator, pa.binary(), "user", "", False, arguments, weight, kind, rows.step)


def _fed_accumulator(values: Mapping[str, pa.Field], name: str, multiset: str, what: Fed) -> Accumulator:
    value = values[multiset].type
    if what in ("min", "max"):
        return Accumulator(name, value, what, multiset)
    if what == "count":
        return Accumulator(name, pa.int64(), "sum", multiset)
    if pa.types.is_decimal(value):
        total = pa.decimal128(38, value.scale)
    else:
        total = pa.float64() if pa.types.is_floating(value) else pa.int64()
    return Accumulator(name, total, "sum", multiset, of_values=True)


def _one_value(field: pa.Field, partials: Partials) -> pa.Field:
    return field.with_type(field.type.value_type) if partials.given == "partials" else field
