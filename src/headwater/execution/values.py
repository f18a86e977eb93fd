"""Rows written in a query: `INSERT INTO t VALUES …`, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructType

from headwater.changelog.conditions import Condition
from headwater.connectors.runtime import (
    LocalAggregation,
    Position,
    RowOrder,
    RuntimeContext,
    ScanPlan,
    Split,
    UnchangingSource,
)
from headwater.plan.nodes import Values
from headwater.sql.spark_text import quote_name

__all__ = ["ValuesSource"]


class ValuesSource(UnchangingSource):
    """The position is the number of rows already read. One task reads them all: rows of one key are written in the
    order of the query."""

    def __init__(self, node: Values, context: RuntimeContext) -> None:
        self._node = node

    def start(self) -> Position:
        return {"rows": 0}

    def bound(self, start: Position) -> Position | None:
        return {"rows": len(self._node.rows)}

    def available(self, position: Position, bound: Position | None, limit: int) -> tuple[Position, Position]:
        return position, {"rows": len(self._node.rows)}

    def splits(self, start: Position, end: Position) -> list[list[Split]]:
        first, count = start["rows"], end["rows"] - start["rows"]
        return [[[first, count]] if count else []]

    def scan(
        self,
        columns: Sequence[str],
        local: LocalAggregation | None = None,
        order: RowOrder = "any",
        fields: Mapping[str, Sequence[str]] | None = None,
        where: Condition | None = None,
    ) -> ScanPlan | None:
        if local is not None:
            return None
        schema = StructType().add("first", IntegerType()).add("count", IntegerType())
        return ScanPlan(schema, self._rows, _splits)

    def lag(self, position: Position) -> int:
        return len(self._node.rows) - position["rows"]

    def _rows(self, splits: DataFrame) -> DataFrame:
        kinds = [c.type.spark() for c in self._node.columns]
        rows = (", ".join(f"CAST({e.sql} AS {k})" for e, k in zip(row, kinds, strict=True)) for row in self._node.rows)
        # All rows are a constant of the plan, and a split says which of them: the worker need not know any expression.
        listed = ", ".join(f"struct({row})" for row in rows)
        names = ", ".join(map(quote_name, self._node.names))
        return splits.selectExpr(f"inline(slice(array({listed}), first + 1, count)) AS ({names})")


def _splits(splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """In a worker."""
    firsts, counts = zip(*splits, strict=True)
    yield pa.RecordBatch.from_pydict({"first": pa.array(firsts, pa.int32()), "count": pa.array(counts, pa.int32())})
