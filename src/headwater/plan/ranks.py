"""ROW_NUMBER() OVER (…) and its kind in a SELECT; ORDER BY and LIMIT of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.nodes import column_reference
from headwater.plan.over_clause import OverClauses, sort_column
from headwater.plan.relation import Relation, output_name, without_alias
from headwater.sql.expressions import Scope, ScopeColumn, bound_column
from headwater.sql.types import BIGINT

if TYPE_CHECKING:
    from headwater.plan.build import Builder, Named

__all__ = ["Ranks", "build_limited"]

_FUNCTIONS: dict[type[exp.Expr], n.RankFunction] = {
    exp.RowNumber: "row_number",
    exp.Rank: "rank",
    exp.DenseRank: "dense_rank",
}
_NUMBER = BIGINT.not_null()
_HIDDEN = "__hw_order"


class Ranks(OverClauses):
    """Those of one SELECT. `relation` has the rows, with a column for every number."""

    def __init__(self, builder: Builder, relation: Relation, named_windows: Sequence[exp.Window]) -> None:
        super().__init__(builder, relation, named_windows)
        self._numbered: dict[str, ScopeColumn] = {}

    def replace(self, tree: exp.Expr) -> exp.Expr:
        """The tree with every numbering replaced by its column."""
        if isinstance(tree, exp.Window) and _is_rank(tree):
            return bound_column(self._number(tree), tree)
        if isinstance(tree, exp.Query) or not any(map(_is_rank, tree.find_all(exp.Window))):
            return tree
        copy = tree.copy()
        for child in list(copy.iter_expressions()):
            child.replace(self.replace(child))
        return copy

    def _number(self, window: exp.Window) -> ScopeColumn:
        # Equal numberings, in SELECT and in WHERE say, are one operator with one state.
        text = repr(window)
        if text not in self._numbered:
            self._numbered[text] = self._ranked(window)
        return self._numbered[text]

    def _ranked(self, window: exp.Window) -> ScopeColumn:
        function = _FUNCTIONS[type(window.this)]
        definition = self.definition(window)
        if definition.args.get("spec") is not None:
            raise self.error(window, f"{function.upper()}() takes no ROWS or RANGE.")
        order = definition.args.get("order")
        if order is None:
            raise self.error(window, f"{function.upper()}() needs an ORDER BY in its OVER clause.")
        partition = tuple(self.column(tree) for tree in definition.args.get("partition_by") or ())
        sorting = tuple(sort_column(self.column(item.this), item) for item in order.expressions)
        name = self._builder.join_settings.fresh()
        node = self.relation.node
        ranked = n.Rank(
            (*node.columns, n.Column(name, _NUMBER)),
            node,
            tuple(dict.fromkeys(partition)),
            sorting,
            function,
            name,
            by_arrival=len(sorting) == 1 and node.times.get(sorting[0].name) is n.TimeKind.PROCESSING,
            position=self._locate(window),
        )
        column = ScopeColumn("", name, name, _NUMBER)
        self.relation = Relation(ranked, Scope((*self.relation.scope.columns, column)))
        return column


def _is_rank(window: exp.Window) -> bool:
    return type(window.this) in _FUNCTIONS


def build_limited(builder: Builder, query: exp.Expr, named: Named, by: n.Key = ()) -> n.Node:
    """A query with LIMIT, and perhaps ORDER BY and OFFSET: the rows with the first numbers in that order, of all or for
    each value of its columns `by`."""
    order, limit, offset = (query.args.get(clause) for clause in ("order", "limit", "offset"))
    if limit is None:
        raise SqlError(
            f"{'ORDER BY' if order is not None else 'OFFSET'} needs a LIMIT.",
            position=builder.locate(order or offset or query),
            detail="A continuous query writes its changes as they come; there is no end at which to sort all of them.",
            hint="Add LIMIT n: the first n rows are then kept up to date. Or leave it out, and sort when you read.",
        )
    skipped = _count(builder, offset) if offset is not None else 0
    last = skipped + _count(builder, limit)
    bare = query.copy()
    for clause in ("order", "limit", "offset"):
        bare.set(clause, None)
    items = order.expressions if order is not None else []
    node, columns = _with_sort_columns(builder, bare, [item.this for item in items], named)
    sorting = tuple(sort_column(name, item) for name, item in zip(columns, items, strict=True))
    ranked: n.Node = n.Rank(node.columns, node, by, sorting, first=skipped + 1, last=last)
    kept = [c for c in node.columns if not c.name.startswith(_HIDDEN)]
    if len(kept) < len(node.columns):
        ranked = n.Project(tuple(kept), ranked, tuple(map(column_reference, kept)))
    return ranked


def _with_sort_columns(
    builder: Builder, query: exp.Expr, trees: Sequence[exp.Expr], named: Named
) -> tuple[n.Node, list[str]]:
    """The query, and which of its columns each sort key is: by its name or its number, or a column that is added."""
    added: list[exp.Expr] = []
    names: list[str | int] = []
    visible = _visible(builder, query, named)
    for tree in trees:
        # ORDER BY 2: the number of a column of the result.
        if isinstance(tree, exp.Literal) and not tree.is_string:
            names.append(int(tree.name) - 1)
        elif isinstance(tree, exp.Column) and not tree.table and (visible is None or tree.name in visible):
            names.append(tree.name)
        elif (same := _same_item(query, tree)) is not None:
            names.append(same)
        # A further column would change which rows are equal, or has no SELECT that it could be added to.
        elif visible is None or query.args.get("distinct") is not None:
            raise SqlError("ORDER BY must name a column of the result here.", position=builder.locate(tree))
        else:
            name = f"{_HIDDEN}{len(added)}"
            added.append(exp.alias_(tree.copy(), name, quoted=True))
            names.append(name)
    if added:
        query.set("expressions", [*query.expressions, *added])
    node = builder.query(query, named)
    return node, [_name_of(builder, node, name, tree) for name, tree in zip(names, trees, strict=True)]


def _name_of(builder: Builder, node: n.Node, name: str | int, tree: exp.Expr) -> str:
    if isinstance(name, str):
        if name not in node.names:
            known = ", ".join(c for c in node.names if not c.startswith(_HIDDEN))
            raise SqlError(
                f"There is no column '{name}' to order by.", position=builder.locate(tree), detail=f"Columns: {known}."
            )
        return name
    visible = [c for c in node.names if not c.startswith(_HIDDEN)]
    if not 0 <= name < len(visible):
        raise SqlError(f"ORDER BY {name + 1}: there are {len(visible)} columns.", position=builder.locate(tree))
    return visible[name]


def _same_item(query: exp.Expr, tree: exp.Expr) -> int | None:
    """The number of the column that is this very expression."""
    items = query.expressions if isinstance(query, exp.Select) else []
    if any(item.is_star for item in items):
        return None
    return next((index for index, item in enumerate(items) if repr(without_alias(item)) == repr(tree)), None)


def _visible(builder: Builder, query: exp.Expr, named: Named) -> set[str] | None:
    """The names of a SELECT's columns; None of any other query, which has no columns but those of its result."""
    if not isinstance(query, exp.Select):
        return None
    if any(item.is_star for item in query.expressions):
        return set(builder.query(query.copy(), named).names)
    return {output_name(item, index) for index, item in enumerate(query.expressions)}


def _count(builder: Builder, clause: exp.Expr) -> int:
    tree = clause.expression if clause.expression is not None else clause.args.get("count")
    if not isinstance(tree, exp.Literal) or tree.is_string or not tree.name.isdigit():
        raise SqlError("LIMIT and OFFSET take a whole number.", position=builder.locate(clause))
    return int(tree.name)
