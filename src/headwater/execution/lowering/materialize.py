"""Rows by the primary key of the sink."""

from __future__ import annotations

from typing import cast

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.changelog.aggregate import ROWS
from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.materialize import ROW, ROW_HASH, ROW_WEIGHT, Conflict, MaterializeOperator
from headwater.changelog.ordered_values import ARRIVAL
from headwater.execution.lowering.accumulators import WEIGHT
from headwater.execution.lowering.base import Lowering, lowers, pick
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name
from headwater.sql.types import has_map
from headwater.state.partitions import hash_sql

__all__: list[str] = []


@lowers(n.Materialize)
def _materialize(lowering: Lowering, node: n.Materialize) -> DataFrame:
    frame = lowering.lower(node.input)
    values = [name for name in node.names if name not in node.by]
    keys, others = ([quote_name(name) for name in names] for names in (node.by, values))
    row = f"struct({', '.join(others)})"
    # Spark cannot hash maps, but it can hash their text.
    hashed = f"CAST({row} AS STRING)" if any(has_map(c.type) for c in node.columns) else row
    weight = WEIGHT if KIND in frame.columns else "1L"
    rows = frame.selectExpr(
        *keys,
        f"{weight} AS {ROWS}",
        f"{row} AS {ROW}",
        f"{weight} AS {ROW_WEIGHT}",
        f"{hash_sql(keys, hashed)} AS {ROW_HASH}",
        f"{hash_sql(keys)} AS {HASH}",
        f"monotonically_increasing_id() AS {ARRIVAL}",
    ).repartition(lowering.partitions, *keys)
    schema = to_arrow_schema(frame.schema)
    conflict = cast(Conflict, node.conflict)
    operator = MaterializeOperator(pick(schema, node.by), pick(schema, values), conflict, node.before, node.table)
    changes = lowering.keyed(node, rows, operator, frame.schema)
    return changes.select(*map(quote_name, [*node.names, KIND]))
