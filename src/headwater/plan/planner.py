"""An INSERT's way to a plan: the passes, in order."""

from __future__ import annotations

from headwater.catalog.catalog import Catalog
from headwater.plan.accumulators import decide_accumulators
from headwater.plan.build import Builder, PlanRules
from headwater.plan.changelog import decide_changelog
from headwater.plan.column_pruning import prune
from headwater.plan.common_subplans import share_equal
from headwater.plan.determinism import refuse_non_deterministic
from headwater.plan.display_names import located
from headwater.plan.field_pruning import open_rows
from headwater.plan.filter_pushdown import push_filters
from headwater.plan.known_values import decide_cases
from headwater.plan.merge_projections import merge_projects
from headwater.plan.nodes import Write
from headwater.plan.panes import in_panes
from headwater.plan.rank_limits import refuse_unlimited_ranks
from headwater.plan.time_attributes import drop_unused_times, refuse_open_sessions
from headwater.sql.statements import Insert

__all__ = ["PASSES", "finished", "plan_insert"]

PASSES = (
    refuse_unlimited_ranks,
    refuse_open_sessions,
    drop_unused_times,
    merge_projects,
    share_equal,
    push_filters,
    decide_cases,
    prune,
    merge_projects,
    decide_changelog,
    share_equal,
    decide_accumulators,
    refuse_non_deterministic,
    open_rows,
    in_panes,
)
"""Sharing comes before filters are pushed and columns pruned, so that a view stays one node with the columns that any
of its users needs; and after the changes are decided, because equal tables may have got an equal Normalize."""


def plan_insert(statement: Insert, catalog: Catalog, rules: PlanRules) -> Write:
    builder = Builder(catalog, statement.position_of, rules)
    with located(statement, builder.renamed):
        return finished(builder.insert(statement))


def finished(plan: Write) -> Write:
    """All passes over a plan as it was built."""
    for apply in PASSES:
        plan = apply(plan)
    return plan
