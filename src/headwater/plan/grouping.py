"""SELECT with aggregates: what is grouped, what is aggregated, and the expressions above both.

input → Project (group expressions that are not plain columns) → [Expand (GROUPING SETS)]
      → Aggregate or WindowAggregate → [Project (GROUPING)] → Filter (HAVING) → Project (SELECT)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.grouping_sets import grouping_bits, grouping_sets, has_grouping_sets, is_grouping_call
from headwater.plan.predicates import has_query
from headwater.plan.relation import Locate, Relation, expand_stars, with_expressions, without_alias
from headwater.plan.windows import EmitRules, GroupWindow, check_session
from headwater.sql.expressions import (
    Scope,
    ScopeColumn,
    compile_aggregate,
    compile_expression,
    is_aggregate,
)
from headwater.sql.expressions.calls import called_name, is_unknown, unknown_function
from headwater.sql.trees import name_path
from headwater.sql.typed import AggregateCall, Expr
from headwater.sql.types import BIGINT, SqlType

if TYPE_CHECKING:
    from headwater.plan.build import Builder, Named
    from headwater.plan.subqueries import Subqueries

__all__ = ["aggregate_calls", "build_grouped", "needs_grouping"]


def needs_grouping(select: exp.Select) -> bool:
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(aggregate_calls(item) for item in select.expressions)


def aggregate_calls(node: exp.Expr) -> list[exp.Expr]:
    """Aggregate calls in the tree, outermost ones only; a FILTER belongs to its call."""
    if is_aggregate(node):
        return [node]
    if isinstance(node, exp.Query):  # its aggregates are its own
        return []
    if isinstance(node, exp.Window):  # the function itself is computed over the groups
        inside = [child for child in node.iter_expressions() if child is not node.this]
        return [call for child in (*node.this.iter_expressions(), *inside) for call in aggregate_calls(child)]
    return [call for child in node.iter_expressions() for call in aggregate_calls(child)]


def build_grouped(select: exp.Select, relation: Relation, builder: Builder, named: Named) -> n.Node:
    from headwater.plan.subqueries import Subqueries

    locate, emit = builder.locate, builder.rules.emit
    group, having = select.args.get("group"), select.args.get("having")
    items = expand_stars(select.expressions, relation.scope, locate)
    bare = [without_alias(item) for item in items]
    conditions = [having.this] if having is not None else []
    arguments = Subqueries(builder, named, relation)
    # Before the groups are found: what a query inside of an aggregate becomes is a column of the rows below them.
    bare, conditions = ([_with_arguments(tree, arguments) for tree in trees] for trees in (bare, conditions))
    relation = arguments.relation
    groups = group.expressions if group is not None else []
    window = GroupWindow.find(groups, relation.node, relation.scope, locate)
    if window is not None:
        groups = window.groups(groups)
        bare, conditions = ([window.replaced(tree) for tree in trees] for trees in (bare, conditions))
        relation = replace(relation, node=window.node, scope=window.scope(relation.scope))
    grouping = _Grouping(relation, locate, emit)
    grouping.add_groups(groups)
    for tree in (*bare, *conditions):
        for call in aggregate_calls(tree):
            grouping.add_call(call)
        for call in tree.find_all(exp.Anonymous):
            if is_grouping_call(call):
                grouping.add_marker(call)
    queries = Subqueries(builder, named, Relation(grouping.node(), grouping.scope()))
    queries.filter(conditions, grouping.rewrite)
    trees = [queries.replace(grouping.rewrite(tree)) for tree in bare]
    return builder.projected(select, items, trees, queries.relation)


def _with_arguments(tree: exp.Expr, queries: Subqueries) -> exp.Expr:
    """Queries inside of aggregates are joined with the rows that are aggregated, and not with the groups."""
    calls = {id(call) for call in aggregate_calls(tree) if has_query(call)}
    if not calls:
        return tree
    return _mapped(tree, lambda node: queries.replace(node) if id(node) in calls else None)


def _mapped(tree: exp.Expr, change: Callable[[exp.Expr], exp.Expr | None]) -> exp.Expr:
    """The tree with the outermost parts replaced for which `change` has an answer."""
    changed = change(tree)
    if changed is not None or isinstance(tree, exp.Query):  # what a query reads is its own
        return tree if changed is None else changed
    copy = tree.copy()
    for key, value in tree.args.items():
        if isinstance(value, exp.Expr):
            copy.set(key, _mapped(value, change))
        elif isinstance(value, list):
            copy.set(key, [_mapped(v, change) if isinstance(v, exp.Expr) else v for v in value])
    return copy


@dataclass
class _Grouping:
    """`groups`, `calls` and `markers` (GROUPING) map a tree (by its text) to the column that stands for it above the
    Aggregate. `sets` says for each grouping set which of the `expanded` groups are in it: those that are not in all.
    They are copies of other columns."""

    relation: Relation
    locate: Locate
    emit: EmitRules
    groups: dict[str, tuple[str, Expr]] = field(default_factory=dict)
    calls: dict[str, tuple[str, AggregateCall]] = field(default_factory=dict)
    markers: dict[str, tuple[str, Expr]] = field(default_factory=dict)
    expanded: dict[str, str] = field(default_factory=dict)
    sets: tuple[tuple[bool, ...], ...] = ()
    numbers: Iterator[int] = field(default_factory=count)
    set_number: str = ""

    def add_groups(self, items: Sequence[exp.Expr]) -> None:
        if not has_grouping_sets(items):
            items = [item for item in items if not (isinstance(item, exp.Tuple) and not item.expressions)]
            for item in items:
                self._add_group(item)
            return
        sets = grouping_sets(items, self.locate)
        for item in (tree for one in sets for tree in one):
            self._add_group(item)
        keys = [{self._key(tree) for tree in one} for one in sets]
        some = [key for key in self.groups if not all(key in one for one in keys)]
        self.sets = tuple(tuple(key in one for key in some) for one in keys)
        if len(set(self.sets)) < len(self.sets):
            raise SqlError("GROUP BY has a grouping set twice.", position=self.locate(items[0]))
        for key in some:
            source, compiled = self.groups[key]
            name = self._fresh()
            self.expanded[name] = source
            # In the rows of other sets this group is NULL, whatever its own column says.
            self.groups[key] = name, replace(compiled, type=compiled.type.as_nullable())
        self.set_number = self._fresh()

    def _fresh(self) -> str:
        return f"__hw_g{next(self.numbers)}"

    def _add_group(self, item: exp.Expr) -> None:
        compiled = compile_expression(item, self.relation.scope, self.locate)
        if compiled.type.is_nested:
            raise SqlError(
                f"Rows cannot be grouped by a value of type {compiled.type}.",
                position=self.locate(item),
                hint="Group by its parts.",
            )
        if not compiled.deterministic:
            raise SqlError("Rows cannot be grouped by a value that changes by itself.", position=self.locate(item))
        if self._key(item) not in self.groups:
            self.groups[self._key(item)] = (compiled.column or self._fresh(), compiled)

    def add_call(self, node: exp.Expr) -> None:
        if self._key(node) not in self.calls:
            call = compile_aggregate(node, self.relation.scope, self.locate)
            self.calls[self._key(node)] = (f"__hw_agg{len(self.calls)}", call)

    def add_marker(self, call: exp.Anonymous) -> None:
        """GROUPING(a) or GROUPING_ID(a, b)."""
        names = [
            self.groups[self._key(item)][0] if self._key(item) in self.groups else None for item in call.expressions
        ]
        if None in names or not names:
            item = call.expressions[names.index(None)] if names else call
            raise SqlError(f"{called_name(call)} takes groups of GROUP BY.", position=self.locate(item))
        bits = {name: len(self.expanded) - 1 - place for place, name in enumerate(self.expanded)}
        strings = [compile_expression(item, self.relation.scope, self.locate).text for item in call.expressions]
        text = f"{called_name(call)}({', '.join(strings)})"
        expression = grouping_bits(self.set_number, len(bits), [bits.get(name or "") for name in names], text)
        self.markers.setdefault(self._key(call), (expression.column or self._fresh(), expression))

    def node(self) -> n.Node:
        aggregate = self._aggregate()
        marked = {name: e for name, e in self.markers.values() if e.column is None}
        return with_expressions(aggregate, marked)

    def _aggregate(self) -> n.Aggregate:
        below = self.relation.node
        computed = {self.expanded.get(name, name): e for name, e in self.groups.values() if e.column is None}
        called = [(name, self._reading_once(call, computed)) for name, call in self.calls.values()]
        below = with_expressions(below, computed)
        groups = {name: n.Column(name, e.type) for name, e in self.groups.values()}
        if self.expanded:
            number = n.Column(self.set_number, BIGINT.not_null())
            copies = (*(groups[name] for name in self.expanded), number)
            below = n.Expand((*below.columns, *copies), below, tuple(self.expanded.values()), self.sets)
            groups[number.name] = number
        results = tuple(n.Column(name, call.type) for name, call in called)
        calls = tuple(call for _, call in called)
        window = below.window
        if window is None or not {window.start, window.end} <= groups.keys():
            return n.Aggregate((*groups.values(), *results), below, tuple(groups), calls)
        kind = "TIMESTAMP_LTZ" if window.local else "TIMESTAMP"
        time = n.Column(window.time or "__hw_window_time", SqlType(kind, precision=3, nullable=False))
        # The window's time follows from its bounds: as a group of its own it would only widen the key.
        groups.pop(window.time, None)
        check_session(below, [name for name in groups if name not in {window.start, window.end}])
        columns = (*groups.values(), *results, time)
        emit = EmitRules() if window.session is not None else self.emit  # of a session only the end is emitted
        return n.WindowAggregate(columns, below, tuple(groups), calls, early=emit.early, lateness=emit.lateness)

    def _reading_once(self, call: AggregateCall, computed: dict[str, Expr]) -> AggregateCall:
        """What changes by itself becomes a column below: an aggregate may have several accumulators, of which each
        would get a value of its own."""

        def read(value: Expr | None) -> Expr | None:
            if value is None or value.deterministic:
                return value
            name = self._fresh()
            computed[name] = value
            return replace(n.column_reference(n.Column(name, value.type)), text=value.text)

        return replace(call, argument=read(call.argument), filter=read(call.filter))

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
        columns += [ScopeColumn("", name, name, marker.type) for name, marker in self.markers.values()]
        unique = {(c.qualifier, c.name): c for c in columns}
        return Scope(tuple(unique.values()))

    def rewrite(self, tree: exp.Expr) -> exp.Expr:
        """The tree with groups and calls replaced by their columns; any other column is an error."""
        return _mapped(tree, self._replaced)

    def _replaced(self, tree: exp.Expr) -> exp.Expr | None:
        found = self.calls.get(self._key(tree)) if is_aggregate(tree) else self.markers.get(self._key(tree))
        group = self.groups.get(self._key(tree))
        if found is not None:
            return _column(found[0], tree)
        if group is not None:
            return tree if group[1].column is not None else _column(group[0], tree)
        if isinstance(tree, exp.Column):
            self._refuse_ungrouped(tree)
            return tree
        return None

    def _key(self, tree: exp.Expr) -> str:
        """The same for trees that mean the same: however functions are spelled, and whether columns are qualified."""
        return repr(tree.transform(self._canonical))

    def _canonical(self, node: exp.Expr) -> exp.Expr:
        if type(node) is exp.Anonymous:
            node.set("this", called_name(node))
        if not isinstance(node, exp.Column) or not (path := [part.name for part in name_path(node)]):
            return node
        try:
            column, fields = self.relation.scope.resolve_path(path)
        except SqlError:  # of a query inside, or a mistake that is reported where the column is compiled
            return node
        return exp.Var(this=".".join([column.column, *fields]))

    def _refuse_ungrouped(self, column: exp.Expr) -> None:
        compiled = compile_expression(column, self.relation.scope, self.locate)
        if not compiled.refs <= {e.column for _, e in self.groups.values()}:
            self._refuse_unknown_call(column)
            raise SqlError(
                f"Column '{column.name}' is neither in GROUP BY nor inside an aggregate.",
                position=self.locate(column),
                hint=f"Add it to GROUP BY, or write for example MAX({column.name}).",
            )

    def _refuse_unknown_call(self, inside: exp.Expr) -> None:
        """A function that nobody knows may be meant for an aggregate, whose argument need not be a group."""
        call = inside.find_ancestor(exp.Anonymous)
        if isinstance(call, exp.Anonymous) and is_unknown(name := called_name(call)):
            fact, hint = unknown_function(name)
            raise SqlError(fact, position=self.locate(call), hint=hint)


def _column(name: str, at: exp.Expr) -> exp.Expr:
    column = exp.column(exp.to_identifier(name, quoted=True))
    # Errors further up then still point to where the call stands in the query.
    column.meta.update(at.meta)
    return column
