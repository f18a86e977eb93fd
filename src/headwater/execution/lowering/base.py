"""What lowering has besides the plan, and what the lowerings of several nodes share.

Between nodes travels a DataFrame with the node's columns, the column `KIND` unless all rows are inserts, and for
upserts straight from a source the columns that order its changes. Stateless work is Spark SQL text; stateful work is a
keyed operator in `mapInArrow`. Nothing here may depend on a batch: tasks ask `worker.TaskBatch` for that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.accumulators import Accumulator
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headwater.changelog.join import JoinOperator
from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK, Operator
from headwater.changelog.state_ttl import Expiring, all_together, sides_apart
from headwater.connectors.runtime import PLACE, ScanPlan
from headwater.connectors.spark_types import type_sql
from headwater.connectors.workers import map_in_arrow
from headwater.execution.inputs import Inputs, Splits
from headwater.execution.python_functions import register_functions
from headwater.execution.worker import INPUT, OperatorTask, ReadTask, Reports, input_column
from headwater.plan import nodes as n
from headwater.plan.common_subplans import keeps_state
from headwater.plan.fingerprint import operator_name
from headwater.plan.time_attributes import processing_period, watermark_scans
from headwater.spark_internals import executed_plan, planned_once
from headwater.sql.spark_text import quote_name
from headwater.sql.types import FRACTIONS, SqlType
from headwater.state.table import TableSpec

__all__ = [
    "HIDDEN",
    "ORDERED_BY",
    "RULES",
    "Lowering",
    "comparable",
    "comparable_sql",
    "divided",
    "has_map",
    "lowers",
    "pick",
    "tasks_of",
]

ORDERED_BY = (ORDER, PARTITION, OFFSET, POSITION)
HIDDEN = (KIND, *ORDERED_BY, OWN_WATERMARK, ORIGIN, PLACE)
"""Columns that travel beside those of the plan, from where they come to whoever takes them."""

Rule = Callable[["Lowering", Any], DataFrame]
RULES: dict[type[n.Node], Rule] = {}
"""One function per node."""
R = TypeVar("R", bound=Callable[..., DataFrame])


def lowers(*kinds: type[n.Node]) -> Callable[[R], R]:
    """Marks the function that lowers nodes of these kinds."""

    def register(rule: R) -> R:
        RULES.update(dict.fromkeys(kinds, rule))
        return rule

    return register


@dataclass
class Lowering:
    """What lowering needs besides the plan. `splits` are given only where a client of the JVM reads, whose plan cannot
    be prepared. Filled while lowering: `bad_metrics`, the names of observed metrics with the place of their source, the
    `state_tables` of each operator, the tables whose readers pre-aggregate, and for each source what goes before PLACE
    in the name of a partition. `late_metrics` count rows that came too late. `read_together` are groups of windows that
    several nodes need, by the first of these."""

    spark: SparkSession
    root: n.Write
    inputs: Inputs
    tasks: tuple[int, ...]
    partitions: int
    location: str
    reports: Accumulator[Reports]
    splits: Splits | None = None
    bad_metrics: dict[str, int] = field(default_factory=dict)
    state_tables: dict[str, tuple[TableSpec, ...]] = field(default_factory=dict)
    pre_aggregated: list[str] = field(default_factory=list)
    needs_splits: bool = False
    place_prefixes: dict[int, str] = field(default_factory=dict)
    late_metrics: list[str] = field(default_factory=list)
    read_together: dict[int, DataFrame | None] = field(default_factory=dict)
    _frames: dict[int, DataFrame] = field(default_factory=dict)

    def rows(self) -> DataFrame:
        """The rows to write: the sink's columns and, unless all are inserts, `KIND`."""
        register_functions(self.spark, self.root)
        frame = self.lower(self.root.input)
        kept = [c for c in (*self.root.input.names, KIND) if c in frame.columns]
        return frame.select(*map(quote_name, kept))

    def lower(self, node: n.Node) -> DataFrame:
        """A node that is used twice is lowered once."""
        if id(node) not in self._frames:
            frame = RULES[type(node)](self, node)
            behind_exchange = self._is_shared(node) or node in timed_beside_others(self.root)
            self._frames[id(node)] = self._exchanged(node, frame) if behind_exchange else frame
        return self._frames[id(node)]

    @property
    def shares(self) -> bool:
        return bool(self.read_together) or any(map(self._is_shared, n.walk(self.root)))

    def _is_shared(self, node: n.Node) -> bool:
        uses = [child for user in n.walk(self.root) for child in user.inputs if child is node]
        return len(uses) > 1 and keeps_state(node)

    def _exchanged(self, node: n.Node, frame: DataFrame) -> DataFrame:
        """Behind an exchange, which Spark executes once for all that read it. Operators must not run twice: they would
        compute from input that was computed twice, and need not be the same."""
        together = node.distribution
        if together == ():
            return planned_once(frame.repartition(1))
        # Rows stay where their key already is, so that operators behind the exchange find their state.
        if together:
            return planned_once(frame.repartition(self.partitions, *map(quote_name, together)))
        return self.once_for_all(frame)

    def once_for_all(self, frame: DataFrame) -> DataFrame:
        """Behind an exchange that spreads rows in any way, but always the same."""
        by = [f.name for f in frame.schema.fields if f.name not in HIDDEN and not has_map(f.dataType)]
        return planned_once(frame.repartition(self.partitions, *map(quote_name, by)))

    def scanned(self, scan: n.Scan | n.Values, plan: ScanPlan) -> DataFrame:
        place = self.noted(scan, plan)
        if plan.reader is not None:
            return plan.decode(map_in_arrow(self.task_numbers(place), ReadTask(place, plan.reader), plan.schema))
        assert plan.messages is not None
        # The JVM's Kafka source has its offsets in the plan: such a plan cannot be prepared once for all batches.
        self.needs_splits = True
        nothing: list[list[object]] = [[] for _ in range(self.tasks[place])]
        return plan.decode(plan.messages(self.splits[place] if self.splits is not None else nothing))

    def noted(self, scan: n.Scan | n.Values, plan: ScanPlan) -> int:
        """The place of the source that this plan reads."""
        place = self.inputs.place_of(scan)
        self.place_prefixes[place] = plan.place_prefix
        if plan.bad_metric:
            self.bad_metrics[plan.bad_metric] = place
        return place

    def task_numbers(self, place: int) -> DataFrame:
        """One row per task, in as many partitions: a source that hands nothing but task numbers to the workers, which
        read what the batch's properties say."""
        return self.spark.range(0, self.tasks[place], 1, self.tasks[place])

    def by_key(self, node: n.Node, frame: DataFrame, keys: n.Key) -> DataFrame:
        """The rows of a node with equal keys in one task: after a shuffle, unless the operator below has them there."""
        if not keys:
            return frame.repartition(1)
        # Both take the task from the hash of the same values, so no row would move.
        return frame if spread_by(node) == keys else frame.repartition(self.partitions, *map(quote_name, keys))

    def keyed(self, node: n.Node, frame: DataFrame, operator: Operator, known: StructType | None = None) -> DataFrame:
        """Run the operator of a node on a frame that is partitioned by its key and has HASH. `known` has the types of
        its output columns, as far as the frame has not."""
        return self._run(node, frame, operator, _spark_schema(known or frame.schema, operator))

    def keyed_several(
        self, node: n.Node, frames: Sequence[DataFrame], operator: Operator, tagged: DataFrame | None = None
    ) -> DataFrame:
        """Run the operator of a node with several inputs. Each frame has HASH, whose upper half decides the partition;
        their rows arrive by one shuffle, each in the struct of its input. `tagged` has them that way already."""
        known = StructType([f for frame in frames for f in frame.schema.fields])
        # One union and one shuffle instead of a cogroup: Arrow batches of both sides arrive in one stream, and Python
        # workers are started once.
        if tagged is None:
            sides = [_tagged(frame, index, frames) for index, frame in enumerate(frames)]
            tagged = reduce(lambda a, b: a.union(b), sides)
        count = 1 if node.partitioned_by == () else self.partitions
        # By the operator's own hash and not by Spark's partitioner: state partitions must stay the same when Spark
        # changes its hash.
        partition = F.expr(f"CAST(pmod(shiftright({HASH}, 32), {count}L) AS INT)")
        return self._run(node, tagged.repartitionById(count, partition), operator, _spark_schema(known, operator))

    def _run(self, node: n.Node, frame: DataFrame, operator: Operator, schema: StructType) -> DataFrame:
        name = operator_name(self.root, node)
        # Operators with timers remove their state themselves, by the watermark; a TTL beside it could remove what a
        # late row still needs.
        if not node.timed:
            operator = _expiring(operator, [self.root.ttl if ttl is None else ttl for ttl in node.ttls or (None,)])
        self.state_tables[name] = operator.tables
        sources, tasks = self._sources_of_time(node), _tasks_of_frame(frame) if operator.timed else 0
        by_event_time = node.clock is n.TimeKind.EVENT
        delay = max((child.delay for child in node.inputs), default=0) if by_event_time else 0
        task = OperatorTask(name, operator, self.partitions, self.location, self.reports, sources, tasks, delay)
        return map_in_arrow(frame, task, schema)

    @property
    def observed(self) -> bool:
        """Whether there are metrics to ask for."""
        return bool(self.bad_metrics or self.late_metrics)

    @property
    def time_zone(self) -> str:
        return str(self.spark.conf.get("spark.sql.session.timeZone"))

    def _sources_of_time(self, node: n.Node) -> tuple[int, ...]:
        """The sources whose watermark is the operator's time. Behind them all comes processing time."""
        if node.timed and node.clock is n.TimeKind.PROCESSING:
            # Without windows and intervals nothing waits for processing time, and a batch has no watermark of it.
            return (len(self.inputs.sources),) if processing_period(self.root) is not None else ()
        return tuple(sorted({self.inputs.place_of(scan) for scan in watermark_scans(node)}))


def _expiring(operator: Operator, ttls: Sequence[int]) -> Operator:
    """`ttls` of all inputs together, or of each side of a join, in milliseconds."""
    micros = [ttl * 1000 for ttl in ttls]
    if len(set(micros)) == 1:
        return Expiring(operator, all_together(operator, micros[0])) if micros[0] else operator
    assert isinstance(operator, JoinOperator)
    return Expiring(operator, sides_apart(operator, (micros[0], micros[1])))


def _tasks_of_frame(frame: DataFrame) -> int:
    return int(executed_plan(frame).outputPartitioning().numPartitions())


def _tagged(frame: DataFrame, index: int, frames: Sequence[DataFrame]) -> DataFrame:
    """HASH, the number of the input, and for every input a struct with its columns; all but its own are NULL."""
    columns = ", ".join(quote_name(c) for c in frame.columns if c != HASH)
    structs = [
        f"struct({columns}) AS {input_column(i)}"
        if i == index
        else f"CAST(NULL AS {_struct_type(other)}) AS {input_column(i)}"
        for i, other in enumerate(frames)
    ]
    return frame.selectExpr(HASH, f"CAST({index} AS TINYINT) AS {INPUT}", *structs)


def _struct_type(frame: DataFrame) -> str:
    return type_sql(StructType([f for f in frame.schema.fields if f.name != HASH]))


def divided(frame: DataFrame, parts: Sequence[tuple[str, Sequence[str]]], never_null: str = "") -> DataFrame:
    """For every row one of each part: its items, if its condition is TRUE; '' is no condition. `never_null` is a column
    of all parts that tells rows from none; without conditions it takes none."""
    structs = [f"struct({', '.join(items)})" for _, items in parts]
    rows = [f"IF({test}, {row}, NULL)" if test else row for (test, _), row in zip(parts, structs, strict=True)]
    # A generator: a union of projections would compute the frame once for each part.
    found = frame.selectExpr(f"inline(array({', '.join(rows)}))")
    return found.where(f"{never_null} IS NOT NULL") if never_null else found


def tasks_of(node: n.Node, inputs: Inputs, tasks: tuple[int, ...], partitions: int) -> int:
    """How many tasks hold the rows of a node: as many as may write them, if the sink takes them where they are."""
    if isinstance(node, n.Scan | n.Values):
        return tasks[inputs.place_of(node)]
    if node.partitioned_by is not None:
        return partitions if node.partitioned_by else 1
    of_inputs = sum(tasks_of(child, inputs, tasks, partitions) for child in node.inputs)
    return max(partitions, of_inputs) if isinstance(node, n.Consolidate) else of_inputs


def spread_by(node: n.Node) -> n.Key | None:
    """The columns whose hash decides in which task a row is, in their order and with the very values that were hashed.
    None where there are none, or where that is not sure."""
    if isinstance(node, n.Join) and node.closes is None and node.distribution:
        kinds = {column.name: column.type.name for column in node.columns}
        # Numbers that are equal may have several spellings, and several hashes.
        return None if any(kinds.get(key, "DOUBLE") in FRACTIONS for key in node.distribution) else node.distribution
    if isinstance(node, n.Filter):
        return spread_by(node.input)
    if isinstance(node, n.Project):
        passed = {e.column: c.name for c, e in reversed(list(node.items)) if e.sql == quote_name(e.column or "")}
        below = spread_by(node.input) or ()
        return tuple(passed[key] for key in below) if below and set(below) <= set(passed) else None
    return None


def timed_beside_others(root: n.Node) -> list[n.Node]:
    """Timed nodes whose tasks are numbered behind those of another input, if no exchange is in between. Without rows
    such a task would not know which state partition is its own: in a stage of their own, tasks are numbered from 0."""
    sides = [side for node in n.walk(root) for side in node.inputs[1:]]
    return [node for side in sides for node in _timed_in_stage(side)]


def _timed_in_stage(node: n.Node) -> list[n.Node]:
    if node.timed:
        return [node]
    inside = node.inputs if node.partitioned_by is None else ()
    return [found for child in inside for found in _timed_in_stage(child)]


def has_map(kind: DataType) -> bool:
    """Spark hashes no maps."""
    if isinstance(kind, StructType):
        return any(has_map(field.dataType) for field in kind.fields)
    return isinstance(kind, MapType) or (isinstance(kind, ArrayType) and has_map(kind.elementType))


def comparable(frame: DataFrame, columns: Sequence[n.Column], keys: Sequence[str]) -> DataFrame:
    """The frame with one spelling of equal numbers in its columns `keys`. `columns` have their types."""
    kinds = {c.name: c.type for c in columns if c.name in keys and c.type.name in FRACTIONS}
    if not kinds:
        return frame
    sql = {name: comparable_sql(quote_name(name), kind) for name, kind in kinds.items()}
    return frame.selectExpr(*(f"{sql.get(name, quote_name(name))} AS {quote_name(name)}" for name in frame.columns))


def comparable_sql(sql: str, kind: SqlType) -> str:
    """With one spelling of zero and of NaN: equal values must have equal bytes, by which operators compare them."""
    if kind.name not in FRACTIONS:
        return sql
    zero, nan = (f"CAST({text} AS {kind.name})" for text in ("0", "'NaN'"))
    return f"CASE WHEN {sql} = 0 THEN {zero} WHEN isnan({sql}) THEN {nan} ELSE {sql} END"


def pick(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _spark_schema(known: StructType, operator: Operator) -> StructType:
    """The operator's output as a Spark schema: columns of its inputs keep their type, new ones come from Arrow's."""
    types = {field.name: field.dataType for field in known.fields}
    fields = StructType()
    for output in operator.output:
        # Arrow's timestamps without a time zone are TIMESTAMP: as an instant, it would move with the session's zone.
        new = from_arrow_type(output.type, prefer_timestamp_ntz=True)
        fields.add(output.name, types.get(output.name) or new, True)
    return fields
