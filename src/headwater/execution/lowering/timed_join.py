"""Joins that time decides: interval joins, and FOR SYSTEM_TIME AS OF."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from pyspark.sql import DataFrame

from headwater.changelog.interval_join import IntervalJoinOperator, IntervalKind
from headwater.changelog.join import JoinInput
from headwater.changelog.kinds import HASH, KIND
from headwater.changelog.operator import ORIGIN, OWN_WATERMARK
from headwater.changelog.temporal_join import LookupJoinOperator, TemporalJoinOperator
from headwater.execution.lowering.base import ORDERED_BY, Lowering, lowers
from headwater.execution.lowering.join import join_inputs, operator_condition, prepared_side
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name
from headwater.state.partitions import hash_sql

__all__: list[str] = []

_OWN = (OWN_WATERMARK, ORIGIN)
_DROPPED = {"inner": ("left", "right"), "left": ("right",), "right": ("left",)}


@lowers(n.IntervalJoin)
def _interval_join(lowering: Lowering, node: n.IntervalJoin) -> DataFrame:
    dropped = _DROPPED.get(node.kind, ())
    own = _OWN if node.clock is n.TimeKind.EVENT else ()
    frames = [
        prepared_side(lowering, node.left, node.left_keys, own, not_null=node.left_keys if "left" in dropped else ()),
        prepared_side(
            lowering, node.right, node.right_keys, own, not_null=node.right_keys if "right" in dropped else ()
        ),
    ]
    left, right = _inputs(node, frames)
    times = (node.left_time, node.right_time, node.low, node.high)
    operator = IntervalJoinOperator(left, right, *times, cast(IntervalKind, node.kind), _condition(node))
    return lowering.keyed_several(node, frames, operator).drop(KIND)


@lowers(n.TemporalJoin)
def _temporal_join(lowering: Lowering, node: n.TemporalJoin) -> DataFrame:
    frames = _left_and_versions(lowering, node, _OWN)
    left, right = _inputs(node, frames)
    assert node.kind in ("inner", "left")
    operator = TemporalJoinOperator(left, right, node.kind, _condition(node), node.left_time, node.right_time)
    return lowering.keyed_several(node, frames, operator).drop(KIND)


@lowers(n.LookupJoin)
def _lookup_join(lowering: Lowering, node: n.LookupJoin) -> DataFrame:
    frames = _left_and_versions(lowering, node)
    left, right = join_inputs(node, frames)
    assert node.kind in ("inner", "left")
    operator = LookupJoinOperator(left, right, node.kind, _condition(node))
    return lowering.keyed_several(node, frames, operator).drop(KIND)


def _left_and_versions(lowering: Lowering, node: n.TemporalJoin | n.LookupJoin, own: n.Key = ()) -> list[DataFrame]:
    """Of the right every version, with what says in which order they came."""
    rows = lowering.lower(node.left)
    if node.kind == "inner":  # what matches nothing need not wait
        rows = rows.where(" AND ".join(f"{quote_name(key)} IS NOT NULL" for key in node.left_keys))
    versions = lowering.lower(node.right)
    return [
        _by_keys(rows, (*node.left.names, *own), node.left_keys),
        _by_keys(versions, (*node.right.names, KIND, *ORDERED_BY, *own), node.right_keys),
    ]


def _by_keys(rows: DataFrame, names: n.Key, keys: n.Key) -> DataFrame:
    kept = [quote_name(name) for name in names if name in rows.columns]
    return rows.selectExpr(*kept, f"{hash_sql([quote_name(key) for key in keys])} AS {HASH}")


def _inputs(node: n.IntervalJoin | n.TemporalJoin, frames: list[DataFrame]) -> tuple[JoinInput, JoinInput]:
    left, right = (
        replace(side, own=OWN_WATERMARK in frame.columns)
        for side, frame in zip(join_inputs(node, frames), frames, strict=True)
    )
    return left, right


def _condition(node: Any) -> Any:
    return operator_condition(node.condition) if node.condition is not None else None
