"""Plan nodes → DataFrames, one function per node.

Between nodes travels a DataFrame with the node's columns, the column `KIND` unless all rows are inserts, and for
upserts straight from a source the columns that say where each message stood. Stateless work is Spark SQL text; stateful
work is a keyed operator in `mapInArrow`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_schema
from pyspark.sql.types import StructType

from headwater.changelog.collapse import collapse, collapse_in_order
from headwater.changelog.early import EarlyGroups
from headwater.changelog.kinds import DELETE, HASH, KIND
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION, Normalize
from headwater.changelog.operator import Operator
from headwater.plan import nodes as n
from headwater.plan.signature import operator_name
from headwater.plan.traits import unique_key
from headwater.runtime.aggregates import early_groups, lower_aggregate
from headwater.runtime.keyed import BUCKET, Stage, host, stateless

__all__ = ["Batch", "lower"]

STOOD = (ORDER, PARTITION, OFFSET, POSITION)
HIDDEN = (KIND, *STOOD)


@dataclass(frozen=True)
class Batch:
    """Everything about the batch at hand that a node needs: its input, as `rows` of a table or as `groups` that were
    begun while reading (None: they were not), and where its state goes."""

    number: int
    run: str
    partitions: int
    rows: Callable[[n.Scan | n.Values], DataFrame]
    groups: Callable[[n.Scan, EarlyGroups], DataFrame | None]
    state_location: Callable[[str], str]

    def stage(self, operator: str) -> Stage:
        return Stage(self.state_location(operator), self.number, self.run)


def lower(root: n.Write, batch: Batch) -> DataFrame:
    """The rows to write: the sink's columns and, unless all are inserts, `KIND`."""
    frame = _lower(root.input, root, batch)
    kept = [c for c in (*root.input.names, KIND) if c in frame.columns]
    return frame.select(*map(quoted, kept))


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _lower(node: n.Node, root: n.Write, batch: Batch) -> DataFrame:
    match node:
        case n.Scan() | n.Values():
            return batch.rows(node)
        case n.Project():
            return _project(node, _lower(node.input, root, batch))
        case n.Filter():
            return _lower(node.input, root, batch).where(node.predicate.sql)
        case n.Guard():
            return _guard(node, _lower(node.input, root, batch))
        case n.UnionAll():
            return _union([_lower(part, root, batch) for part in node.parts])
        case n.Normalize():
            return _normalize(node, root, batch)
        case n.Aggregate():
            return _aggregate(node, root, batch)
        case n.Collapse():
            return _collapse(node, _lower(node.input, root, batch), batch.partitions)
    raise AssertionError(f"{type(node).__name__} has no lowering")


def _project(node: n.Project, frame: DataFrame) -> DataFrame:
    items = [f"{e.sql} AS {quoted(c.name)}" for c, e in zip(node.columns, node.expressions, strict=True)]
    hidden = [quoted(c) for c in HIDDEN if c in frame.columns]
    return frame.selectExpr(*items, *hidden)


def _guard(node: n.Guard, frame: DataFrame) -> DataFrame:
    """A row that fails the predicate is left with nothing but its key: what is computed from it must not fail on it."""
    kind = F.expr(f"CASE WHEN {node.predicate.sql} THEN {KIND} ELSE CAST({DELETE} AS TINYINT) END")
    judged = frame.withColumn(KIND, kind)
    kept = {*(unique_key(node) or ()), *HIDDEN}
    rest = {c: f"IF({KIND} = {DELETE}, NULL, {quoted(c)}) AS {quoted(c)}" for c in frame.columns if c not in kept}
    return judged.selectExpr(*(rest.get(c, quoted(c)) for c in frame.columns))


def _union(frames: list[DataFrame]) -> DataFrame:
    """Rows of inserts get a kind if any other part has one. Where changes stood in one topic says nothing beside
    those of another."""
    frames = [frame.drop(*STOOD) for frame in frames]
    kinded = any(KIND in frame.columns for frame in frames)
    if kinded:
        insert = F.lit(0).cast("tinyint")
        frames = [f if KIND in f.columns else f.withColumn(KIND, insert) for f in frames]
    return reduce(lambda a, b: a.unionByName(b), frames)


def _aggregate(node: n.Aggregate, root: n.Write, batch: Batch) -> DataFrame:
    early = early_groups(node)
    begun = batch.groups(*early) if early is not None else None
    rows = begun if begun is not None else _lower(node.input, root, batch)
    prepared, operator = lower_aggregate(node, rows, batch.partitions, begun=begun is not None)
    return keyed(prepared, operator, batch.stage(operator_name(root, node)))


def _normalize(node: n.Normalize, root: n.Write, batch: Batch) -> DataFrame:
    frame = _lower(node.input, root, batch)
    values = [name for name in node.names if name not in node.key]
    order = [c for c in HIDDEN if c in frame.columns]
    frame = frame.select(*map(quoted, [*node.key, *values, *order]))
    frame = with_hash(frame, node.key, batch.partitions).repartition(batch.partitions, *map(quoted, node.key))
    schema = arrow_schema(frame.schema)
    operator = Normalize(_pick(schema, node.key), _pick(schema, values), node.before)
    return keyed(frame, operator, batch.stage(operator_name(root, node)))


def _collapse(node: n.Collapse, frame: DataFrame, partitions: int) -> DataFrame:
    """An operator has put the rows of a key together and left at most one alive; changes from a topic are in order."""
    if ORDER not in frame.columns:
        step = partial(collapse, key=list(node.key))
        return frame.mapInArrow(stateless(step, arrow_schema(frame.schema)), frame.schema)
    frame = frame.repartition(partitions, *map(quoted, node.key))
    output = frame.select(*map(quoted, [*node.names, KIND])).schema
    step = partial(collapse_in_order, key=list(node.key), columns=list(node.names))
    return frame.mapInArrow(stateless(step, arrow_schema(output)), output)


def keyed(frame: DataFrame, operator: Operator, stage: Stage) -> DataFrame:
    """Run an operator on a frame that is partitioned by its key and has HASH and BUCKET."""
    return frame.mapInArrow(host(operator, stage), _spark_schema(frame, operator))


def with_hash(frame: DataFrame, key: tuple[str, ...], partitions: int) -> DataFrame:
    columns = [F.col(quoted(k)) for k in key]
    hashed = F.xxhash64(*columns) if columns else F.lit(0).cast("bigint")
    bucket = F.pmod(F.hash(*columns), F.lit(partitions)) if columns else F.lit(0)
    return frame.withColumn(HASH, hashed).withColumn(BUCKET, bucket.cast("int"))


def arrow_schema(schema: StructType) -> pa.Schema:
    return to_arrow_schema(schema)


def _pick(schema: pa.Schema, names: tuple[str, ...] | list[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _spark_schema(frame: DataFrame, operator: Operator) -> StructType:
    """The operator's output as a Spark schema: columns of the frame keep their type, new ones come from Arrow's."""
    fields = StructType()
    for field in operator.output:
        known = frame.schema[field.name].dataType if field.name in frame.columns else None
        fields.add(field.name, known or from_arrow_type(field.type), True)
    return fields
