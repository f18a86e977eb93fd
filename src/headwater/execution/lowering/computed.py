"""What Python workers compute themselves of the columns of a table: fields of ROWs, CASE, comparisons with literals.

Where that is all that stands between a table and a step in Python, its rows need not pass Spark's expressions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from headwater.changelog.conditions import And, CaseWhen, ColumnRef, Condition, FieldRef
from headwater.execution.lowering.reading import condition_of
from headwater.plan import nodes as n
from headwater.sql.typed import Expr

__all__ = ["ComputedBelow", "computed_below"]

Values = Mapping[str, Condition]


@dataclass(frozen=True)
class ComputedBelow:
    """The table below projections and filters. `values` has the columns above that can be computed of those of the
    table, and `where` the filters."""

    scan: n.Scan
    values: Values
    where: Condition | None


def computed_below(node: n.Node, passed: tuple[type[n.Node], ...] = ()) -> ComputedBelow | None:
    """None if there is a filter between that cannot be computed, or anything but filters, projections, and nodes that
    are `passed`, which give the columns of their input, and perhaps more."""
    if isinstance(node, n.Scan):
        return ComputedBelow(node, {name: ColumnRef(name) for name in node.names}, None)
    # The column of processing time is not computed of the table's: it is not among the values.
    if not isinstance(node, (n.Project, n.Filter, n.ProcessingTime, *passed)):
        return None
    below = computed_below(node.inputs[0], passed)
    if below is None:
        return None
    if isinstance(node, n.Project):
        found = {c.name: _value(e, below.values) for c, e in node.items}
        return ComputedBelow(below.scan, {name: v for name, v in found.items() if v is not None}, below.where)
    if isinstance(node, n.Filter):
        parts = [part.as_predicate for part in node.predicate.conjuncts or (node.predicate,)]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or not node.predicate.refs <= below.values.keys():
            return None
        before = [below.where] if below.where is not None else []
        tests = [condition_of(part, below.values) for part in known]
        return ComputedBelow(below.scan, below.values, reduce(And, [*before, *tests]))
    return below


def _value(expression: Expr, values: Values) -> Condition | None:
    if not expression.refs <= values.keys():
        return None
    if expression.column is not None:
        return values[expression.column]
    if expression.as_field is not None:
        column, field = expression.as_field
        return FieldRef(values[column], field)
    cases = expression.as_cases
    if cases is None or cases.otherwise is None:
        return None
    whens = [(condition_of(test, values), _value(result, values)) for test, result in cases.whens]
    known = tuple((test, value) for test, value in whens if value is not None)
    otherwise = _value(cases.otherwise, values)
    return CaseWhen(known, otherwise) if len(known) == len(whens) and otherwise is not None else None
