"""LATERAL (query) in FROM: a query that names columns of what stands before it, as a join.

    SELECT … FROM b WHERE b.x = a.x [AND b.y < a.y]            join with b, on these conditions
    SELECT … FROM b WHERE b.x = a.x ORDER BY … LIMIT n         join with the first n rows of b for each x
    SELECT f(…) FROM b WHERE b.x = a.x GROUP BY g              join with b, grouped by x as well
    SELECT SUM(…), COUNT(*) FROM b WHERE b.x = a.x             left join with b, grouped by x

The query is planned without the conditions that name columns outside of it, and with what these compare as further
columns. It is then partitioned, or grouped, by them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan.correlation import compared_with
from headwater.plan.from_clause import resolves
from headwater.plan.grouping import needs_grouping
from headwater.plan.grouping_sets import has_grouping_sets
from headwater.plan.predicates import conjuncts
from headwater.plan.query_trees import counts_rows, is_plain, query_of, where_of
from headwater.plan.ranks import build_limited
from headwater.plan.relation import Relation, relation_of, without_alias
from headwater.sql.expressions import Scope, bind, is_aggregate, name_nodes

if TYPE_CHECKING:
    from headwater.plan.build import Builder, Named

__all__ = ["LateralRows", "lateral_rows"]


@dataclass(frozen=True)
class LateralRows:
    """The rows of the query, and the conditions on pairs with rows of the left, bound to both. With `single` it has one
    row for each row of the left, also if nothing is found; `counts` are its columns that are 0 then."""

    relation: Relation
    conditions: list[exp.Expr]
    single: bool = False
    counts: frozenset[str] = frozenset()


def lateral_rows(builder: Builder, named: Named, tree: exp.Lateral, left: Scope, taken: set[str]) -> LateralRows:
    return _Lateral(builder, named, tree, left).rows(taken)


class _Lateral:
    def __init__(self, builder: Builder, named: Named, tree: exp.Lateral, left: Scope) -> None:
        self._builder, self._named = builder, named
        self._tree, self._query = tree, query_of(tree.this)
        self._left = left
        self._compared: dict[str, exp.Expr] = {}  # further columns of the query: fresh names and what they are

    def rows(self, taken: set[str]) -> LateralRows:
        query = self._query
        if not isinstance(query, exp.Select) or query.args.get("from_") is None or query.args.get("with_") is not None:
            raise self._refused("The query of LATERAL is a SELECT with FROM, without WITH, UNION and the like.", query)
        inner, outside = self._builder.source(query, self._named, set())
        # Aggregates without GROUP BY give one row even of no rows: that takes a left join.
        single = needs_grouping(query) and query.args.get("group") is None and bool(outside)
        if single:
            self._check_single(query)
        plain = is_plain(query)
        conditions = [self._pair(tree, inner.scope, plain=plain) for tree in outside]
        relation = self._planned(query, outside, taken)
        columns = relation.scope.columns
        shown, compared = columns[: len(columns) - len(self._compared)], columns[len(columns) - len(self._compared) :]
        scope = Scope((*self._left.columns, *compared))
        hidden = (replace(c, merged=True) for c in compared)  # nobody can name them, nor does a star show them
        counts = frozenset(c.column for c, item in zip(shown, query.expressions, strict=False) if _counts(item))
        return LateralRows(
            replace(relation, scope=Scope((*shown, *hidden))),
            [bind(tree, scope, self._builder.locate) for tree in conditions],
            single,
            counts if single else frozenset(),
        )

    def _pair(self, tree: exp.Expr, inner: Scope, *, plain: bool) -> exp.Expr:
        """The condition over further columns of the query."""
        pair = compared_with(tree, inner, self._left, self._builder.locate)
        if pair is not None:
            return exp.EQ(this=self._further(pair[0]), expression=pair[1])
        if not plain:
            fact = "A LATERAL query with aggregates, DISTINCT or LIMIT can name columns of what stands before it in "
            raise self._refused(f"{fact}equalities only.", tree)
        copy = tree.copy()
        for node in list(name_nodes(copy)):
            if resolves(node, inner):
                node.replace(self._further(node.copy()))
        return copy

    def _further(self, own: exp.Expr) -> exp.Expr:
        name = next((name for name, tree in self._compared.items() if tree == own), None)
        if name is None:
            name = self._builder.join_settings.fresh()
            self._compared[name] = own
        return exp.column(exp.to_identifier(name, quoted=True))

    def _planned(self, query: exp.Select, outside: list[exp.Expr], taken: set[str]) -> Relation:
        select = query.copy()
        kept = [tree for tree in conjuncts(where_of(query)) if not any(tree is other for other in outside)]
        select.set("where", exp.Where(this=exp.and_(*(tree.copy() for tree in kept))) if kept else None)
        items = [exp.alias_(tree.copy(), name, quoted=True) for name, tree in self._compared.items()]
        select.set("expressions", [*select.expressions, *items])
        # The join compares these columns, so they have to be among the groups.
        if needs_grouping(query) and self._compared:
            groups = query.args["group"].expressions if query.args.get("group") is not None else []
            if has_grouping_sets(groups):
                raise self._refused("A LATERAL query cannot have GROUPING SETS.", groups[0])
            select.set("group", exp.Group(expressions=[tree.copy() for tree in (*groups, *self._compared.values())]))
        if select.args.get("limit") is None and select.args.get("offset") is None:
            # An order without a limit says nothing about rows that are joined.
            select.set("order", None)
            node = self._builder.query(select, self._named)
        else:
            node = build_limited(self._builder, select, self._named, tuple(self._compared))
        return self._named_columns(relation_of(node, self._tree.alias, taken))

    def _named_columns(self, relation: Relation) -> Relation:
        """Under the names that the alias gives: LATERAL (…) AS t (a, b)."""
        alias = self._tree.args.get("alias")
        names = [c.name for c in (alias.args.get("columns") or [])] if alias is not None else []
        if not names:
            return relation
        columns = relation.scope.columns
        count = len(columns) - len(self._compared)
        if len(names) != count:
            raise self._refused(f"{len(names)} column names are given for {count} columns.", self._tree)
        renamed = tuple(replace(c, name=name) for c, name in zip(columns, names, strict=False))
        return replace(relation, scope=Scope((*renamed, *columns[count:])))

    def _check_single(self, query: exp.Select) -> None:
        """Aggregates of no rows have a value, too; that of an expression over them is not known to a join."""
        items = [without_alias(item) for item in query.expressions]
        odd = next((item for item in items if not is_aggregate(item)), None)
        if odd is None and any(query.args.get(clause) for clause in ("having", "limit", "offset")):
            odd = query
        if odd is not None:
            fact = "A LATERAL query of aggregates without GROUP BY selects aggregates only, without HAVING and LIMIT."
            raise self._refused(fact, odd)

    def _refused(self, fact: str, at: exp.Expr) -> SqlError:
        return SqlError(fact, position=self._builder.locate(at), hint="Write it as a join, or as a Top-N query.")


def _counts(item: exp.Expr) -> bool:
    return counts_rows(without_alias(item))
