"""A SELECT on its own: its plan, and what is left for the driver to do with the final rows.

ORDER BY, LIMIT and OFFSET of a query whose tables all end are applied by the driver, which has the whole result. A
query without an end that only inserts rows ends after LIMIT rows; any other ORDER BY or LIMIT is left in the query,
where an operator keeps the first rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.catalog.connector import Connector
from headwater.catalog.tables import Table
from headwater.options.resolved import ResolvedOptions
from headwater.plan import nodes as n
from headwater.plan.build import Builder, PlanRules
from headwater.plan.display_names import located
from headwater.plan.planner import finished
from headwater.sql.statements import PhysicalColumn, Query

__all__ = ["Ordering", "PlannedQuery", "is_bounded", "plan_query"]

_HIDDEN = "__hw_order"
_CLAUSES = ("order", "limit", "offset")


@dataclass(frozen=True)
class Ordering:
    column: str
    descending: bool
    nulls_first: bool


@dataclass(frozen=True)
class PlannedQuery:
    """`columns` are those that are shown: the plan may have more behind them, to order rows by. `key` identifies a row
    of an updating result; None if nothing smaller than the whole row is known to."""

    plan: n.Write
    columns: tuple[n.Column, ...]
    bounded: bool
    updating: bool
    key: n.Key | None = None
    order: tuple[Ordering, ...] = ()
    limit: int | None = None
    offset: int = 0

    @property
    def any_rows(self) -> bool:
        """Whether OFFSET and LIMIT take rows as they come: no order is wanted, and none is ever retracted."""
        return not self.updating and not self.order

    @property
    def cut_at_end(self) -> bool:
        """Whether ORDER BY, OFFSET and LIMIT are applied to the table that the changes make up, not to changes."""
        return not self.any_rows and bool(self.order or self.limit is not None or self.offset)


def plan_query(statement: Query, catalog: Catalog, sink: Connector, rules: PlanRules) -> PlannedQuery:
    """`sink` takes every change."""
    builder = Builder(catalog, statement.position_of, rules)
    with located(statement, builder.renamed):
        return _planned(statement, builder, sink)


def is_bounded(plan: n.Node) -> bool:
    return all(node.table.connector.is_bounded(node.table) for node in n.walk(plan) if isinstance(node, n.Scan))


def _planned(statement: Query, builder: Builder, sink: Connector) -> PlannedQuery:
    written = statement.query
    if not any(written.args.get(clause) for clause in _CLAUSES):
        return _with_traits(builder.query(written, {}), sink)
    bare = written.copy()
    order, limit, offset = (bare.args.pop(clause, None) for clause in _CLAUSES)
    wanted = [_sort_key(ordered, bare, statement) for ordered in (order.expressions if order is not None else ())]
    node = builder.query(bare, {})
    shown = len(node.columns) - sum(isinstance(key, str) and key.startswith(_HIDDEN) for key in wanted)
    planned = _with_traits(node, sink, shown)
    # Over an endless input the order is never final: an operator keeps the first rows up to date. Over a bounded one it
    # is cheaper to sort once, at the end.
    if not planned.bounded and (wanted or planned.updating):
        # An operator keeps the first rows; the driver only puts them in order.
        limited = builder.query(written, {})
        return _with_traits(limited, sink, order=_visible_order(order, limited, statement))
    pairs = zip(wanted, order.expressions if order is not None else (), strict=True)
    ordering = tuple(_ordering(key, ordered, node, statement) for key, ordered in pairs)
    count = _number(limit) if limit is not None else None
    first = _number(offset) if offset is not None else 0
    return _with_traits(node, sink, shown, ordering, count, first)


def _with_traits(
    node: n.Node,
    sink: Connector,
    shown: int | None = None,
    order: Sequence[Ordering] = (),
    limit: int | None = None,
    offset: int = 0,
) -> PlannedQuery:
    columns = tuple(PhysicalColumn(c.name, c.type) for c in node.columns)
    table = Table("query", columns, sink, ResolvedOptions({}, {}))
    plan = finished(n.Write(node.columns, node, table))
    updating = plan.input.mode is not n.Mode.APPEND
    key = plan.input.key if updating else None
    return PlannedQuery(plan, node.columns[:shown], is_bounded(plan), updating, key, tuple(order), limit, offset)


def _sort_key(ordered: exp.Ordered, query: exp.Expr, statement: Query) -> str | int:
    """The name of an output column or its place; what is neither becomes a column of the query that is not shown."""
    value = ordered.this
    if isinstance(value, exp.Literal) and not value.is_string:
        return int(value.this) - 1
    plain = isinstance(value, exp.Column) and not value.table
    if plain and any(isinstance(item, exp.Alias) and item.alias == value.name for item in query.expressions):
        return str(value.name)
    if not isinstance(query, exp.Select) or query.args.get("distinct") is not None:
        if plain:
            return str(value.name)
        raise statement.error(
            "ORDER BY takes columns of the result here.", at=value, hint="Name a column of the SELECT list."
        )
    # ORDER BY may name what is not selected; the column travels along to the driver and is cut off there.
    name = f"{_HIDDEN}{len(query.expressions)}"
    query.append("expressions", exp.alias_(value.copy(), name, quoted=True))
    return name


def _visible_order(order: exp.Order | None, node: n.Node, statement: Query) -> tuple[Ordering, ...]:
    """By the columns of the result; () if it is ordered by anything else."""
    parts = order.expressions if order is not None else []
    keys = [_sort_key(part, exp.Values(), statement) if _is_plain(part.this) else None for part in parts]
    known = [key for key in keys if isinstance(key, int) or key in node.names]
    if len(known) < len(parts):
        return ()
    return tuple(
        _ordering(key, part, node, statement) for key, part in zip(keys, parts, strict=True) if key is not None
    )


def _is_plain(value: exp.Expr) -> bool:
    return (isinstance(value, exp.Literal) and not value.is_string) or (
        isinstance(value, exp.Column) and not value.table
    )


def _ordering(key: str | int, ordered: exp.Ordered, node: n.Node, statement: Query) -> Ordering:
    names = node.names
    if isinstance(key, int) and not 0 <= key < len(names):
        raise statement.error(f"The result has no column {key + 1} to order by.", at=ordered.this)
    name = names[key] if isinstance(key, int) else key
    found = next((c for c in node.columns if c.name == name), None)
    if found is None:
        raise statement.error(f"The result has no column '{name}' to order by.", at=ordered.this)
    if found.type.is_nested:
        raise statement.error(f"Values of type {found.type} have no order.", at=ordered.this)
    return Ordering(name, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first")))


def _number(clause: exp.Expr) -> int:
    return int(clause.expression.this)
