"""Plan nodes → one DataFrame that is valid for every batch, one function per node.

base       what lowering has besides the plan; keyed operators
rows       sources, stateless nodes, Normalize, Consolidate
aggregate  GROUP BY
join       joins
timed_join interval joins, FOR SYSTEM_TIME AS OF
sets       INTERSECT, EXCEPT
materialize  rows by the sink's key
over       OVER
rank       Top-N, deduplication, LIMIT
unnest     rows of elements
time       time attributes, and the windows of rows
window     GROUP BY windows
"""

from __future__ import annotations

from headwater.execution.lowering import (
    aggregate,
    join,
    materialize,
    over,
    rank,
    rows,
    sets,
    time,
    timed_join,
    unnest,
    window,
)
from headwater.execution.lowering.base import RULES, Lowering, tasks_of

__all__ = [
    "RULES",
    "Lowering",
    "aggregate",
    "join",
    "materialize",
    "over",
    "rank",
    "rows",
    "sets",
    "tasks_of",
    "time",
    "timed_join",
    "unnest",
    "window",
]
