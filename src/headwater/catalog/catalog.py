"""The tables and views of a session, in memory. Names are as in Flink: their case matters.

A name without a database belongs to the current one. Inside, a table of the default database is known by its name alone
and any other as `db.t` (see `sql.paths`), so that what a table is called does not depend on how it was written.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from headwater.catalog.alter import altered, own_part
from headwater.catalog.connector import Connector
from headwater.catalog.databases import Databases, database_of
from headwater.catalog.functions import Functions
from headwater.catalog.like import merge_like
from headwater.catalog.tables import Table, View
from headwater.catalog.validation import schema_problems, with_key_not_null
from headwater.errors import DependentError, HeadwaterError, Position, SqlError, ValidationError
from headwater.options.base import Option
from headwater.options.closest import did_you_mean
from headwater.options.parsing import family_prefix, read_options, supported_keys
from headwater.options.problems import OptionContext, Problem, problems_error
from headwater.options.resolved import ResolvedOptions
from headwater.options.spelling import Spelling
from headwater.options.translate import spelling_of
from headwater.plugins import CONNECTORS
from headwater.sql.paths import DEFAULT_DATABASE, joined, split
from headwater.sql.statements import (
    AlterTable,
    AlterView,
    CreateTable,
    CreateView,
    Drop,
    DropDatabase,
    SchemaChange,
)

__all__ = ["Catalog"]

_R = TypeVar("_R", Table, View)
_FROM_TOPIC = "Read or write its data through a topic, for example with Kafka Connect."
_FROM_DEBEZIUM = "Read its changes from a topic that Debezium or Flink CDC writes, with 'format' = 'debezium-json'."
_INSTEAD = {
    "faker": "Random rows are made by datagen.",
    **dict.fromkeys(("filesystem", "hive", "jdbc", "elasticsearch-7", "iceberg", "paimon", "mongodb"), _FROM_TOPIC),
    **dict.fromkeys(("mysql-cdc", "postgres-cdc", "oracle-cdc", "sqlserver-cdc", "mongodb-cdc"), _FROM_DEBEZIUM),
}
"""Connectors that scripts for Flink often name."""


_NONE = "None has been created: CREATE TABLE comes first, in this script or in one that is given before it."


class Catalog:
    def __init__(self, connection: Mapping[str, str] | None = None) -> None:
        """`connection` has values for options of Kafka tables that do not set them."""
        self._connection = connection or {}
        self._relations: dict[str, Table | View] = {}
        self.databases = Databases()
        self.functions = Functions()
        # What could not be created, where a script is checked to its end: whoever uses it is not to blame.
        self._broken: set[str] = set()

    def __repr__(self) -> str:
        return f"Catalog({', '.join(self.names())})"

    def copy(self) -> Catalog:
        """With the same tables and views; what is created or dropped in one is not in the other."""
        other = Catalog(self._connection)
        other._relations = dict(self._relations)
        other._broken = set(self._broken)
        other.databases = self.databases.copy()
        other.functions = self.functions.copy()
        return other

    def within(self, database: str) -> Catalog:
        """The same tables and views, seen from another current database."""
        other = Catalog(self._connection)
        other._relations = self._relations
        other._broken = self._broken
        other.functions = self.functions
        other.databases = self.databases.copy()
        other.databases.current = database
        return other

    def until_now(self) -> Catalog:
        """The same tables; those without an end end with what is there when they are read, where they can."""
        other = self.copy()
        for table in self.tables():
            if table.spelling.is_current and not table.connector.is_bounded(table):
                other._relations[table.name] = self.with_options(table, table.connector.until_now(table))
        return other

    def create_table(self, statement: CreateTable) -> Table:
        """The new table, or with IF NOT EXISTS the one that is there. Raises one error with all that is wrong."""
        statement = replace(statement, name=self._path(statement.name, statement.position))
        existing = self._relations.get(statement.name)
        if isinstance(existing, Table) and statement.if_not_exists:
            return existing
        self._check_free(statement.name, Table if statement.or_replace else None)
        if statement.like is not None:
            statement = merge_like(statement, self.table(statement.like.table, statement.position))
        table = _resolved(statement, self._connection)
        self._relations[table.name] = table
        return table

    def create_view(self, statement: CreateView) -> View:
        """The view, whose query nobody has looked at yet."""
        name = self._path(statement.name, statement.position)
        existing = self._relations.get(name)
        if isinstance(existing, View) and statement.if_not_exists:
            return existing
        self._check_free(name, View if statement.or_replace else None)
        view = View(
            name,
            statement.query,
            statement.columns,
            statement.comment,
            statement.temporary,
            statement.text,
            statement.position,
            self.databases.current,
            statement,
        )
        self._relations[view.name] = view
        return view

    def alter_table(self, statement: AlterTable) -> None:
        """Options set or reset, and the table checked again; or another name."""
        path = self._path(statement.name, statement.place)
        if statement.if_exists and path not in self._relations:
            return
        table = self.table(statement.name, statement.place)
        if statement.rename:
            self._rename(table, statement.rename, statement.place)
            return
        # From the options as the user wrote them, legacy ones included: RESET has to find the very key.
        written = {**table.spelling.written, **statement.options}
        missing = [key for key in statement.reset if key not in written]
        if missing:
            raise ValidationError(f"Table '{table.name}' has no option '{missing[0]}' to reset.")
        options = {key: value for key, value in written.items() if key not in statement.reset}
        positions = {**table.option_positions, **statement.option_positions}
        self._relations[path] = _checked(
            replace(table, spelling=spelling_of(options), option_positions=positions),
            [],
            self._connection,
            statement.option_positions,
        )

    def alter_schema(self, statement: SchemaChange) -> tuple[Table, CreateTable] | None:
        """The table with other columns, key or watermark, and what the statement itself declares of it; None with IF
        EXISTS if there is no such table."""
        path = self._path(statement.name, statement.place)
        if statement.if_exists and path not in self._relations:
            return None
        declared = altered(self.table(statement.name, statement.place), statement)
        self._relations[path] = table = _resolved(declared, self._connection)
        return table, own_part(declared, statement)

    def alter_view(self, statement: AlterView) -> View:
        view = self.get(statement.name, statement.place)
        if isinstance(view, Table):
            raise ValidationError(f"'{view.name}' is a table.", hint=f"Write ALTER TABLE {view.name}.")
        if statement.rename:
            return self._rename(view, statement.rename, statement.place)
        assert statement.query is not None
        changed = replace(view, query=statement.query, columns=(), database=self.databases.current)
        changed = replace(changed, text=statement.text, position=statement.position, origin=statement)
        self._relations[view.name] = changed
        return changed

    def _rename(self, relation: _R, new: str, position: Position) -> _R:
        path = self._path(_beside(relation.name, new), position)
        self._check_free(path)
        renamed = replace(relation, name=path)
        del self._relations[relation.name]
        self._relations[path] = renamed
        return renamed

    def use(self, database: str, position: Position | None = None) -> None:
        """Names without a database belong to this one from now on; '' is the default one."""
        self.databases.check(database or DEFAULT_DATABASE, position)
        self.databases.current = database or DEFAULT_DATABASE

    def drop_database(self, statement: DropDatabase) -> None:
        """RESTRICT, the default, keeps a database that has tables or views."""
        name = statement.name
        if statement.if_exists and name not in self.databases:
            return
        inside = self.names(name)
        if inside and not statement.cascade:
            raise ValidationError(
                f"Database '{name}' is not empty: it has {', '.join(inside)}.", hint="Write DROP DATABASE … CASCADE."
            )
        self.databases.drop(name)
        for path in inside:
            del self._relations[path]

    def drop(self, statement: Drop) -> None:
        path = self._path(statement.name, statement.place)
        found = self._relations.get(path)
        kind = "TABLE" if isinstance(found, Table) else "VIEW"
        if found is None and statement.if_exists:
            return
        if found is None:
            raise self._unknown(statement.name, statement.place)
        if kind != statement.kind:
            raise ValidationError(
                f"'{statement.name}' is a {kind.lower()}.", hint=f"Write DROP {kind} {statement.name}."
            )
        del self._relations[path]

    def get(self, name: str, position: Position | None = None) -> Table | View:
        """The table or view. Where there is none, the error shows `position`, if it is known, and the closest name."""
        path = self._path(name, position)
        if path not in self._relations:
            raise self._unknown(name, position)
        return self._relations[path]

    def table(self, name: str, position: Position | None = None) -> Table:
        found = self.get(name, position)
        if isinstance(found, View):
            raise ValidationError(f"'{name}' is a view, and a table is needed here.")
        return found

    def tables(self) -> tuple[Table, ...]:
        return tuple(r for _, r in sorted(self._relations.items()) if isinstance(r, Table))

    def views(self) -> tuple[View, ...]:
        return tuple(r for _, r in sorted(self._relations.items()) if isinstance(r, View))

    def names(self, database: str = "") -> tuple[str, ...]:
        """Of everything, or of what is in one database."""
        return tuple(sorted(path for path in self._relations if database in ("", database_of(path))))

    def with_options(
        self, table: Table, options: Mapping[str, str], positions: Mapping[str, Position] | None = None
    ) -> Table:
        """The table as an OPTIONS hint makes it, checked again; `positions` are those of the options. The catalog keeps
        the table it has."""
        if not options:
            return table
        hinted, connector = positions or {}, table.spelling.name("connector")
        if connector in options:
            fact = f"An OPTIONS hint cannot change the '{connector}' of a table."
            raise SqlError(fact, position=hinted.get(connector))
        changed = replace(table, option_positions={**table.option_positions, **hinted})
        spelling = spelling_of({**table.spelling.written, **options})
        return _checked(replace(changed, spelling=spelling), [], self._connection, hinted)

    def _path(self, name: str, position: Position | None) -> str:
        """The name under which a table is kept, whatever the current database."""
        *given, table = split(name)
        database = given[0] if given else self.databases.current
        self.databases.check(database, position)
        return joined([table] if database == DEFAULT_DATABASE else [database, table])

    def _check_free(self, name: str, replaced: type[Table | View] | None = None) -> None:
        """Unless what is there is of the kind to be replaced."""
        if name in self._relations and (replaced is None or not isinstance(self._relations[name], replaced)):
            kind = "table" if isinstance(self._relations[name], Table) else "view"
            raise ValidationError(
                f"A {kind} named '{name}' already exists.", hint="Write IF NOT EXISTS, or DROP it first."
            )

    def mark_broken(self, name: str) -> None:
        """The statement that creates it is wrong: using it raises a DependentError."""
        self._broken.add(name)
        self.functions.mark_broken(name)

    def _unknown(self, name: str, position: Position | None) -> HeadwaterError:
        if self._broken & {name, self._path(name, None)}:
            return DependentError(f"'{name}' could not be created.", position=position)
        fact = f"There is no table or view '{name}'."
        there = f"There are: {', '.join(self.names())}." if self._relations else _NONE
        hint = did_you_mean(name, self._relations) or there
        if position is None:
            return ValidationError(fact, hint=hint)
        return SqlError(fact, position=position, hint=hint)


def _beside(path: str, new: str) -> str:
    """A new name without a database stays in that of the table, which need not be the current one."""
    *database, _ = split(path)
    parts = split(new)
    return joined([*(database or [DEFAULT_DATABASE]), *parts]) if len(parts) == 1 else new


def _resolved(statement: CreateTable, connection: Mapping[str, str]) -> Table:
    spelling = spelling_of(statement.options)
    connector = _connector(statement, spelling)
    problems = schema_problems(statement, connector)
    table = Table(
        statement.name,
        with_key_not_null(statement),
        connector,
        ResolvedOptions({}, {}),
        statement.primary_key or (),
        statement.watermark,
        statement.partitioned_by,
        statement.comment,
        statement.temporary,
        statement.position,
        statement.option_positions,
        spelling,
    )
    return _checked(table, problems, connection, statement.option_positions)


def _checked(table: Table, problems: list[Problem], connection: Mapping[str, str], here: Collection[str]) -> Table:
    """The table with its options read. The connector judges it only if its columns make sense. `here` are the options
    that the current statement writes."""
    connector, spelling = table.connector, table.spelling
    if spelling.problems:
        raise _options_error(table, [*spelling.problems, *problems], spelling.supported, here)
    ignored = connector.without_effect(spelling.options)
    given = {key: value for key, value in spelling.options.items() if key not in ignored}
    declared = (*connector.options, *connector.more_options(given))
    given = {**_defaults(declared, connection), **given}
    options, found = read_options(declared, given)
    problems = problems + [_explained(problem, connector) for problem in found]
    notes = (f"'{key}' of table '{table.name}' has no effect: {reason}" for key, reason in ignored.items())
    table = replace(table, options=options, notes=tuple(map(spelling.said, notes)))
    if all(problem.kind != "rule" for problem in problems):
        problems += connector.validate(table)
    if problems:
        raise _options_error(table, [spelling.of(problem) for problem in problems], supported_keys(declared), here)
    return table


def _defaults(declared: Sequence[Option], connection: Mapping[str, str]) -> dict[str, str]:
    """Those that a table has, if it is one of a broker: print and datagen have no connection."""
    families = tuple(family_prefix(option) for option in declared if option.prefix)
    if "properties." not in families:
        return {}
    keys = {option.key for option in declared}
    return {key: value for key, value in connection.items() if key in keys or key.startswith(families)}


def _options_error(
    table: Table, problems: list[Problem], supported: tuple[str, ...], here: Collection[str]
) -> ValidationError:
    written, positions = table.spelling.written, table.option_positions
    context = OptionContext(table.connector.identifier, supported, written, positions, here)
    return problems_error(f"Table '{table.name}'", problems, context)


def _explained(problem: Problem, connector: Connector) -> Problem:
    if problem.kind == "unsupported" and problem.key in connector.not_here:
        return replace(problem, text=connector.not_here[problem.key])
    return problem


def _connector(statement: CreateTable, spelling: Spelling) -> Connector:
    name = spelling.options.get("connector")
    known = ", ".join(sorted(CONNECTORS))
    if name is not None and name in CONNECTORS:
        return CONNECTORS[name]
    if spelling.problems:
        context = OptionContext(
            spelling.name("connector"), spelling.supported, spelling.written, statement.option_positions
        )
        raise problems_error(f"Table '{statement.name}'", spelling.problems, context)
    if name is None:
        near = did_you_mean("connector", statement.options)
        raise ValidationError(
            f"Table '{statement.name}' options do not contain an option key 'connector' for discovering a connector.",
            detail=near.replace("Did you mean", "Is it").replace("?", " that should be 'connector'?") if near else "",
            hint=f"Add 'connector' = '…' with one of {known}.",
        )
    raise ValidationError(
        f"Could not find any factory for identifier '{name}'.",
        position=statement.option_positions.get("connector"),
        detail=f"It is the connector of table '{statement.name}'. Available factory identifiers are: {known}.",
        hint=did_you_mean(name, CONNECTORS) or _INSTEAD.get(name, ""),
    )
