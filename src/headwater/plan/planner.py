"""An INSERT's way to a plan: the passes, in order."""

from __future__ import annotations

from headwater.catalog.catalog import Catalog
from headwater.errors import SqlError
from headwater.plan.build import Builder
from headwater.plan.chance import refuse_chance
from headwater.plan.changelog import settle_changes
from headwater.plan.merge import merge_projects
from headwater.plan.nodes import Write
from headwater.plan.prune import prune
from headwater.sql.statements import Insert

__all__ = ["PASSES", "plan_insert"]

PASSES = (merge_projects, prune, settle_changes, refuse_chance)


def plan_insert(statement: Insert, catalog: Catalog, repeats: bool = False) -> Write:
    """With `repeats`, changes that a source has already told may come again."""
    try:
        plan = Builder(catalog, statement.position_of, repeats).insert(statement)
    except SqlError as error:
        error.script = error.script or (statement.script.name if statement.script is not None else "")
        raise
    for apply in PASSES:
        plan = apply(plan)
    return plan
