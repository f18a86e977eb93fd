"""SELECT with aggregates: what is grouped, what is aggregated, and the expressions above both.

input → Project (group expressions that are not plain columns) → Aggregate → Filter (HAVING) → Project (SELECT)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.errors import Position, SqlError
from headwater.plan import nodes as n
from headwater.plan.expression import AggregateCall, Expr
from headwater.plan.names import unique_names
from headwater.sql.expressions import (
    Scope,
    ScopeColumn,
    compile_aggregate,
    compile_expression,
    compile_predicate,
    is_aggregate,
)

if TYPE_CHECKING:
    from headwater.plan.build import Relation

__all__ = ["build_grouped", "needs_grouping"]

Locate = Callable[[exp.Expr], Position | None]


def needs_grouping(select: exp.Select) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(_aggregates(item) for item in select.expressions)


def _aggregates(node: exp.Expr) -> list[exp.Expr]:
    """Aggregate calls in the tree, outermost ones only; a FILTER belongs to its call."""
    if is_aggregate(node):
        return [node]
    return [call for child in node.iter_expressions() for call in _aggregates(child)]


def build_grouped(select: exp.Select, relation: Relation, locate: Locate) -> n.Node:
    from headwater.plan.build import column_reference, expand_stars, output_name

    grouping = _Grouping(relation, locate)
    group = select.args.get("group")
    for item in group.expressions if group is not None else ():
        grouping.add_group(item)
    items = expand_stars(select.expressions, relation.scope, locate)
    having = select.args.get("having")
    for tree in (*items, *([having.this] if having is not None else [])):
        for call in _aggregates(tree):
            grouping.add_call(call)
    node: n.Node = grouping.node(column_reference)
    scope = grouping.scope()
    if having is not None:
        predicate = compile_predicate(grouping.rewrite(having.this), scope, locate)
        node = n.Filter(node.columns, node, predicate)
    names = unique_names([output_name(item, index) for index, item in enumerate(items)])
    bare = [item.this if isinstance(item, exp.Alias) else item for item in items]
    compiled = [compile_expression(grouping.rewrite(item), scope, locate) for item in bare]
    columns = tuple(n.Column(name, e.type) for name, e in zip(names, compiled, strict=True))
    return n.Project(columns, node, tuple(compiled))


@dataclass
class _Grouping:
    """`groups` and `calls` map a tree (by its text) to the column that stands for it above the Aggregate."""

    relation: Relation
    locate: Locate
    groups: dict[str, tuple[str, Expr]] = field(default_factory=dict)
    calls: dict[str, tuple[str, AggregateCall]] = field(default_factory=dict)

    def add_group(self, item: exp.Expr) -> None:
        if isinstance(item, exp.GroupingSets | exp.Rollup | exp.Cube) or (
            isinstance(item, exp.Tuple) and not item.expressions
        ):
            raise SqlError("GROUPING SETS, ROLLUP and CUBE are not supported.", position=self.locate(item))
        compiled = compile_expression(item, self.relation.scope, self.locate)
        if compiled.type.is_nested:
            raise SqlError(
                f"Rows cannot be grouped by a value of type {compiled.type}.",
                position=self.locate(item),
                hint="Group by its parts.",
            )
        if not compiled.deterministic:
            raise SqlError("Rows cannot be grouped by a value that changes by itself.", position=self.locate(item))
        name = compiled.column or f"__g{len(self.groups)}"
        self.groups.setdefault(_key(item), (name, compiled))

    def add_call(self, node: exp.Expr) -> None:
        if _key(node) not in self.calls:
            call = compile_aggregate(node, self.relation.scope, self.locate)
            self.calls[_key(node)] = (f"__agg{len(self.calls)}", call)

    def node(self, reference: Callable[[n.Column], Expr]) -> n.Aggregate:
        below = self.relation.node
        computed = {name: e for name, e in self.groups.values() if e.column is None}
        if computed:
            columns = (*below.columns, *(n.Column(name, e.type) for name, e in computed.items()))
            below = n.Project(columns, below, (*map(reference, below.columns), *computed.values()))
        groups = {name: n.Column(name, e.type) for name, e in self.groups.values()}
        called = tuple(n.Column(name, call.type) for name, call in self.calls.values())
        calls = tuple(call for _, call in self.calls.values())
        return n.Aggregate((*groups.values(), *called), below, tuple(groups), calls)

    def scope(self) -> Scope:
        """The groups under the names they had (if they are plain columns), and an internal name for everything."""
        columns = []
        for name, compiled in self.groups.values():
            columns += [
                ScopeColumn(c.qualifier, c.name, name, compiled.type)
                for c in self.relation.scope.columns
                if compiled.column is not None and c.column == compiled.column
            ]
            if compiled.column is None:
                columns.append(ScopeColumn("", name, name, compiled.type))
        columns += [ScopeColumn("", name, name, call.type) for name, call in self.calls.values()]
        unique = {(c.qualifier, c.name): c for c in columns}
        return Scope(tuple(unique.values()))

    def rewrite(self, tree: exp.Expr) -> exp.Expr:
        """The tree with groups and calls replaced by their columns; any other column is an error."""
        found = self.calls.get(_key(tree)) if is_aggregate(tree) else None
        group = self.groups.get(_key(tree))
        if found is not None:
            return _column(found[0], tree)
        if group is not None:
            return tree if group[1].column is not None else _column(group[0], tree)
        if isinstance(tree, exp.Column):
            self._refuse_ungrouped(tree)
            return tree
        copy = tree.copy()
        for key, value in tree.args.items():
            if isinstance(value, exp.Expr):
                copy.set(key, self.rewrite(value))
            elif isinstance(value, list):
                copy.set(key, [self.rewrite(v) if isinstance(v, exp.Expr) else v for v in value])
        return copy

    def _refuse_ungrouped(self, column: exp.Expr) -> None:
        compiled = compile_expression(column, self.relation.scope, self.locate)
        if not compiled.refs <= {e.column for _, e in self.groups.values()}:
            raise SqlError(
                f"Column '{column.name}' is neither in GROUP BY nor inside an aggregate.",
                position=self.locate(column),
                hint=f"Add it to GROUP BY, or write for example MAX({column.name}).",
            )


def _key(tree: exp.Expr) -> str:
    return repr(tree)


def _column(name: str, at: exp.Expr) -> exp.Expr:
    column = exp.column(exp.to_identifier(name, quoted=True))
    column.meta.update(at.meta)
    return column
