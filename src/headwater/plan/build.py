"""sqlglot trees → plan nodes, names and types resolved. What is not supported raises here, with its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.catalog.connector import Accepts, Emits
from headwater.catalog.tables import Table, View
from headwater.catalog.validation import check_sink, check_source
from headwater.errors import SqlError, ValidationError
from headwater.plan import nodes as n
from headwater.plan.coerce import wider
from headwater.plan.display_names import located
from headwater.plan.from_clause import FromClause, resolves, without_queries
from headwater.plan.grouping import build_grouped, needs_grouping
from headwater.plan.hints import state_ttls, with_state_ttls
from headwater.plan.join_conditions import JoinSettings
from headwater.plan.lateral import LateralRows, lateral_rows
from headwater.plan.names import unique_names
from headwater.plan.nodes import column_reference
from headwater.plan.over_windows import Overs
from headwater.plan.predicates import conjuncts, has_query
from headwater.plan.query_trees import is_values
from headwater.plan.ranks import Ranks, build_limited
from headwater.plan.relation import Locate, Relation, expand_stars, output_name, relation_of, without_alias
from headwater.plan.sink_columns import SinkRules, fitted
from headwater.plan.subqueries import Subqueries
from headwater.plan.time_attributes import with_proctime, with_watermark
from headwater.plan.unnest import unnested
from headwater.plan.windows import WINDOW_FUNCTIONS, EmitRules, function_name, no_table_function, window_table
from headwater.sql.expressions import Scope, ScopeColumn, bind, compile_expression
from headwater.sql.functions.casts import convert
from headwater.sql.paths import DEFAULT_CATALOG
from headwater.sql.statements import ComputedColumn, Insert
from headwater.sql.trees import option_keys, table_options, table_path
from headwater.sql.typed import Expr
from headwater.sql.types import INT, SqlType, has_map

__all__ = ["Builder", "Named", "PlanRules", "Relation"]


Named = Mapping[str, n.Node]
"""Common table expressions around a query."""


@dataclass(frozen=True)
class PlanRules:
    """What the session says about plans. With `repeats`, sources of changes may say the same again. `state_ttl` is in
    milliseconds."""

    repeats: bool = False
    sinks: SinkRules = field(default_factory=SinkRules)
    joins_without_equality: bool = False
    state_ttl: int = 0
    emit: EmitRules = field(default_factory=EmitRules)


class Builder:
    """Plans for one session's catalog. `locate` puts the caret under a tree's place in the script."""

    def __init__(self, catalog: Catalog, locate: Locate, rules: PlanRules | None = None) -> None:
        self.catalog = catalog
        self.locate = locate
        self.rules = rules or PlanRules()
        self.join_settings = JoinSettings(locate, self.rules.joins_without_equality)
        self._read: list[dict[str, n.Node]] = []  # for each SELECT that is being planned: what is in its FROM
        self.renamed: dict[str, str] = {}  # columns of the plan whose names in the query are others

    def insert(self, statement: Insert) -> n.Write:
        table = self.catalog.table(statement.target, statement.target_position or statement.position)
        table = self.catalog.with_options(table, statement.options, dict.fromkeys(statement.options, statement.place))
        check_sink(table)
        query = self.query(statement.query, {})
        rows = fitted(query, table, statement, self.rules.sinks)
        # A primary key alone does not make upserts: `print` shows every change, whatever key the table declares.
        keyed = bool(table.primary_key) and table.connector.accepts is Accepts.UPSERT
        if statement.on_conflict and not keyed:
            raise SqlError(
                f"ON CONFLICT needs a table with upserts, and '{table.name}' has none.",
                position=statement.position,
                hint="Declare a PRIMARY KEY (…) NOT ENFORCED, for an 'upsert-kafka' table, for example.",
            )
        conflict = statement.on_conflict or self.rules.sinks.materialize
        by = table.primary_key if keyed else ()
        return n.Write(rows.columns, rows, table, by, conflict, self.rules.state_ttl)

    def query(self, query: exp.Expr, named: Named) -> n.Node:
        """The plan of a query; `named` are common table expressions around it."""
        named = {**named, **self._common_tables(query, named)}
        if any(query.args.get(clause) is not None for clause in ("order", "limit", "offset")):
            return build_limited(self, query, named)
        match query:
            case exp.Select():
                return self._select(query, named)
            case exp.Values():
                return self._values(query)
            case exp.SetOperation():
                return self._set_operation(query, named)
            case exp.Subquery():
                return self.query(query.this, named)
        if isinstance(query, exp.Table):
            hint = "Parentheses are for queries and joins."
            raise SqlError(
                f"The table '{query.name}' cannot stand in parentheses.", position=self.locate(query), hint=hint
            )
        raise self._unsupported(query, type(query).__name__.upper())

    def _common_tables(self, query: exp.Expr, named: Named) -> dict[str, n.Node]:
        found: dict[str, n.Node] = {}
        with_ = query.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            node = self.query(cte.this, {**named, **found})
            columns = cte.args["alias"].args.get("columns") or []
            found[cte.alias] = self._renamed(node, [c.name for c in columns], cte) if columns else node
        return found

    def _select(self, select: exp.Select, named: Named) -> n.Node:
        ttls = state_ttls(select, self.locate)
        self._read.append({})
        for clause, what in (("laterals", "LATERAL"), ("qualify", "QUALIFY")):
            if select.args.get(clause):
                raise self._unsupported(select.args[clause][0], what)
        relation, outside = self.source(select, named, set())
        for tree in outside:  # names that are nowhere
            bind(tree, relation.scope, self.locate)
        if needs_grouping(select):
            node: n.Node = build_grouped(select, relation, self, named)
        else:
            node = self._project(select, relation, named)
        # DISTINCT is a GROUP BY of all columns without aggregates: one operator, and the same rules for retractions.
        if select.args.get("distinct") is not None:
            node = n.Aggregate(node.columns, node, node.names, ())
        read = self._read.pop()
        return with_state_ttls(node, ttls, read, self.locate) if ttls else node

    def source(self, select: exp.Expr, named: Named, taken: set[str]) -> tuple[Relation, list[exp.Expr]]:
        """The rows of FROM that pass WHERE, and those of its conditions that name columns that are not there: they may
        be of the query around this one. Names of columns differ from those that are `taken`."""
        where = select.args.get("where")
        condition = where.this if where is not None else None
        relation = self._first(select, named, taken)
        joins, of_joins = without_queries(select.args.get("joins") or [])
        if not joins and (condition is None or (not has_query(condition) and resolves(condition, relation.scope))):
            return (relation.where(condition, self.locate) if condition is not None else relation), []
        # WHERE goes along to the joins: an equality between two tables of a comma list is the key of their join, and
        # without it the join would be one of all pairs.
        plain = [tree for tree in conjuncts(condition) if not has_query(tree)]
        clause = FromClause(_Relations(self, named), self.join_settings, taken)
        relation, outside = clause.build(relation, joins, plain)
        # Queries inside of conditions are joined last, when fewer rows are left.
        queries = [*of_joins, *(tree for tree in conjuncts(condition) if has_query(tree))]
        return Subqueries(self, named, relation).filter(queries), outside

    def _first(self, select: exp.Expr, named: Named, taken: set[str]) -> Relation:
        from_ = select.args.get("from_")
        if from_ is None:
            return Relation(_ONE_ROW, Scope(()))
        return self.factor(from_.this, named, taken)

    def items(self, select: exp.Expr, scope: Scope) -> list[exp.Expr]:
        return expand_stars(select.expressions, scope, self.locate)

    def _project(self, select: exp.Select, relation: Relation, named: Named) -> n.Node:
        items = self.items(select, relation.scope)
        queries = Subqueries(self, named, relation)
        trees = [queries.replace(without_alias(item)) for item in items]
        return self.projected(select, items, trees, queries.relation)

    def projected(self, select: exp.Select, items: list[exp.Expr], trees: list[exp.Expr], relation: Relation) -> n.Node:
        """The columns of SELECT under the names of its `items`; `trees` are what is left to compute of them."""
        windows = select.args.get("windows") or []
        ranks = Ranks(self, relation, windows)
        trees = [ranks.replace(tree) for tree in trees]
        overs = Overs(self, ranks.relation, windows)
        trees = overs.replace(trees)
        relation = overs.relation
        compiled = [compile_expression(tree, relation.scope, self.locate) for tree in trees]
        names = unique_names([output_name(item, index) for index, item in enumerate(items)])
        columns = tuple(n.Column(name, e.type) for name, e in zip(names, compiled, strict=True))
        return with_proctime(n.Project(columns, relation.node, tuple(compiled)))

    def factor(self, source: exp.Expr, named: Named, taken: set[str]) -> Relation:
        """One table, query or parenthesised join of FROM."""
        inner = source.this if isinstance(source, exp.Subquery) else None
        if isinstance(inner, exp.Expr) and inner.args.get("joins") and not isinstance(inner, exp.Select):
            if source.alias:
                raise self._unsupported(source, "An alias of joins in parentheses")
            clause = FromClause(_Relations(self, named), self.join_settings, taken)
            return clause.build(self.factor(inner, named, taken), inner.args["joins"], [])[0]
        if isinstance(source, exp.Unnest):
            return unnested(Relation(_ONE_ROW, Scope(())), source, taken, self.locate, outer=False)
        node, alias = self._relation(source, named)
        if self._read:
            if any(node is other for other in self._read[-1].values()):
                node = replace(node)  # a WITH that is read twice: a hint may be about one of them
            self._read[-1].setdefault(alias, node)
        relation = relation_of(node, alias, taken, self._path(source, named))
        self.renamed |= {c.column: f"{alias}.{c.name}" for c in relation.scope.columns if c.column != c.name}
        return relation

    def _relation(self, source: exp.Expr, named: Named) -> tuple[n.Node, str]:
        match source:
            case exp.Subquery():
                node = self.query(source.this, named)
            case exp.Table() if isinstance(source.this, exp.Identifier):
                node = self._table(source, named)
            case exp.Values():
                node = self._values(source)
            case exp.Table() if function_name(source.this) in WINDOW_FUNCTIONS:
                node = window_table(source.this, lambda data: self._windowed(data, named), self.locate)
            case exp.Table() | exp.Lateral() if function_name(source.this):
                raise no_table_function(source.this, self.locate)
            case _:
                raise self._unsupported(source, type(source).__name__.upper())
        alias = source.args.get("alias")
        columns = [c.name for c in (alias.args.get("columns") or [])] if alias is not None else []
        if source.alias and not columns and is_values(source) and len(node.columns) == 1:
            columns = [source.alias]  # the only column of (VALUES …) AS t is called t, too, as in Flink
        if columns:
            node = self._renamed(node, columns, source)
        return node, source.alias_or_name

    def _windowed(self, data: exp.Table | exp.Subquery, named: Named) -> n.Node:
        return self._table(data, named) if isinstance(data, exp.Table) else self.query(data, named)

    def _path(self, source: exp.Expr, named: Named) -> tuple[str, ...]:
        """What may stand before the name of a table that has no alias."""
        if not isinstance(source, exp.Table) or source.alias or (source.name in named and not source.db):
            return ()
        return DEFAULT_CATALOG, source.db or self.catalog.databases.current

    def _table(self, source: exp.Table, named: Named) -> n.Node:
        if source.args.get("version") is not None:
            raise self._unsupported(source, "FOR SYSTEM_TIME AS OF")
        options = table_options(source)
        if source.name in named and not source.args.get("db") and not options:
            return named[source.name]
        found = self.catalog.get(table_path(source), self.locate(source))
        if isinstance(found, Table):
            places = {
                key: place for key, node in option_keys(source).items() if (place := self.locate(node)) is not None
            }
            return scan(self.catalog.with_options(found, options, places), repeats=self.rules.repeats)
        if options:
            raise self._error(source, f"'{source.name}' is a view and takes no OPTIONS.")
        return self.view(found)

    def view(self, view: View) -> n.Node:
        """The view's own query; what is wrong in it is shown where it is written."""
        inside = Builder(self.catalog.within(view.database), view.locate, self.rules)
        with located(view.origin, inside.renamed):
            node = inside.query(view.query, {})
            return inside._renamed(node, list(view.columns), view.query) if view.columns else node

    def _values(self, values: exp.Values) -> n.Values:
        rows = [[compile_expression(v, Scope(()), self.locate) for v in row.expressions] for row in values.expressions]
        types = rows[0]
        widest = [e.type for e in types]
        for row in rows[1:]:
            widest = [self._common(a, e.type, values) for a, e in zip(widest, row, strict=True)]
        columns = tuple(n.Column(f"EXPR${i}", kind) for i, kind in enumerate(widest))
        cells = tuple(tuple(convert(e, c.type) for e, c in zip(row, columns, strict=True)) for row in rows)
        return n.Values(columns, cells)

    def _set_operation(self, query: exp.SetOperation, named: Named) -> n.Node:
        function = type(query).__name__.upper()
        parts = [self.query(part, named) for part in (query.this, query.expression)]
        if len({len(p.columns) for p in parts}) > 1:
            counts = " and ".join(str(len(p.columns)) for p in parts)
            raise self._error(query, f"The parts of {function} have {counts} columns.")
        pairs = zip(parts[0].columns, parts[1].columns, strict=True)
        columns = tuple(n.Column(a.name, self._common(a.type, b.type, query)) for a, b in pairs)
        left, right = (_as_columns(part, columns) for part in parts)
        distinct = query.args.get("distinct")
        if isinstance(query, exp.Union):
            node = n.UnionAll(columns, (left, right))
            return n.Aggregate(columns, node, node.names, ()) if distinct else node
        for column in columns:
            if has_map(column.type):
                raise self._error(query, f"{function} cannot compare values of type {column.type} ('{column.name}').")
        return n.SetOperation(columns, left, right, function if distinct else f"{function} ALL")

    def _common(self, a: SqlType, b: SqlType, at: exp.Expr) -> SqlType:
        found = wider(a, b)
        if found is None:
            raise self._error(at, f"Values of type {a} and {b} cannot stand in one column.", "CAST one of them.")
        return found

    def _renamed(self, node: n.Node, names: list[str], at: exp.Expr) -> n.Project:
        if len(names) != len(node.columns):
            raise self._error(at, f"{len(names)} column names are given for {len(node.columns)} columns.")
        return n.Project(
            tuple(n.Column(name, c.type) for name, c in zip(names, node.columns, strict=True)),
            node,
            tuple(column_reference(c) for c in node.columns),
        )

    def _error(self, at: exp.Expr, fact: str, hint: str = "") -> SqlError:
        return SqlError(fact, position=self.locate(at), hint=hint)

    def _unsupported(self, at: exp.Expr, what: str) -> SqlError:
        return self._error(at, f"{what} is not supported.", f"{_LIMITS} {_INSTEAD}")


@dataclass(frozen=True)
class _Relations:
    """What FROM asks for: see `from_clause.MakeRelations`."""

    builder: Builder
    named: Named

    def relation(self, tree: exp.Expr, taken: set[str]) -> Relation:
        return self.builder.factor(tree, self.named, taken)

    def lateral(self, tree: exp.Lateral, left: Scope, taken: set[str]) -> LateralRows:
        return lateral_rows(self.builder, self.named, tree, left, taken)


_LIMITS = "'headwater docs limits' lists what queries can do."
_INSTEAD = "'headwater docs coming-from-flink' says what to do instead."
_ONE = Expr("1", INT.not_null(), frozenset(), "1")
_ONE_ROW = n.Values((n.Column("__hw_one", _ONE.type),), ((_ONE,),))


def scan(table: Table, *, repeats: bool = False) -> n.Node:
    """A table's columns in declared order: what is read, and what is computed from that. With `repeats`, a change may
    come again, and only the newest one of a key counts."""
    check_source(table)
    changes = table.connector.gives(table) is Emits.CHANGES
    if changes and repeats and not table.primary_key:
        raise _repeats_without_key(table)
    read = tuple(n.Column(c.name, c.type) for c in table.columns if not isinstance(c, ComputedColumn))
    node = n.Scan(read, table, changes and repeats)
    if len(read) == len(table.columns):
        return with_watermark(node, table)
    scope = Scope(tuple(ScopeColumn(table.name, c.name, c.name, c.type) for c in read))
    columns, expressions = [], []
    for column in table.columns:
        if isinstance(column, ComputedColumn):
            expression = compile_expression(column.expression, scope, lambda _: table.position)
        else:
            expression = column_reference(n.Column(column.name, column.type))
        columns.append(n.Column(column.name, expression.type))
        expressions.append(expression)
    return with_watermark(with_proctime(n.Project(tuple(columns), node, tuple(expressions))), table)


def _as_columns(node: n.Node, columns: tuple[n.Column, ...]) -> n.Project:
    expressions = (convert(column_reference(a), b.type) for a, b in zip(node.columns, columns, strict=True))
    return n.Project(columns, node, tuple(expressions))


def _repeats_without_key(table: Table) -> ValidationError:
    return ValidationError(
        "'table.exec.source.cdc-events-duplicate' is enabled, which requires the changelog sources to define a "
        f"PRIMARY KEY. However, table '{table.name}' doesn't have a primary key.",
        hint="Declare PRIMARY KEY (…) NOT ENFORCED with the columns that identify a row.",
    )
