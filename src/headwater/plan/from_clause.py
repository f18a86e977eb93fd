"""FROM with joins, and the conditions of WHERE that belong below them.

Inner joins, CROSS JOIN and commas make a group: a list of relations and of conditions. A group is joined one relation
after the other, each time one that an equality connects with what is joined already. An outer join ends a group: what
is before it is its left side. Conditions on one relation are filters on that relation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING, Protocol

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.coerce import wider
from headwater.plan.join_conditions import JoinBuilder, JoinSettings
from headwater.plan.predicates import conjuncts, has_query, is_true
from headwater.plan.relation import Relation, with_expressions
from headwater.plan.unnest import unnested
from headwater.sql.expressions import Scope, ScopeColumn, bind, bound_column, compile_predicate, name_nodes
from headwater.sql.functions.casts import convert
from headwater.sql.functions.spark_sql import combine
from headwater.sql.trees import name_path

if TYPE_CHECKING:
    from headwater.plan.lateral import LateralRows

__all__ = ["FromClause", "resolves", "without_queries"]


class MakeRelations(Protocol):
    """Plans one table or query; the names of its columns are new in `taken`."""

    def relation(self, tree: exp.Expr, taken: set[str]) -> Relation: ...

    def lateral(self, tree: exp.Lateral, left: Scope, taken: set[str]) -> LateralRows:
        """A query that may name columns of `left`."""


class FromClause:
    """What FROM has given so far. `make` plans one table or query; the names of its columns are new in `taken`."""

    def __init__(self, make: MakeRelations, settings: JoinSettings, taken: set[str] | None = None) -> None:
        self._make = make.relation
        self._make_lateral = make.lateral
        self._settings = settings
        self._locate = settings.locate
        self._taken = taken if taken is not None else set()
        self._factors: list[Relation] = []
        self._conditions: list[exp.Expr] = []
        self._at: exp.Expr = exp.Null()

    def build(
        self, first: Relation, joins: Sequence[exp.Join], where: Sequence[exp.Expr]
    ) -> tuple[Relation, list[exp.Expr]]:
        """All joins, filtered by those conditions of WHERE whose names are columns here; and the other conditions."""
        self._factors = [first]
        left = list(where)
        for place, join in enumerate(joins):
            self._at = join
            # A later RIGHT or FULL JOIN shows rows for which there is nothing of this one: WHERE has to judge those.
            held = left if any(map(_shows_all_of_right, joins[place + 1 :])) else []
            left = [] if held else left
            if isinstance(join.this, exp.Unnest):
                self._unnest(join, join.this)
            elif isinstance(join.this, exp.Lateral) and isinstance(join.this.this, exp.Subquery):
                self._lateral(join, join.this)
            elif join.this.args.get("version") is not None:
                left = self._as_of(join, left)
            elif join.args.get("side"):
                left = self._outer(join, left)
            else:
                self._inner(join)
            left = [*held, *left]
        known = [tree for tree in left if resolves(tree, self.scope)]
        for tree in where:
            if resolves(tree, self.scope):
                # Bound only now: a name may have become ambiguous by a table that stands further to the right.
                bind(tree, self.scope, self._locate)
        self._conditions += [bind(tree, self.scope, self._locate) for tree in known]
        return self._joined(), _without(left, known)

    @property
    def scope(self) -> Scope:
        return Scope(tuple(c for factor in self._factors for c in factor.scope.columns))

    def _inner(self, join: exp.Join) -> None:
        right = self._make(join.this, self._taken)
        before = self.scope
        self._factors.append(right)
        for name in self._shared_names(join, before, right.scope):
            own, other = before.resolve(name.name, None, self._locate(name)), right.scope.resolve(name.name)
            self._conditions.append(exp.EQ(this=bound_column(own, name), expression=bound_column(other, name)))
            self._factors[-1] = _merged(self._factors[-1], other)
        self._conditions += [bind(tree, self.scope, self._locate) for tree in conjuncts(join.args.get("on"))]

    def _unnest(self, join: exp.Join, tree: exp.Unnest) -> None:
        """Each row of the joins so far meets its own elements."""
        side, conditions = str(join.args.get("side") or ""), conjuncts(join.args.get("on"))
        conditions = [condition for condition in conditions if not is_true(condition)]
        if side.upper() not in {"", "LEFT"} or (side and conditions):
            raise SqlError(
                "UNNEST can be joined by CROSS JOIN, INNER JOIN and LEFT JOIN … ON TRUE.", position=self._locate(join)
            )
        self._factors = [unnested(self._joined(), tree, self._taken, self._locate, outer=bool(side))]
        self._conditions = [bind(condition, self.scope, self._locate) for condition in conditions]

    def _lateral(self, join: exp.Join, tree: exp.Lateral) -> None:
        """Each row of the joins so far meets what the query has for it."""
        side, conditions = str(join.args.get("side") or ""), conjuncts(join.args.get("on"))
        conditions = [condition for condition in conditions if not is_true(condition)]
        if side.upper() not in {"", "LEFT"} or (side and conditions) or join.args.get("using"):
            hint = "Write the condition into the query."
            fact = "LATERAL can be joined by CROSS JOIN, INNER JOIN and LEFT JOIN … ON TRUE."
            raise SqlError(fact, position=self._locate(join), hint=hint)
        left = self._joined()
        rows = self._make_lateral(tree, left.scope, self._taken)
        kind: n.JoinKind = "left" if side or rows.single else "inner"
        joined = JoinBuilder(left, rows.relation, kind, self._settings).on(rows.conditions, join)
        self._factors = [self._counted(joined, rows.counts)]
        self._conditions = [bind(condition, self.scope, self._locate) for condition in conditions]

    def _counted(self, joined: Relation, counts: frozenset[str]) -> Relation:
        """With 0 in these columns, where nothing was found to count."""
        added, columns = {}, []
        for column in joined.scope.columns:
            if column.column in counts:
                value = n.column_reference(n.Column(column.column, column.type))
                name, kind = self._settings.fresh(), column.type.not_null()
                added[name] = combine([value], f"coalesce({value.sql}, 0)", kind, f"COALESCE({value.text}, 0)")
                columns.append(replace(column, column=name, type=kind))
            else:
                columns.append(column)
        return Relation(with_expressions(joined.node, added), Scope(tuple(columns)))

    def _outer(self, join: exp.Join, where: list[exp.Expr]) -> list[exp.Expr]:
        """The joins so far are its left side. What WHERE says about rows of a side that is kept can be said before."""
        side = str(join.args["side"]).lower()
        kind: n.JoinKind = "left" if side == "left" else "right" if side == "right" else "full"
        # WHERE is asked after the join. Of a LEFT JOIN every row of the left survives it, so a condition on the left
        # alone says the same before, with less state; on the right it would turn missing matches into NULLs.
        pushed = [tree for tree in where if side == "left" and resolves(tree, self.scope)]
        self._conditions += [bind(tree, self.scope, self._locate) for tree in pushed]
        left, right = self._joined(), self._make(join.this, self._taken)
        together = Scope((*left.scope.columns, *right.scope.columns))
        conditions = [bind(tree, together, self._locate) for tree in conjuncts(join.args.get("on"))]
        pairs = []
        for name in self._shared_names(join, left.scope, right.scope):
            own, other = left.scope.resolve(name.name, None, self._locate(name)), right.scope.resolve(name.name)
            conditions.append(exp.EQ(this=bound_column(own, name), expression=bound_column(other, name)))
            pairs.append((own, other))
        joined = JoinBuilder(left, right, kind, self._settings).on(conditions, join)
        for own, other in pairs:
            # USING shows one column: that of the side whose rows are all there. Of a FULL JOIN either may be NULL.
            hidden = own if kind == "right" else other
            joined = self._coalesced(joined, own, other) if kind == "full" else _merged(joined, hidden)
        self._factors, self._conditions = [joined], []
        return _without(where, pushed)

    def _as_of(self, join: exp.Join, where: list[exp.Expr]) -> list[exp.Expr]:
        """FOR SYSTEM_TIME AS OF: the joins so far are its left side."""
        side = str(join.args.get("side") or "").lower()
        if side not in ("", "left"):
            raise SqlError(
                f"FOR SYSTEM_TIME AS OF is not supported in a {side.upper()} JOIN.",
                position=self._locate(join),
                hint="The versioned table is on the right of a JOIN or LEFT JOIN.",
            )
        table = join.this.copy()
        version = table.args.pop("version")
        # Inner or left: all rows of the left go through, so conditions on it can be asked before.
        pushed = [tree for tree in where if resolves(tree, self.scope)]
        self._conditions += [bind(tree, self.scope, self._locate) for tree in pushed]
        left, right = self._joined(), self._make(table, self._taken)
        together = Scope((*left.scope.columns, *right.scope.columns))
        conditions = [bind(tree, together, self._locate) for tree in conjuncts(join.args.get("on"))]
        for name in self._shared_names(join, left.scope, right.scope):
            own, other = left.scope.resolve(name.name, None, self._locate(name)), right.scope.resolve(name.name)
            conditions.append(exp.EQ(this=bound_column(own, name), expression=bound_column(other, name)))
        time = bind(version.expression, left.scope, self._locate)
        kind: n.JoinKind = "left" if side else "inner"
        joined = JoinBuilder(left, right, kind, self._settings).as_of(conditions, time, join)
        self._factors, self._conditions = [joined], []
        return _without(where, pushed)

    def _shared_names(self, join: exp.Join, left: Scope, right: Scope) -> list[exp.Identifier]:
        """The columns of USING, or those that both sides of a NATURAL JOIN have."""
        if join.args.get("method") == "NATURAL":
            names = dict.fromkeys(c.name for c in left.columns if not c.merged and right.find(c.name))
            identifiers = [exp.to_identifier(name) for name in names]
            for identifier in identifiers:
                identifier.meta.update(join.meta)
            return identifiers
        names_of_using: list[exp.Identifier] = join.args.get("using") or []
        for name in names_of_using:
            right.resolve(name.name, None, self._locate(name))
        return names_of_using

    def _coalesced(self, joined: Relation, own: ScopeColumn, other: ScopeColumn) -> Relation:
        """The column of a FULL JOIN … USING: from whichever side there is."""
        kind = wider(own.type, other.type) or own.type
        parts = [convert(n.column_reference(n.Column(c.column, c.type)), kind) for c in (own, other)]
        text = f"COALESCE({own.column}, {other.column})"
        value = combine(parts, f"coalesce({parts[0].sql}, {parts[1].sql})", kind, text)
        name = self._settings.fresh()
        hidden = _merged(_merged(joined, own), other)
        column = ScopeColumn("", own.name, name, kind)
        return Relation(with_expressions(joined.node, {name: value}), Scope((column, *hidden.scope.columns)))

    def _joined(self) -> Relation:
        """The group as one relation."""
        waiting = self._filtered()
        current, *others = self._factors
        while others:
            # Not in the order of FROM: a table that shares an equality with what is joined already comes next, or `a,
            # b, c` with a = c and b = c would begin with all pairs of a and b.
            index = next((i for i, f in enumerate(others) if self._connects(current, f, waiting)), 0)
            factor = others.pop(index)
            known = {c.column for c in (*current.scope.columns, *factor.scope.columns)}
            mine = [tree for tree in waiting if self._refs(tree) <= known]
            current = JoinBuilder(current, factor, "inner", self._settings).on(mine, self._at)
            waiting = _without(waiting, mine)
        for tree in waiting:
            current = current.where(tree, self._locate)
        # Columns are visible in the order of FROM, however they were joined.
        places = {c.column: c for c in current.scope.columns}
        self._factors = [replace(current, scope=Scope(tuple(places[c.column] for c in self.scope.columns)))]
        self._conditions = []
        return self._factors[0]

    def _filtered(self) -> list[exp.Expr]:
        """Conditions on one relation become a filter of it; the others are left."""
        left: list[exp.Expr] = []
        of_factor: dict[int, list[exp.Expr]] = {}
        for tree in self._conditions:
            refs = self._refs(tree)
            # Conditions on one table are asked before any join: fewer rows are shuffled and kept as state.
            place = next((i for i, f in enumerate(self._factors) if refs and refs <= _columns(f)), None)
            (left if place is None else of_factor.setdefault(place, [])).append(tree)
        for place, trees in of_factor.items():
            self._factors[place] = self._factors[place].where(reduce(exp.and_, trees), self._locate)
        return left

    def _refs(self, tree: exp.Expr) -> frozenset[str]:
        return compile_predicate(tree, self.scope, self._locate).refs

    def _connects(self, current: Relation, factor: Relation, conditions: Sequence[exp.Expr]) -> bool:
        for tree in conditions:
            if isinstance(tree, exp.EQ):
                sides = [
                    frozenset(node.meta["bound"][0] for node in name_nodes(part)) for part in (tree.left, tree.right)
                ]
                for one, other in (sides, sides[::-1]):
                    if one and other and one <= _columns(current) and other <= _columns(factor):
                        return True
        return False


def without_queries(joins: Sequence[exp.Join]) -> tuple[list[exp.Join], list[exp.Expr]]:
    """The joins, and conditions with queries of ON that can be asked of the pairs afterwards: those of inner joins, if
    none of their rows is shown for having no match."""
    # A filter behind these would also drop rows that are shown for having no match.
    if any(map(_shows_all_of_right, joins)):
        return list(joins), []
    kept, lifted = [], []
    for join in joins:
        conditions = conjuncts(join.args.get("on"))
        asked = [tree for tree in conditions if has_query(tree)] if not join.args.get("side") else []
        lifted += asked
        kept.append(join.copy() if asked else join)
        if asked:
            rest = [tree.copy() for tree in conditions if not has_query(tree)]
            kept[-1].set("on", reduce(exp.and_, rest) if rest else None)
    return kept, lifted


def _shows_all_of_right(join: exp.Join) -> bool:
    return str(join.args.get("side")).upper() in ("RIGHT", "FULL")


def resolves(tree: exp.Expr, scope: Scope) -> bool:
    """Whether all names of a condition are columns of `scope`, which may be ambiguous."""
    return all(
        "bound" in node.meta or scope.knows([part.name for part in name_path(node)]) for node in name_nodes(tree)
    )


def _without(trees: Sequence[exp.Expr], gone: Sequence[exp.Expr]) -> list[exp.Expr]:
    """By identity: conditions that read the same may be about different columns."""
    return [tree for tree in trees if not any(tree is other for other in gone)]


def _columns(relation: Relation) -> frozenset[str]:
    return frozenset(c.column for c in relation.scope.columns)


def _merged(relation: Relation, hidden: ScopeColumn) -> Relation:
    columns = tuple(replace(c, merged=True) if c.column == hidden.column else c for c in relation.scope.columns)
    return replace(relation, scope=Scope(columns))
