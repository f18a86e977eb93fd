"""Immutable plan nodes, one file for each or for a few of a kind. `base` says what each of them declares.

    Scan      read a table                        Project    compute columns
    Values    rows written in the query           Filter     keep rows
    UnionAll  rows of all inputs                  Aggregate  GROUP BY
    Join      two inputs by equal keys            Expand     rows for each of GROUPING SETS
    SetOperation  INTERSECT, EXCEPT               WindowAggregate  GROUP BY windows
    Rank      number rows, within limits          Unnest     a row for every element
    Watermark, ProcessingTime  time attributes    WindowTable      TUMBLE, HOP, CUMULATE, SESSION
    IntervalJoin, TemporalJoin, LookupJoin   joins that time decides
    Over, OverTime   aggregates over rows before and after each row
    Write     the root: into a table

Inserted by `plan.changelog`: FilterToDelete, Normalize, Consolidate, Materialize.
"""

from __future__ import annotations

from headwater.plan.nodes.aggregate import Aggregate
from headwater.plan.nodes.base import (
    Column,
    Key,
    Mode,
    Node,
    StateSchema,
    Takes,
    TimeKind,
    Window,
    distinct_keys,
    source_of_updates,
    typed,
    walk,
)
from headwater.plan.nodes.changes import Consolidate, FilterToDelete, Materialize, Normalize
from headwater.plan.nodes.expand import Expand
from headwater.plan.nodes.join import Comparison, Condition, Flag, Join, JoinKind, Logic, Negation, Truth
from headwater.plan.nodes.over import Over, OverCall, OverFrame, OverTime
from headwater.plan.nodes.rank import Rank, RankFunction, SortColumn
from headwater.plan.nodes.rows import Filter, Project, Unary, UnionAll, column_reference
from headwater.plan.nodes.set_operation import SetOperation
from headwater.plan.nodes.sources import Scan, Values
from headwater.plan.nodes.time import ProcessingTime, Watermark, WindowSpec, WindowTable
from headwater.plan.nodes.timed_join import IntervalJoin, LookupJoin, TemporalJoin
from headwater.plan.nodes.unnest import Unnest
from headwater.plan.nodes.window import WindowAggregate
from headwater.plan.nodes.write import Write

__all__ = [
    "Aggregate",
    "Column",
    "Comparison",
    "Condition",
    "Consolidate",
    "Expand",
    "Filter",
    "FilterToDelete",
    "Flag",
    "IntervalJoin",
    "Join",
    "JoinKind",
    "Key",
    "Logic",
    "LookupJoin",
    "Materialize",
    "Mode",
    "Negation",
    "Node",
    "Normalize",
    "Over",
    "OverCall",
    "OverFrame",
    "OverTime",
    "ProcessingTime",
    "Project",
    "Rank",
    "RankFunction",
    "Scan",
    "SetOperation",
    "SortColumn",
    "StateSchema",
    "Takes",
    "TemporalJoin",
    "TimeKind",
    "Truth",
    "Unary",
    "UnionAll",
    "Unnest",
    "Values",
    "Watermark",
    "Window",
    "WindowAggregate",
    "WindowSpec",
    "WindowTable",
    "Write",
    "column_reference",
    "distinct_keys",
    "source_of_updates",
    "typed",
    "walk",
]
