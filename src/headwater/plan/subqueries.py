"""Queries inside of conditions and expressions, as joins.

    x IN (query), EXISTS (query)      semi join
    x NOT IN (query), NOT EXISTS      anti join; NOT IN with its rule that NULL is unknown
    both in any other expression      mark join: every row, with a BOOLEAN that says whether it has a match
    x < (query)                       inner join with the one row of the query
    (query) in any other expression   left join with the one row of the query

A query may name columns of the one around it in conditions of its WHERE: they become conditions of the join. A query of
one aggregate is then grouped by what it compares with those columns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeGuard

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.correlation import compared_with
from headwater.plan.grouping import aggregate_calls, needs_grouping
from headwater.plan.join_conditions import JoinBuilder
from headwater.plan.predicates import COMPARISONS, conjuncts, has_query, unwrapped
from headwater.plan.query_trees import (
    SHAPES,
    Asked,
    asked_of,
    counts_rows,
    is_null_with,
    is_plain,
    is_strict,
    known_or_null,
    query_of,
    rows_asked_for,
    scalar_queries,
    where_of,
    with_replaced,
)
from headwater.plan.relation import Relation, relation_of, without_alias
from headwater.sql.expressions import Scope, bind, bound_column, compile_expression, name_nodes

if TYPE_CHECKING:
    from headwater.plan.build import Builder, Named

__all__ = ["Subqueries"]

_Kind = Literal["semi", "anti"]


@dataclass(frozen=True)
class _Inner:
    """A query inside another: its rows, and its conditions on pairs with rows around it, bound to both."""

    relation: Relation
    conditions: list[exp.Expr]


class Subqueries:
    """Those of one SELECT. `relation` has the rows that they are joined with."""

    def __init__(self, builder: Builder, named: Named, relation: Relation) -> None:
        self._builder = builder
        self._named = named
        self._locate = builder.locate
        self.relation = relation

    def filter(self, conditions: Sequence[exp.Expr], rewrite: Callable[[exp.Expr], exp.Expr] = lambda t: t) -> Relation:
        """The rows for which all these conditions are TRUE, each as `rewrite` gives it."""
        for condition in conditions:
            if not has_query(condition):
                self.relation = self.relation.where(rewrite(condition), self._locate)
                continue
            for part in conjuncts(condition):
                self._keep(rewrite(part))
        return self.relation

    def _keep(self, condition: exp.Expr) -> None:
        tree, negated = unwrapped(condition), False
        # NOT in front of IN and EXISTS is taken off: it makes an anti join of a semi join. Left above, it would have to
        # be computed from a mark.
        while isinstance(tree, exp.Not):
            tree, negated = unwrapped(tree.this), not negated
        if isinstance(tree, exp.Exists):
            self._exists(tree, "anti" if negated else "semi")
        elif isinstance(tree, exp.In) and tree.args.get("query") is not None:
            self._in(tree, "anti" if negated else "semi")
        elif has_query(condition):
            self._compare(unwrapped(condition))
        else:
            self.relation = self.relation.where(condition, self._locate)

    def replace(self, tree: exp.Expr, asked: Asked = Asked.VALUE) -> exp.Expr:
        """The tree with each query replaced by the column that its value is joined as."""
        if isinstance(tree, exp.Subquery):
            return self._scalar(tree)
        if isinstance(tree, exp.Exists):
            inner = self._rows(rows_asked_for(query_of(tree), any_row=True))
            self._join(inner.relation, "mark", inner.conditions, tree)
            return self._mark(tree)
        if isinstance(tree, exp.In) and tree.args.get("query") is not None:
            return self._in_value(tree, asked)
        if not has_query(tree):
            return tree
        copy = tree.copy()
        for key, value in tree.args.items():
            part = asked_of(tree, key, asked)
            if isinstance(value, exp.Expr):
                copy.set(key, self.replace(value, part))
            elif isinstance(value, list):
                copy.set(key, [self.replace(v, part) if isinstance(v, exp.Expr) else v for v in value])
        return copy

    # IN and EXISTS

    def _exists(self, tree: exp.Exists, kind: _Kind) -> None:
        inner = self._rows(rows_asked_for(query_of(tree), any_row=True))
        self._join(inner.relation, kind, inner.conditions, tree)

    def _in(self, tree: exp.In, kind: _Kind) -> None:
        inner, compared, unknown = self._compared(tree)
        # NOT IN is not TRUE as soon as one comparison is unknown. Where no NULL is possible a plain anti join says
        # the same and needs no second look at the rows.
        if kind == "anti" and unknown:
            self.relation = self._joining(inner.relation, "anti").unless_false(inner.conditions, compared)
        else:
            self._join(inner.relation, kind, [*compared, *inner.conditions], tree)

    def _in_value(self, tree: exp.In, asked: Asked) -> exp.Expr:
        """IN as a value: TRUE with a pair that is equal, else unknown with one that may be, else FALSE. One mark is
        enough where nobody asks for the difference between unknown and FALSE, or unknown and TRUE."""
        inner, compared, unknown = self._compared(tree)
        unknown = unknown and asked is not Asked.TRUE
        # Two marks at most: "is equal" and "may be equal". Their difference is what SQL calls unknown.
        if not unknown or asked is Asked.VALUE:
            self._join(inner.relation, "mark", [*compared, *inner.conditions], tree)
            equal = self._mark(tree)
            if not unknown:
                return equal
        self.relation = self._joining(inner.relation, "mark").unless_false(inner.conditions, compared)
        possible = self._mark(tree)
        return known_or_null(equal, possible) if asked is Asked.VALUE else possible

    def _mark(self, at: exp.Expr) -> exp.Expr:
        """The column of the mark join that was made last."""
        return bound_column(self.relation.scope.columns[-1], at)

    def _compared(self, tree: exp.In) -> tuple[_Inner, list[exp.Expr], bool]:
        """The rows of the query, what IN compares with them, and whether a comparison may be unknown."""
        query = rows_asked_for(query_of(tree.args["query"]), any_row=False)
        inner, values = self._rows_with_values(query, tree)
        this = unwrapped(tree.this)
        asked = list(this.expressions) if isinstance(this, exp.Tuple | exp.Struct) else [this]
        if len(asked) != len(values):
            raise SqlError(
                f"IN compares {len(asked)} values with {len(values)} columns of the query.", position=self._locate(tree)
            )
        asked = [bind(self.replace(value), self.relation.scope, self._locate) for value in asked]
        compared: list[exp.Expr] = [_at(exp.EQ(this=a, expression=b), a) for a, b in zip(asked, values, strict=True)]
        return inner, compared, self._may_be_unknown(asked, values, inner.relation)

    def _may_be_unknown(self, asked: Sequence[exp.Expr], values: Sequence[exp.Expr], inner: Relation) -> bool:
        pairs = [*((tree, self.relation.scope) for tree in asked), *((tree, inner.scope) for tree in values)]
        return any(compile_expression(tree, scope, self._locate).type.nullable for tree, scope in pairs)

    def _rows_with_values(self, query: exp.Expr, at: exp.Expr) -> tuple[_Inner, list[exp.Expr]]:
        """The rows of the query and, bound to them, what it selects."""
        if not is_plain(query):
            relation = relation_of(self._builder.query(query, self._named), "", set(self.relation.node.names))
            return _Inner(relation, []), [bound_column(c, at) for c in relation.scope.columns]
        inner = self._rows(query)
        items = self._builder.items(query, inner.relation.scope)
        return inner, [bind(without_alias(item), inner.relation.scope, self._locate) for item in items]

    def _rows(self, query: exp.Expr) -> _Inner:
        """What the query reads, with its conditions that name columns of the query around it."""
        taken = set(self.relation.node.names)
        if not is_plain(query):
            return _Inner(relation_of(self._builder.query(query, self._named), "", taken), [])
        relation, outside = self._builder.source(query, self._named, taken)
        scope = Scope(relation.scope.columns, self.relation.scope)
        return _Inner(relation, [bind(tree, scope, self._locate) for tree in outside])

    # queries that give one value

    def _compare(self, condition: exp.Expr) -> None:
        """A condition with queries that give a value. One that is not TRUE without the value needs no outer join."""
        queries = list(scalar_queries(condition))
        if len(queries) == 1 and isinstance(condition, tuple(COMPARISONS)) and is_strict(condition, queries[0]):
            self._scalar(queries[0], [condition])
            return
        replaced = self.replace(condition, Asked.TRUE)
        self.relation = self.relation.where(replaced, self._locate)

    def _scalar(self, subquery: exp.Subquery, conditions: Sequence[exp.Expr] = ()) -> exp.Expr:
        """Join the value of the query, and answer with its column. With `conditions`, which hold the query, only rows
        are left for which they are TRUE."""
        value = self._value(subquery)
        # A comparison with NULL is not TRUE, so rows without a value can be dropped by an inner join; but aggregates of
        # no rows may have one: COUNT is 0.
        if conditions and value.is_row:
            scope = Scope((*self.relation.scope.columns, *value.relation.scope.columns))
            asked = [bind(with_replaced(tree, subquery, value.answer), scope, self._locate) for tree in conditions]
            self._join(value.relation, "inner", [*value.pairs, *asked], subquery)
            return value.answer
        self._join(value.relation, "left", value.pairs, subquery)
        for tree in conditions:
            self.relation = self.relation.where(with_replaced(tree, subquery, value.answer), self._locate)
        return value.answer

    def _value(self, subquery: exp.Subquery) -> _Value:
        query = query_of(subquery)
        taken = set(self.relation.node.names)
        # Of one row neither an order nor a limit says anything.
        total = rows_asked_for(query, any_row=True)
        if _is_total(total):
            query = total
        # Planned once for its conditions alone: whether it names columns from outside shows only when names are
        # resolved.
        if isinstance(query, exp.Select) and query.args.get("from_") is not None and not query.args.get("with_"):
            inner, outside = self._builder.source(query, self._named, set(taken))
            if outside or _is_total(query):
                return self._looked_up(query, inner.scope, outside, taken)
        if isinstance(query, exp.Select) and query.args.get("with_") and needs_grouping(query):
            # Joined as a row that is not there, COUNT would be NULL and not 0.
            fact = "A query of aggregates that gives a value has no WITH of its own."
            raise self._error(subquery, fact, "Put WITH in front of the whole query.")
        node = self._builder.query(query, self._named)
        if len(node.columns) != 1:
            raise self._error(subquery, f"A scalar subquery has one column: this one has {len(node.columns)}.")
        # Proved by keys, never checked while the job runs: a second row would come after results have been written.
        if () not in node.keys:
            raise self._error(subquery, "A scalar subquery must be known to return at most one row.", _ONE_ROW)
        column = n.Column(self._builder.join_settings.fresh(), node.columns[0].type)
        if isinstance(node, n.Project):
            node = n.Project((column,), node.input, node.expressions)
        else:
            node = n.Project((column,), node, (n.column_reference(node.columns[0]),))
        relation = relation_of(node, "", taken)
        return _Value(_hidden(relation), [], bound_column(relation.scope.columns[0], subquery), is_row=True)

    def _looked_up(self, query: exp.Select, inner: Scope, outside: list[exp.Expr], taken: set[str]) -> _Value:
        """One row for each value that it compares with a column of the query around it. If aggregates have a value
        where there is no row, that row has the aggregates, and what is computed of them is computed above the join."""
        pairs = [self._equality(tree, inner) for tree in outside]
        if len(query.expressions) != 1 or any(query.args.get(shape) for shape in SHAPES):
            fact = "A query that names columns of the query around it has one column, FROM and WHERE."
            raise self._error(query, fact, _CORRELATED)
        item, grouped = without_alias(query.expressions[0]), needs_grouping(query)
        calls = list(dict.fromkeys(aggregate_calls(item))) if grouped else []
        # NULL where there is no row, because of an aggregate that is.
        is_row = not grouped or any(not counts_rows(call) and is_null_with(item, call) for call in calls)
        if not is_row and not _is_over_aggregates(item):
            fact = "A query of aggregates that gives a value selects aggregates, and expressions over them alone."
            raise self._error(item, fact, _CORRELATED)
        values = [item] if is_row else calls
        fresh = self._builder.join_settings.fresh
        names = [fresh() for _ in range(len(pairs) + len(values))]
        compared = [own for own, _ in pairs]
        select = query.copy()
        kept = [tree for tree in conjuncts(where_of(query)) if tree not in outside]
        # Decorrelated: the columns that are compared become groups, so the value is computed once for each of them, and
        # a join looks it up. A nested loop has no place in a stream.
        select.set("where", exp.Where(this=exp.and_(*kept)) if kept else None)
        items = [tree.copy() for tree in (*values, *compared)]
        select.set("expressions", [exp.alias_(tree, name) for tree, name in zip(items, names, strict=True)])
        if grouped and compared:
            select.set("group", exp.Group(expressions=[tree.copy() for tree in compared]))
        node = self._builder.query(select, self._named)
        # Proved by keys, as above: two rows for one value would multiply rows of the query around it.
        if not any(set(key) <= set(names[len(values) :]) for key in node.keys):
            raise self._error(query, "A scalar subquery must be known to return at most one row.", _ONE_ROW)
        relation = relation_of(node, "", taken)
        found, columns = relation.scope.columns[: len(values)], relation.scope.columns[len(values) :]
        conditions: list[exp.Expr] = [
            _at(exp.EQ(this=outer, expression=bound_column(column, outer)), outer)
            for (_, outer), column in zip(pairs, columns, strict=True)
        ]
        # Above the join, a NULL is one of no row or of an aggregate: COUNT is 0 of both.
        known = {tree: _or_zero(tree, bound_column(c, query)) for tree, c in zip(values, found, strict=True)}
        answer = item.transform(lambda tree: known[tree].copy() if tree in known else tree)
        return _Value(_hidden(relation), conditions, answer, is_row=is_row)

    def _equality(self, tree: exp.Expr, inner: Scope) -> tuple[exp.Expr, exp.Expr]:
        """What the query compares, and the value of the query around it, bound."""
        pair = compared_with(tree, inner, self.relation.scope, self._locate)
        if pair is not None:
            return pair
        for node in name_nodes(tree):  # a name that is nowhere is what is wrong
            bind(node, Scope(inner.columns, self.relation.scope), self._locate)
        fact = "A query that gives a value can name columns of the query around it in equalities only."
        raise self._error(tree, fact, _CORRELATED)

    def _join(self, inner: Relation, kind: n.JoinKind, conditions: Sequence[exp.Expr], at: exp.Expr) -> None:
        self.relation = self._joining(inner, kind).on(conditions, at)

    def _joining(self, inner: Relation, kind: n.JoinKind) -> JoinBuilder:
        return JoinBuilder(self.relation, inner, kind, self._builder.join_settings)

    def _error(self, at: exp.Expr, fact: str, hint: str = "") -> SqlError:
        return SqlError(fact, position=self._locate(at), hint=hint)


_ONE_ROW = "Select an aggregate without GROUP BY, for example MAX(…), or a row by its whole PRIMARY KEY."
_CORRELATED = "Write it as a join."


@dataclass(frozen=True)
class _Value:
    """`answer` is what stands for the query, over columns of the relation. Unless `is_row`, it may have a value where
    there is no row."""

    relation: Relation
    pairs: list[exp.Expr]
    answer: exp.Expr
    is_row: bool


def _is_total(query: exp.Expr) -> TypeGuard[exp.Select]:
    """One expression over aggregates of all rows, and nothing else."""
    if not isinstance(query, exp.Select) or not needs_grouping(query) or len(query.expressions) != 1:
        return False
    return not any(query.args.get(s) for s in (*SHAPES, "order", "with_")) and _is_over_aggregates(query.expressions[0])


def _is_over_aggregates(item: exp.Expr) -> bool:
    """Whether it has nothing else of its query: no columns, no queries, no windows over its rows."""
    calls = aggregate_calls(item)
    rest = item.transform(lambda tree: exp.Null() if tree in calls else tree)
    return not has_query(rest) and not any(name_nodes(rest)) and rest.find(exp.Window) is None


def _or_zero(call: exp.Expr, column: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="COALESCE", expressions=[column, _zero()]) if counts_rows(call) else column


def _hidden(relation: Relation) -> Relation:
    """Nobody can name its columns, nor does a star show them."""
    return replace(relation, scope=Scope(tuple(replace(c, merged=True) for c in relation.scope.columns)))


def _zero() -> exp.Expr:
    return exp.Literal(this="0", is_string=False)


def _at(tree: exp.Expr, place: exp.Expr) -> exp.Expr:
    tree.meta.update({k: v for k, v in place.meta.items() if k in ("start", "end")})
    return tree
