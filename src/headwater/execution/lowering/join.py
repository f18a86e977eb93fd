"""Joins: both sides arrive by one shuffle, and meet in the keyed operator."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema

from headwater.changelog import conditions as c
from headwater.changelog.at_window_end import AtWindowEnd, WindowInput
from headwater.changelog.join import JoinInput, JoinOperator
from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK, Operator
from headwater.execution.lowering.base import ORDERED_BY, Lowering, has_map, lowers, pick
from headwater.execution.lowering.branches import Branch, branches_of, read_once
from headwater.execution.worker import INPUT, input_column
from headwater.plan import nodes as n
from headwater.sql.spark_text import field_of, quote_name
from headwater.state.partitions import hash_sql

__all__ = ["join_inputs", "operator_condition", "prepared_side"]


@lowers(n.Join)
def _join(lowering: Lowering, node: n.Join) -> DataFrame:
    hidden = {"inner": ("left", "right"), "left": ("right",), "right": ("left",), "semi": ("left", "right")}
    # A row whose key is NULL never matches: it need not be stored, unless its side is preserved.
    dropped = hidden.get(node.kind, ("right",) if node.kind in ("anti", "mark") else ())
    own = (OWN_WATERMARK, ORIGIN) if node.closes is not None else ()
    keys = [node.left_keys, node.right_keys]
    not_null = [mine if side in dropped else () for side, mine in zip(("left", "right"), keys, strict=True)]
    branches = branches_of(node.inputs) if not own else None
    tagged = _read_once(lowering, branches, keys, not_null) if branches is not None else None
    if tagged is not None:
        frames = [tagged.selectExpr(f"{input_column(number)}.*", HASH) for number in range(2)]
    else:
        sides = zip(node.inputs, keys, not_null, strict=True)
        frames = [prepared_side(lowering, side, mine, own, not_null=sure) for side, mine, sure in sides]
    left, right = join_inputs(node, frames)
    condition = operator_condition(node.condition) if node.condition is not None else None
    updates = node.net_key or node.key or ()
    operator = JoinOperator(left, right, node.kind, condition, node.unknown_matches, updates, node.before, node.mark)
    joined = lowering.keyed_several(node, frames, _at_window_end(lowering, node, frames, operator), tagged)
    return joined.drop(KIND) if node.mode is n.Mode.APPEND else joined


def _at_window_end(lowering: Lowering, node: n.Join, frames: list[DataFrame], join: JoinOperator) -> Operator:
    """The join itself, or of windows, when they close."""
    if node.closes is None:
        return join
    windows = [
        WindowInput(side.window.end, KIND in frame.columns, OWN_WATERMARK in frame.columns)
        for side, frame in zip(node.inputs, frames, strict=True)
        if side.window is not None
    ]
    return AtWindowEnd(join, tuple(windows), lowering.time_zone if node.closes.local else "")


def _read_once(
    lowering: Lowering, branches: Sequence[Branch], keys: Sequence[n.Key], not_null: Sequence[n.Key]
) -> DataFrame:
    """Rows of both sides, with their HASH, from one table that is read once."""
    rows = read_once(lowering, branches, not_null)
    hashes = []
    for number, mine in enumerate(keys):
        side = rows.selectExpr(f"{input_column(number)}.*").schema
        quoted = [field_of(input_column(number), key) for key in mine]
        hashed = [field_of(input_column(number), f.name) for f in side if not has_map(f.dataType)]
        hashes.append(f"WHEN {number} THEN {hash_sql(quoted, ', '.join(hashed) or '0')}")
    return rows.selectExpr("*", f"CASE {INPUT} {' '.join(hashes)} END AS {HASH}")


def prepared_side(
    lowering: Lowering, side: n.Node, keys: n.Key, hidden: n.Key = (), *, not_null: n.Key = ()
) -> DataFrame:
    """The rows of one side. Where only rows with a match are shown, those with NULL in a key need not be kept: such
    keys are `not_null`."""
    frame = lowering.lower(side).drop(*ORDERED_BY)
    quoted = [quote_name(key) for key in keys]
    if not_null:
        frame = frame.where(" AND ".join(f"{quote_name(key)} IS NOT NULL" for key in not_null))
    # Spark cannot hash maps. Rows that differ only in one share a hash then; whole rows are compared anyway.
    hashed = [quote_name(f.name) for f in frame.schema.fields if f.name in side.names and not has_map(f.dataType)]
    kept = [quote_name(name) for name in (*side.names, KIND, *hidden) if name in frame.columns]
    return frame.selectExpr(*kept, f"{hash_sql(quoted, ', '.join(hashed) or '0')} AS {HASH}")


def join_inputs(
    node: n.Join | n.IntervalJoin | n.TemporalJoin | n.LookupJoin, frames: list[DataFrame]
) -> tuple[JoinInput, JoinInput]:
    """The columns and keys of both sides of a join by keys."""
    left, right = (
        JoinInput(pick(to_arrow_schema(frame.schema), side.names), keys)
        for frame, side, keys in zip(frames, node.inputs, (node.left_keys, node.right_keys), strict=True)
    )
    return left, right


def operator_condition(condition: n.Condition) -> c.Condition:
    match condition:
        case n.Flag():
            return c.ColumnRef(condition.column)
        case n.Comparison():
            return c.Compare(condition.operator, c.ColumnRef(condition.left), c.ColumnRef(condition.right))
        case n.Negation():
            return c.Not(operator_condition(condition.operand))
        case n.Truth():
            operand = operator_condition(condition.operand)
            return c.And(operand, c.Not(c.IsNull(operand)))
        case n.Logic():
            combine = c.And if condition.operator == "AND" else c.Or
            return reduce(combine, [operator_condition(part) for part in condition.parts])
