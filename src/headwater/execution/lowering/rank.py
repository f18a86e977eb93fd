"""Top-N and deduplication: rows by partition, then a keyed operator."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.changelog.at_window_end import AtWindowEnd, WindowInput
from headwater.changelog.deduplicate import Deduplicate, DeduplicateByArrival
from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK, Operator
from headwater.changelog.ordered_values import ARRIVAL
from headwater.changelog.ordering import SortKey
from headwater.changelog.rank import RankOperator
from headwater.execution.lowering.base import ORDERED_BY, Lowering, comparable, lowers, pick
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name
from headwater.state.partitions import hash_sql

__all__: list[str] = []


@lowers(n.Rank)
def _rank(lowering: Lowering, node: n.Rank) -> DataFrame:
    frame = comparable(lowering.lower(node.input).drop(*ORDERED_BY), node.input.columns, node.partition)
    keys = [quote_name(name) for name in node.partition]
    # A row is found again by its partition and by itself; of a row that replaces all others the partition is enough.
    row = "" if node.deduplicates else ", ".join(quote_name(c.name) for c in node.input.columns if _is_hashed(c))
    arrival = [f"monotonically_increasing_id() AS {ARRIVAL}"] if node.kept else []
    frame = frame.selectExpr("*", f"{hash_sql(keys, row)} AS {HASH}", *arrival)
    # A timed operator knows its state partition by the number of its task, in a stage of its own.
    frame = lowering.by_key(node.input if node.closes is None else node, frame, node.partition)
    # Only rows that are passed on as they came, once, keep the watermark that they came behind.
    if node.closes is None and node.kept != "first":
        frame = frame.drop(OWN_WATERMARK, ORIGIN)
    operator = _operator(node, frame)
    if node.closes is not None:
        closing = WindowInput(node.closes.end, KIND in frame.columns, OWN_WATERMARK in frame.columns)
        operator = AtWindowEnd(operator, (closing,), lowering.time_zone if node.closes.local else "")
    changes = lowering.keyed(node, frame, operator)
    return changes.drop(KIND) if node.mode is n.Mode.APPEND else changes


def _operator(node: n.Rank, frame: DataFrame) -> Operator:
    schema = to_arrow_schema(frame.schema)
    order = tuple(SortKey(s.name, s.descending, s.nulls_first) for s in node.order)
    assert node.last is not None, "the planner refuses ranks without a limit"
    if node.deduplicates:
        values = [name for name in node.input.names if name not in node.partition]
        values += [name for name in (OWN_WATERMARK, ORIGIN) if name in frame.columns]
        if node.kept:
            keys, rest, arrival = (pick(schema, names) for names in (node.partition, values, [ARRIVAL]))
            return DeduplicateByArrival(keys, rest, node.kept, arrival, node.before)
        return Deduplicate(pick(schema, node.partition), pick(schema, values), order, node.before)
    return RankOperator(
        pick(schema, node.input.names),
        node.partition,
        order,
        node.last,
        node.first,
        node.function,
        node.number,
        KIND not in frame.columns,
        node.updates or _own_key(node),
        node.before,
    )


def _is_hashed(column: n.Column) -> bool:
    """Spark has no hash of maps. All columns tell rows apart; the hash only finds them."""
    return "MAP<" not in str(column.type) and "MULTISET<" not in str(column.type)


def _own_key(node: n.Rank) -> tuple[str, ...]:
    """Rows of this key are in one partition, so that one takes the place of another: an update."""
    return next((key for key in node.keys if set(node.partition) <= set(key)), ())
