"""A DataFrame without Spark: the methods that `execution.lowering` calls, computed by DuckDB, batch after batch.

A frame is SQL text over relations. A relation is a source, the rows behind an exchange, or what `mapInArrow` made; its
rows are known while a batch runs. Rows carry the task that holds them. An exchange brings them to other tasks as a
shuffle does: rows from one task stay in order, the tasks they come from arrive in any order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from random import Random
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import sqlglot
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType
from sqlglot import exp

from headwater.state.columns import HASH
from headwater.state.partitions import partition_of

TASK = "__task"
Step = Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]]


class Engine:
    """The relations of one job. `spread` is how many different hashes there are: with few, keys collide."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, random: Random, spread: int) -> None:
        self.connection = connection
        self.random = random
        self.spread = spread
        self.relations: list[Relation] = []

    def relation(self, schema: pa.Schema, compute: Callable[[], pa.Table]) -> DuckFrame:
        name = f"r{len(self.relations)}"
        self.relations.append(Relation(name, schema, compute))
        self.connection.register(name, _with_task(schema).empty_table())
        return DuckFrame(self, name, (len(self.relations) - 1,))

    def source(self, schema: pa.Schema, rows: Callable[[], pa.Table]) -> DuckFrame:
        """Its rows are in two tasks, those of each in order."""

        def compute() -> pa.Table:
            table = rows()
            first = self.random.randint(0, table.num_rows)
            tasks = [0] * first + [1] * (table.num_rows - first)
            return table.append_column(TASK, pa.array(tasks, pa.int32()))

        return self.relation(schema, compute)

    def batch(self, frame: DuckFrame) -> pa.Table:
        """Compute the frame for a batch. Every relation is computed once, inputs before their users."""
        for relation in self.relations:
            self.connection.register(relation.name, relation.compute())
        return self.rows(frame).drop_columns([TASK])

    def rows(self, frame: DuckFrame) -> pa.Table:
        return self.connection.sql(f"FROM {frame.text}").to_arrow_table().combine_chunks()

    def spark_text(self, text: str) -> str:
        return _duck_text(text, self.spread)


class Relation:
    def __init__(self, name: str, schema: pa.Schema, compute: Callable[[], pa.Table]) -> None:
        self.name, self.schema, self.compute = name, schema, compute


class Text(str):
    """A column expression: what `functions.expr` gives."""

    def alias(self, name: str) -> Text:
        return Text(f"{self} AS {name}")

    def cast(self, kind: str) -> Text:
        return Text(f"CAST({self} AS {kind})")


class Functions:
    """Of `pyspark.sql.functions` what lowering uses."""

    expr = Text

    @staticmethod
    def lit(value: int) -> Text:
        return Text(value)


class DuckFrame:
    def __init__(self, engine: Engine, text: str, needs: tuple[int, ...]) -> None:
        self._engine, self.text, self._needs = engine, text, needs
        self._schema: pa.Schema | None = None

    @property
    def arrow(self) -> pa.Schema:
        if self._schema is None:
            found = self._engine.connection.sql(f"FROM {self.text} LIMIT 0").to_arrow_table().schema
            self._schema = pa.schema([f for f in found if f.name != TASK])
        return self._schema

    @property
    def schema(self) -> StructType:
        return from_arrow_schema(self.arrow, prefer_timestamp_ntz=True)

    @property
    def columns(self) -> list[str]:
        return list(self.arrow.names)

    def _sql(self, text: str) -> DuckFrame:
        return DuckFrame(self._engine, f"({text})", self._needs)

    def selectExpr(self, *items: str) -> DuckFrame:  # noqa: N802 - Spark's name
        given = [self._engine.spark_text(item) for item in items]
        everything = [f"* EXCLUDE ({TASK})" if item == "*" else item for item in given]
        return self._sql(f"SELECT {', '.join(everything)}, {TASK} FROM {self.text}")

    select = selectExpr

    def where(self, condition: str) -> DuckFrame:
        return self._sql(f"SELECT * FROM {self.text} WHERE {self._engine.spark_text(condition)}")

    def withColumn(self, name: str, value: str) -> DuckFrame:  # noqa: N802 - Spark's name
        others = [f"`{column}`" if column != name else f"{value} AS `{name}`" for column in self.columns]
        return self.selectExpr(*others, *([f"{value} AS `{name}`"] if name not in self.columns else []))

    def withColumnRenamed(self, name: str, new: str) -> DuckFrame:  # noqa: N802 - Spark's name
        return self.selectExpr(*(f"`{c}` AS `{new}`" if c == name else f"`{c}`" for c in self.columns))

    def drop(self, *names: str) -> DuckFrame:
        if not set(names) & set(self.columns):
            return self
        return self.selectExpr(*(f"`{column}`" for column in self.columns if column not in names))

    def union(self, other: DuckFrame) -> DuckFrame:
        return self._union(other, "UNION ALL")

    def unionByName(self, other: DuckFrame) -> DuckFrame:  # noqa: N802 - Spark's name
        return self._union(other, "UNION ALL BY NAME")

    def _union(self, other: DuckFrame, how: str) -> DuckFrame:
        """The tasks of a union are those of the one, and behind them those of the other."""
        behind = f"SELECT * REPLACE ({TASK} + 100 AS {TASK}) FROM {other.text}"
        return DuckFrame(self._engine, f"(SELECT * FROM {self.text} {how} {behind})", self._needs + other._needs)

    def groupBy(self, *groups: str) -> Grouped:  # noqa: N802 - Spark's name
        return Grouped(self, groups)

    def repartition(self, count: int, *columns: str) -> DuckFrame:
        if not columns:
            return self._exchanged(lambda rows: np.zeros(rows.num_rows, dtype=np.int64))
        hashed = self.selectExpr("*", f"hash({', '.join(columns)}) AS __to")
        return hashed._exchanged(lambda rows: partition_of(rows.column("__to").to_numpy() << 32, count)).drop("__to")

    def repartitionById(self, count: int, partition: str) -> DuckFrame:  # noqa: N802 - Spark's name
        assert HASH in partition
        return self._exchanged(lambda rows: partition_of(rows.column(HASH).to_numpy(), count))

    def observe(self, *_: str) -> DuckFrame:
        return self

    def coalesce(self, count: int) -> DuckFrame:
        return self.repartition(count)

    def _exchanged(self, to: Callable[[pa.Table], Any]) -> DuckFrame:
        def compute() -> pa.Table:
            rows = self._engine.rows(self)
            target, came_from = to(rows), rows.column(TASK).to_numpy()
            tasks = sorted(set(came_from.tolist()))
            arrival = dict(zip(tasks, self._engine.random.sample(tasks, len(tasks)), strict=True))
            order = np.lexsort(([arrival[task] for task in came_from.tolist()], target))
            at = rows.schema.get_field_index(TASK)
            return rows.set_column(at, TASK, pa.array(target, pa.int32())).take(pa.array(order))

        return self._engine.relation(self.arrow, compute)

    def mapInArrow(self, step: Step, schema: StructType) -> DuckFrame:  # noqa: N802 - Spark's name
        output = to_arrow_schema(schema)

        def compute() -> pa.Table:
            rows = self._engine.rows(self)
            return pa.concat_tables([_with_task(output).empty_table(), *_made(rows, step, output)])

        return self._engine.relation(output, compute)


def _made(rows: pa.Table, step: Step, output: pa.Schema) -> Iterator[pa.Table]:
    """What each task makes of its rows, a few at a time."""
    of = rows.column(TASK).to_numpy()
    for task in sorted(set(of.tolist())) or [0]:  # of one without rows, time may have moved
        mine = rows.filter(pa.array(of == task)).drop_columns([TASK]).combine_chunks()
        made = pa.Table.from_batches([b.cast(output) for b in step(iter(mine.to_batches(max_chunksize=7)))], output)
        yield made.append_column(TASK, pa.array([task] * made.num_rows, pa.int32()))


class Grouped:
    def __init__(self, frame: DuckFrame, groups: Sequence[str]) -> None:
        self._frame, self._groups = frame, [frame._engine.spark_text(g) for g in groups]

    def agg(self, *totals: str) -> DuckFrame:
        """Spark's SUM of BIGINT is BIGINT. All groups are in one task."""
        found = [_as_spark_adds(total, self._frame) for total in totals]
        by = f" GROUP BY {', '.join(self._groups)}" if self._groups else ""
        items = ", ".join([*self._groups, *found, f"CAST(0 AS INT) AS {TASK}"])
        return self._frame._sql(f"SELECT {items} FROM {self._frame.text}{by}")


def _as_spark_adds(total: str, frame: DuckFrame) -> str:
    function, _, name = str(total).partition("(")
    column = name.partition(")")[0]
    kind = frame.arrow.field(column).type
    added = f"{function}({column})"
    return f"{f'CAST({added} AS BIGINT)' if pa.types.is_integer(kind) else added} AS {column}"


def _with_task(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field(TASK, pa.int32()))


@lru_cache(maxsize=100_000)
def _duck_text(text: str, spread: int) -> str:
    """One item of a SELECT list in Spark's SQL as DuckDB writes it."""
    tree = sqlglot.parse_one(f"SELECT {text}", read="spark")
    for node in reversed(list(tree.walk(bfs=True))):  # inner ones first
        found = _translated(node, spread)
        if found is not node:
            node.replace(found)
    return tree.sql("duckdb").removeprefix("SELECT ")


def _translated(node: exp.Expr, spread: int) -> exp.Expr:
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name in ("hash", "xxhash64"):
        row = exp.Anonymous(this="row", expressions=node.expressions)
        hashed = f"CAST(hash({row.sql('duckdb')}) % {spread} AS BIGINT)"
        return _parsed(f"({hashed} - {spread // 2})" if name == "hash" else hashed)
    if name == "monotonically_increasing_id":
        return _parsed("row_number() OVER ()")
    if isinstance(node, exp.BitwiseLeftShift):  # DuckDB's raises for negative numbers
        return _parsed(f"({node.this.sql('duckdb')} * {1 << int(node.expression.name)})")
    if isinstance(node, exp.Interval):
        return _parsed(f"INTERVAL '{_micros(node)} microseconds'")
    if isinstance(node, exp.TryCast):  # sqlglot takes Spark's CAST for one that cannot fail
        return exp.Cast(this=node.this, to=node.args["to"])
    return node


def _micros(interval: exp.Interval) -> int:
    """Of '0 00:20:00.5' DAY TO SECOND, or so many seconds."""
    days, _, clock = interval.this.name.rpartition(" ")
    sign = -1 if (days or clock).startswith("-") else 1
    parts = [float(part) for part in clock.removeprefix("-").split(":")]
    seconds = sum(part * 60**power for power, part in enumerate(reversed(parts)))
    return sign * round((abs(int(days or 0)) * 86_400 + seconds) * 1_000_000)


def _parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="duckdb")
