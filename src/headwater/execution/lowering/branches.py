"""Several inputs of one operator that are parts of one table: read once, instead of once for each.

1. The table is read with all columns that any branch needs, and without the rows that none of them wants.
2. Filters and projections of all branches are computed side by side, each under names of its own, and each only
   for the rows that have passed the filters of its branch so far.
3. A row becomes as many rows as there are branches that it is in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from pyspark.sql import DataFrame

from headwater.changelog.conditions import Condition, Or
from headwater.connectors.spark_types import type_sql
from headwater.execution.lowering.base import Lowering, divided
from headwater.execution.lowering.reading import filters_above_scan, readable_part
from headwater.execution.worker import INPUT, input_column
from headwater.plan import nodes as n
from headwater.sql.spark_text import quote_name, renamed

__all__ = ["Branch", "branches_of", "one_scan", "read_once"]


@dataclass(frozen=True)
class Branch:
    """Projections and filters above the scan of a table, from the scan upwards."""

    scan: n.Scan
    steps: tuple[n.Project | n.Filter, ...]

    @property
    def where(self) -> Condition | None:
        """What readers can evaluate."""
        filters = [step for step in self.steps if isinstance(step, n.Filter)]
        lowest = [step for step in filters if filters_above_scan(step) is not None]
        return readable_part([step.predicate for step in lowest])


def branches_of(sides: Sequence[n.Node]) -> list[Branch] | None:
    """The sides, if all of them are parts of one table whose rows are independent of each other."""
    found = [_branch(side) if side.names else None for side in sides]
    branches = [branch for branch in found if branch is not None]
    if len(branches) < max(len(sides), 2) or any(b.scan.table != branches[0].scan.table for b in branches):
        return None
    return branches


def _branch(node: n.Node) -> Branch | None:
    steps: list[n.Project | n.Filter] = []
    while isinstance(node, n.Project | n.Filter):
        expressions = node.expressions if isinstance(node, n.Project) else (node.predicate,)
        # Spark evaluates functions of the user's for all rows, also where a condition before them fails.
        if not all(e.deterministic and not e.functions for e in expressions):
            return None
        steps.insert(0, node)
        node = node.input
    plain = isinstance(node, n.Scan) and node.mode is n.Mode.APPEND and not node.placed
    return Branch(node, tuple(steps)) if plain and isinstance(node, n.Scan) else None


def read_once(lowering: Lowering, branches: Sequence[Branch], not_null: Sequence[n.Key]) -> DataFrame:
    """Rows with the number of their branch as INPUT and, for every branch, a struct of its columns that is NULL but for
    its own rows. Rows with NULL in one of the columns `not_null` of their branch are left out."""
    scan = one_scan([branch.scan for branch in branches])
    known = [branch.where for branch in branches]
    conditions = [condition for condition in known if condition is not None]
    # One branch that wants all rows makes readers pass them all on.
    where = reduce(Or, conditions) if len(conditions) == len(branches) else None
    plan = lowering.inputs.scan(scan, where=where)
    assert plan is not None
    frame = lowering.scanned(scan, plan)
    computed = []
    for number, branch in enumerate(branches):
        side = _Side(f"__hw_branch{number}", {name: name for name in branch.scan.names})
        for step in branch.steps:
            frame, side = side.after(frame, step)
        frame, side = side.tested(frame, [f"{quote_name(name)} IS NOT NULL" for name in not_null[number]])
        computed.append(side)
    return _tagged(frame, computed)


def one_scan(scans: Sequence[n.Scan]) -> n.Scan:
    """One scan with all columns, and of a ROW all fields, that any of these needs."""
    columns = {column.name: column for scan in scans for column in scan.columns}
    order = [column.name for column in scans[0].table.columns]
    fields = []
    for column in columns.values():
        wanted = [dict(scan.fields).get(column.name) for scan in scans if column.name in scan.names]
        opened = [names for names in wanted if names is not None]
        if opened and len(opened) == len(wanted):
            named = {name for names in opened for name in names}
            fields.append((column.name, tuple(f.name for f in column.type.fields if f.name in named)))
    ordered = tuple(sorted(columns.values(), key=lambda column: order.index(column.name)))
    return replace(scans[0], columns=ordered, fields=tuple(fields))


@dataclass(frozen=True)
class _Side:
    """What is computed of one branch: `names` are the columns of the frame behind the columns of the branch, `passed`
    is one that says whether a row is in it."""

    prefix: str
    names: Mapping[str, str]
    passed: str = ""

    def after(self, frame: DataFrame, step: n.Project | n.Filter) -> tuple[DataFrame, _Side]:
        if isinstance(step, n.Filter):
            return self.tested(frame, [step.predicate.sql])
        names: dict[str, str] = {}
        added: list[str] = []
        for column, expression in step.items:
            if expression.column is not None and expression.sql == quote_name(expression.column):
                names[column.name] = self.names[expression.column]
            else:
                names[column.name] = f"{self.prefix}_{len(frame.columns) + len(added)}"
                sql = renamed(expression.sql, self.names)
                # What fails for a row that a filter below has dropped must not be computed for it.
                guarded = f"IF({self.passed}, {sql}, NULL)" if self.passed else sql
                added.append(f"{guarded} AS {names[column.name]}")
        return frame.selectExpr("*", *added), replace(self, names=names)

    def tested(self, frame: DataFrame, tests: Sequence[str]) -> tuple[DataFrame, _Side]:
        if not tests:
            return frame, self
        sql = " AND ".join(f"({renamed(test, self.names)})" for test in tests)
        passed = f"{self.prefix}_{len(frame.columns)}"
        guarded = f"IF({self.passed}, {sql}, false)" if self.passed else sql
        return frame.selectExpr("*", f"coalesce({guarded}, false) AS {passed}"), replace(self, passed=passed)

    @property
    def struct(self) -> str:
        items = (f"{quote_name(inner)} AS {quote_name(name)}" for name, inner in self.names.items())
        return f"struct({', '.join(items)})"


def _tagged(frame: DataFrame, sides: Sequence[_Side]) -> DataFrame:
    types = [frame.selectExpr(f"{side.struct} AS s").schema["s"].dataType for side in sides]
    parts = []
    for number, side in enumerate(sides):
        structs = [
            f"{side.struct if other == number else f'CAST(NULL AS {type_sql(kind)})'} AS {input_column(other)}"
            for other, kind in enumerate(types)
        ]
        parts.append((side.passed, [f"CAST({number} AS TINYINT) AS {INPUT}", *structs]))
    return divided(frame, parts, never_null=INPUT)
