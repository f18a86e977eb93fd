"""What stands in FROM: a node, and the names under which a query sees its columns."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.nodes import column_reference
from headwater.plan.rank_limits import with_rank_limits
from headwater.sql.expressions import Scope, ScopeColumn, bound_column, compile_expression, compile_predicate, rebound
from headwater.sql.expressions.compiler import Locate
from headwater.sql.typed import Expr

__all__ = [
    "Locate",
    "Relation",
    "expand_stars",
    "free_name",
    "output_name",
    "relation_of",
    "with_expressions",
    "without_alias",
]


@dataclass(frozen=True)
class Relation:
    """A node and the names under which a query sees its columns. With `renamed`, the node is a projection that does
    nothing but give other names to them."""

    node: n.Node
    scope: Scope
    renamed: bool = False

    def where(self, condition: exp.Expr, locate: Locate) -> Relation:
        """A filter stands below new names: nearer to the source."""
        node, left = with_rank_limits(self.node, condition, lambda tree: compile_expression(tree, self.scope, locate))
        if left is None:
            return replace(self, node=node)
        # A part of the condition has become a limit of a rank; what is left may be one, too.
        if node is not self.node:
            return replace(self, node=node).where(left, locate)
        if not self.renamed or not isinstance(self.node, n.Project):
            predicate = compile_predicate(condition, self.scope, locate)
            return Relation(n.Filter(self.node.columns, self.node, predicate), self.scope)
        # Below the new names, where the filter stands nearer to its scan and can be pushed into it.
        before = {c.name: str(e.column) for c, e in self.node.items}
        scope = Scope(tuple(replace(c, column=before[c.column]) for c in self.scope.columns))
        below = self.node.input
        predicate = compile_predicate(rebound(condition, before), scope, locate)
        return replace(self, node=self.node.with_inputs([n.Filter(below.columns, below, predicate)]))


def relation_of(node: n.Node, alias: str, taken: set[str], path: tuple[str, ...] = ()) -> Relation:
    """The columns of a table or query under its alias, `path` in front of that. A column whose name is in `taken` gets
    another one in the plan; all its names are taken then."""
    names = {}
    for column in node.columns:
        names[column.name] = free_name(column.name, taken)
        taken.add(names[column.name])
    columns = tuple(replace(c, name=names[c.name]) for c in node.columns)
    scope = Scope(tuple(ScopeColumn(alias, c.name, names[c.name], c.type, path=path) for c in node.columns))
    if columns == node.columns:
        return Relation(node, scope)
    return Relation(n.Project(columns, node, tuple(column_reference(c) for c in node.columns)), scope, renamed=True)


def free_name(name: str, taken: set[str]) -> str:
    candidate, number = name, 0
    while candidate in taken:
        candidate, number = f"{name}{number}", number + 1
    return candidate


def with_expressions(node: n.Node, added: dict[str, Expr]) -> n.Node:
    """The node with further columns that are computed from its own."""
    if not added:
        return node
    columns = (*node.columns, *(n.Column(name, e.type) for name, e in added.items()))
    return n.Project(columns, node, (*map(column_reference, node.columns), *added.values()))


def expand_stars(items: list[exp.Expr], scope: Scope, locate: Locate) -> list[exp.Expr]:
    expanded: list[exp.Expr] = []
    for item in items:
        if isinstance(item, exp.Star):
            columns = [c for c in scope.columns if not c.merged]
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            columns = [c for c in scope.columns if c.qualifier == item.table]
            if not columns:
                raise SqlError(f"There is no table '{item.table}' in FROM.", position=locate(item))
        else:
            expanded.append(item)
            continue
        expanded += [bound_column(c, item) for c in columns]
    return expanded


def output_name(item: exp.Expr, index: int) -> str:
    """The alias, the column's own name, or the name Flink gives: EXPR$0."""
    if isinstance(item, exp.Alias):
        return str(item.alias)
    if isinstance(item, exp.Column):
        return str(item.name)
    if isinstance(item, exp.Dot):
        return str(item.expression.name)
    return f"EXPR${index}"


def without_alias(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item
