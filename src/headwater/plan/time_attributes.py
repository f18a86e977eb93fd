"""Time attributes of tables, and which of them a plan needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import gcd

from headwater.catalog.tables import Table
from headwater.errors import ValidationError
from headwater.plan import nodes as n
from headwater.plan.rewrite import rewrite
from headwater.sql.expressions import Scope, ScopeColumn, compile_expression
from headwater.sql.typed import OWN_WATERMARK

__all__ = [
    "drop_unused_times",
    "processing_period",
    "refuse_open_sessions",
    "watermark_scans",
    "with_proctime",
    "with_watermark",
]

_ANY_TIME = 1000
"""What ends at any time, as sessions and intervals of processing time do, is found to have ended this many milliseconds
later at most."""


def with_watermark(node: n.Node, table: Table) -> n.Node:
    """The rows of a table with the watermark that it declares."""
    if table.watermark is None:
        return node
    scope = Scope(tuple(ScopeColumn(table.name, c.name, c.name, c.type) for c in node.columns))
    expression = compile_expression(table.watermark.expression, scope, lambda _: table.position)
    return n.Watermark(node.columns, node, table.watermark.column, expression)


def with_proctime(node: n.Project) -> n.Node:
    """Columns that are PROCTIME() are time attributes."""
    found: n.Node = node
    for column, expression in node.items:
        if expression.text.upper() == "PROCTIME()":
            found = n.ProcessingTime(found.columns, found, column.name)
    return found


def drop_unused_times(root: n.Write) -> n.Write:
    """Without a node above it that depends on time, a time attribute is a column like others. A source whose watermark
    is used reads its partitions in order."""
    used = _below_timed(root)
    for node in n.walk(root):
        if _asks_for_watermark(node):
            used += _watermarks_of(node)

    identities = [_identity(node) for node in used]

    def rule(node: n.Node) -> n.Node:
        if not isinstance(node, n.Watermark | n.ProcessingTime):
            return node
        # Dropped where unused: computing watermarks costs a pass in Python workers, and forces partitions to be read in
        # order.
        if _identity(node) not in identities:
            return node.input
        return replace(node, input=_placed(node.input)) if isinstance(node, n.Watermark) else node

    return rewrite(root, rule)


def _identity(node: n.Node) -> object:
    """Also of a node whose inputs are rewritten: of a table that is used twice, both keep their time or none does, so
    that what is the same stays the same."""
    assert isinstance(node, n.Watermark | n.ProcessingTime)
    return type(node), node.column, [scan.table for scan in n.walk(node) if isinstance(scan, n.Scan)]


def _below_timed(node: n.Node) -> list[n.Node]:
    """The time attributes that a node with timers gets, from however far below it."""
    if node.timed:
        below = (found for child in node.inputs for found in n.walk(child))
        return [found for found in below if isinstance(found, n.Watermark | n.ProcessingTime)]
    return [found for child in node.inputs for found in _below_timed(child)]


def refuse_open_sessions(root: n.Write) -> n.Write:
    """The same plan. Raises if something but a GROUP BY of the session takes its bounds, which are not known before the
    session has ended."""
    for node in n.walk(root):
        for child in node.inputs:
            window = child.window
            # The bounds of other windows follow from the time of a row; those of a session depend on rows that may
            # still come.
            if window is None or window.session is None or isinstance(node, n.WindowAggregate):
                continue
            if not isinstance(node, n.Project | n.Filter | n.Expand) or _computes(node, {window.start, window.end}):
                raise ValidationError(
                    "The start and end of a session are known when it has ended.",
                    hint="GROUP BY the window_start and window_end of SESSION; filter by them in a query around that.",
                )
    return root


def _computes(node: n.Node, names: set[str]) -> bool:
    """Whether it does more with these columns of its input than to pass them on."""
    if isinstance(node, n.Filter):
        return bool(node.predicate.refs & names)
    if isinstance(node, n.Project):
        return node.window is None or any(e.refs & names and e.column is None for e in node.expressions)
    return False


def _asks_for_watermark(node: n.Node) -> bool:
    expressions = node.expressions if isinstance(node, n.Project) else ()
    predicates = (node.predicate,) if isinstance(node, n.Filter) else ()
    return any(f"`{OWN_WATERMARK}`" in e.sql for e in (*expressions, *predicates))


def _watermarks_of(node: n.Node) -> list[n.Node]:
    """Where the watermark beside the rows of a node comes from. It does not pass operators with state."""
    found: list[n.Node] = []
    for child in node.inputs:
        if isinstance(child, n.Watermark):
            found.append(child)
        elif child.stateful or not child.inputs:
            raise ValidationError(
                "CURRENT_WATERMARK takes the event time of a table.",
                detail="Behind an aggregation, a join or a rank, and without a WATERMARK, rows have none of their own.",
                hint="Use it in a query over the table, or over a view that only selects and filters.",
            )
        else:
            found += _watermarks_of(child)
    return found


def _placed(node: n.Node) -> n.Node:
    if isinstance(node, n.Scan):
        return replace(node, placed=True)
    return node.with_inputs([_placed(child) for child in node.inputs])


def watermark_scans(node: n.Node) -> list[n.Scan]:
    """The scans at or below a node whose watermarks make its event time."""
    marks = [below for below in n.walk(node) if isinstance(below, n.Watermark)]
    return [scan for mark in marks for scan in n.walk(mark) if isinstance(scan, n.Scan)]


def processing_period(root: n.Node) -> int | None:
    """How often, in milliseconds, processing time alone may give results; None if it never does."""
    nodes = n.walk(root)
    tables = [node for node in nodes if isinstance(node, n.WindowTable) and node.kind is n.TimeKind.PROCESSING]
    joins = [node for node in nodes if isinstance(node, n.IntervalJoin) and node.clock is n.TimeKind.PROCESSING]
    periods = [*(_period(table.spec) for table in tables), *(_ANY_TIME for _ in joins)]
    return gcd(*periods) if periods else None


def _period(spec: n.WindowSpec) -> int:
    # Every bound of a window is a multiple of this, so looking that often misses none.
    parts: Sequence[int] = (spec.size, spec.slide, spec.offset)
    return gcd(*parts, _ANY_TIME) if spec.function == "SESSION" else gcd(*parts)
