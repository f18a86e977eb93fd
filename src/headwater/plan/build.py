"""sqlglot trees → plan nodes, names and types resolved. What is not supported raises here, with its place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.catalog.tables import Table, View
from headwater.catalog.usage import check_sink, check_source
from headwater.connectors.base import Accepts, Emits
from headwater.errors import Position, SqlError, ValidationError
from headwater.plan import nodes as n
from headwater.plan.coerce import fits, wider
from headwater.plan.expression import Expr
from headwater.plan.grouping import build_grouped, needs_grouping
from headwater.plan.names import unique_names
from headwater.sql.expressions import Scope, ScopeColumn, compile_expression, compile_predicate
from headwater.sql.functions.casts import convert
from headwater.sql.parse_tables import table_options
from headwater.sql.statements import ComputedColumn, Insert
from headwater.sql.types import INT, SqlType

__all__ = ["Builder", "Relation"]

Locate = Callable[[exp.Expr], Position | None]


@dataclass(frozen=True)
class Relation:
    """A node and the names under which a query sees its columns."""

    node: n.Node
    scope: Scope


class Builder:
    """Plans for one session's catalog. `locate` puts the caret under a tree's place in the script. With `repeats`,
    sources of changes may say the same again."""

    def __init__(self, catalog: Catalog, locate: Locate, repeats: bool = False) -> None:
        self.catalog = catalog
        self.locate = locate
        self.repeats = repeats

    def insert(self, statement: Insert) -> n.Write:
        table = self.catalog.table(statement.target, statement.position)
        table = self.catalog.with_options(table, statement.options, statement.position)
        check_sink(table)
        query = self.query(statement.query, {})
        written = _target_columns(table, statement)
        project = self._fit(query, table, written, statement)
        keyed = bool(table.primary_key) and table.connector.accepts is Accepts.UPSERT
        return n.Write(project.columns, project, table, table.primary_key if keyed else ())

    def query(self, query: exp.Expr, named: Mapping[str, n.Node]) -> n.Node:
        """The plan of a query; `named` are common table expressions around it."""
        named = {**named, **self._common_tables(query, named)}
        for clause in ("order", "limit", "offset"):
            if query.args.get(clause) is not None:
                raise self._unsupported(query.args[clause], f"{clause.upper()} in a continuous query")
        match query:
            case exp.Select():
                return self._select(query, named)
            case exp.Values():
                return self._values(query)
            case exp.Union():
                return self._union(query, named)
            case exp.Subquery():
                return self.query(query.this, named)
        raise self._unsupported(query, type(query).__name__.upper())

    def _common_tables(self, query: exp.Expr, named: Mapping[str, n.Node]) -> dict[str, n.Node]:
        found: dict[str, n.Node] = {}
        with_ = query.args.get("with_")
        for cte in with_.expressions if with_ is not None else ():
            node = self.query(cte.this, {**named, **found})
            columns = cte.args["alias"].args.get("columns") or []
            found[cte.alias] = self._renamed(node, [c.name for c in columns], cte) if columns else node
        return found

    def _select(self, select: exp.Select, named: Mapping[str, n.Node]) -> n.Node:
        for clause, what in (("joins", "JOIN"), ("windows", "WINDOW"), ("laterals", "LATERAL"), ("qualify", "QUALIFY")):
            if select.args.get(clause):
                raise self._unsupported(select.args[clause][0], what)
        relation = self._from(select, named)
        where = select.args.get("where")
        if where is not None:
            predicate = compile_predicate(where.this, relation.scope, self.locate)
            relation = replace(relation, node=n.Filter(relation.node.columns, relation.node, predicate))
        if needs_grouping(select):
            node: n.Node = build_grouped(select, relation, self.locate)
        else:
            node = self._project(select, relation)
        if select.args.get("distinct") is not None:
            node = n.Aggregate(node.columns, node, node.names, ())
        return node

    def _project(self, select: exp.Select, relation: Relation) -> n.Project:
        items = expand_stars(select.expressions, relation.scope, self.locate)
        compiled = [compile_expression(_without_alias(item), relation.scope, self.locate) for item in items]
        names = unique_names([output_name(item, index) for index, item in enumerate(items)])
        columns = tuple(n.Column(name, e.type) for name, e in zip(names, compiled, strict=True))
        return n.Project(columns, relation.node, tuple(compiled))

    def _from(self, select: exp.Select, named: Mapping[str, n.Node]) -> Relation:
        from_ = select.args.get("from_")
        if from_ is None:
            return Relation(n.Values((n.Column("__one", _ONE.type),), ((_ONE,),)), Scope(()))
        source = from_.this
        node, alias = self._relation(source, named)
        columns = tuple(ScopeColumn(alias, c.name, c.name, c.type) for c in node.columns)
        return Relation(node, Scope(columns))

    def _relation(self, source: exp.Expr, named: Mapping[str, n.Node]) -> tuple[n.Node, str]:
        match source:
            case exp.Subquery():
                node = self.query(source.this, named)
            case exp.Table() if isinstance(source.this, exp.Identifier):
                node = self._table(source, named)
            case exp.Values():
                node = self._values(source)
            case _:
                raise self._unsupported(source, "This table function")
        alias = source.args.get("alias")
        columns = [c.name for c in (alias.args.get("columns") or [])] if alias is not None else []
        if columns:
            node = self._renamed(node, columns, source)
        return node, source.alias_or_name

    def _table(self, source: exp.Table, named: Mapping[str, n.Node]) -> n.Node:
        if source.args.get("version") is not None:
            raise self._unsupported(source, "FOR SYSTEM_TIME AS OF")
        options = table_options(source)
        if source.name in named and not options:
            return named[source.name]
        found = self.catalog.get(source.name, self.locate(source))
        if isinstance(found, Table):
            return scan(self.catalog.with_options(found, options, self.locate(source)), self.repeats)
        if options:
            raise self._error(source, f"'{source.name}' is a view and takes no OPTIONS.")
        return self._view(found)

    def _view(self, view: View) -> n.Node:
        """The view's own query; what is wrong in it is shown at the view."""
        inside = Builder(self.catalog, lambda _: view.position, self.repeats)
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

    def _union(self, union: exp.Union, named: Mapping[str, n.Node]) -> n.Node:
        parts = [self.query(part, named) for part in (union.this, union.expression)]
        if len({len(p.columns) for p in parts}) > 1:
            counts = " and ".join(str(len(p.columns)) for p in parts)
            raise self._error(union, f"The parts of UNION have {counts} columns.")
        pairs = zip(parts[0].columns, parts[1].columns, strict=True)
        columns = tuple(n.Column(a.name, self._common(a.type, b.type, union)) for a, b in pairs)
        node = n.UnionAll(columns, tuple(_as_columns(part, columns) for part in parts))
        return n.Aggregate(columns, node, node.names, ()) if union.args.get("distinct") else node

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

    def _fit(self, query: n.Node, table: Table, written: list[n.Column], statement: Insert) -> n.Project:
        given = list(statement.columns) or [c.name for c in written]
        if len(query.columns) != len(given):
            raise ValidationError(
                f"Column types of query result and sink for '{table.name}' do not match: different number of columns.",
                detail=f"Query: ({_typed(query.columns)})\nTable: ({_typed(written)})",
            )
        by_name = dict(zip(given, query.columns, strict=True))
        expressions = []
        for column in written:
            source = by_name.get(column.name)
            if source is None:
                expressions.append(Expr("NULL", column.type.as_nullable(), frozenset(), "NULL"))
                continue
            if not fits(source.type, column.type):
                raise _incompatible(table, column, source)
            expressions.append(convert(column_reference(source), column.type))
        expressions = [convert(e, c.type) for e, c in zip(expressions, written, strict=True)]
        return n.Project(tuple(written), query, tuple(expressions))

    def _error(self, at: exp.Expr, fact: str, hint: str = "") -> SqlError:
        return SqlError(fact, position=self.locate(at), hint=hint)

    def _unsupported(self, at: exp.Expr, what: str) -> SqlError:
        return self._error(at, f"{what} is not supported.", _SUPPORTED)


_SUPPORTED = "Supported: SELECT … FROM … WHERE … GROUP BY … HAVING, SELECT DISTINCT, UNION [ALL], VALUES, WITH, views."
_ONE = Expr("1", INT.as_nullable(False), frozenset(), "1")


def scan(table: Table, repeats: bool = False) -> n.Node:
    """A table's columns in declared order: what is read, and what is computed from that."""
    check_source(table)
    changes = table.connector.gives(table) is Emits.CHANGES
    if changes and repeats and not table.primary_key:
        raise _repeats_without_key(table)
    read = tuple(n.Column(c.name, c.type) for c in table.columns if not isinstance(c, ComputedColumn))
    node = n.Scan(read, table, changes and repeats)
    if len(read) == len(table.columns):
        return node
    scope = Scope(tuple(ScopeColumn(table.name, c.name, c.name, c.type) for c in read))
    columns, expressions = [], []
    for column in table.columns:
        if isinstance(column, ComputedColumn):
            expression = compile_expression(column.expression, scope, lambda _: table.position)
        else:
            expression = column_reference(n.Column(column.name, column.type))
        columns.append(n.Column(column.name, expression.type))
        expressions.append(expression)
    return n.Project(tuple(columns), node, tuple(expressions))


def column_reference(column: n.Column) -> Expr:
    name = "`" + column.name.replace("`", "``") + "`"
    return Expr(name, column.type, frozenset({column.name}), column.name, column=column.name)


def expand_stars(items: list[exp.Expr], scope: Scope, locate: Locate) -> list[exp.Expr]:
    expanded: list[exp.Expr] = []
    for item in items:
        if isinstance(item, exp.Star):
            qualifier = ""
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            qualifier = item.table
        else:
            expanded.append(item)
            continue
        columns = [c for c in scope.columns if not qualifier or c.qualifier == qualifier]
        if not columns:
            raise SqlError(f"There is no table '{qualifier}' in FROM.", position=locate(item))
        expanded += [exp.column(exp.to_identifier(c.name, quoted=True)) for c in columns]
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


def _without_alias(item: exp.Expr) -> exp.Expr:
    return item.this if isinstance(item, exp.Alias) else item


def _as_columns(node: n.Node, columns: tuple[n.Column, ...]) -> n.Project:
    expressions = (convert(column_reference(a), b.type) for a, b in zip(node.columns, columns, strict=True))
    return n.Project(columns, node, tuple(expressions))


def _target_columns(table: Table, statement: Insert) -> list[n.Column]:
    """The columns of the table that are written: physical ones and writable metadata."""
    written = [n.Column(c.name, c.type) for c in table.written_columns]
    unknown = [name for name in statement.columns if name not in {c.name for c in written}]
    if unknown:
        raise SqlError(
            f"Table '{table.name}' has no column '{unknown[0]}' that can be written.",
            position=statement.position,
            hint=f"It has: {', '.join(c.name for c in written)}.",
        )
    if len(set(statement.columns)) < len(statement.columns):
        raise SqlError("A column is named twice in INSERT INTO.", position=statement.position)
    return written


def _repeats_without_key(table: Table) -> ValidationError:
    return ValidationError(
        "'table.exec.source.cdc-events-duplicate' is enabled, which requires the changelog sources to define a "
        f"PRIMARY KEY. However, table '{table.name}' doesn't have a primary key.",
        hint="Declare PRIMARY KEY (…) NOT ENFORCED with the columns that identify a row.",
    )


def _incompatible(table: Table, column: n.Column, source: n.Column) -> ValidationError:
    return ValidationError(
        f"Incompatible types for sink column '{column.name}' of table '{table.name}'.",
        detail=f"The query gives {source.type}, the table has {column.type}.",
        hint=f"Write CAST({source.name} AS {column.type.as_nullable()}) in the query, or change the table.",
    )


def _typed(columns: tuple[n.Column, ...] | list[n.Column]) -> str:
    return ", ".join(f"{c.name} {c.type}" for c in columns)
