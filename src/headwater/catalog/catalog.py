"""The tables and views of a session, in memory. Names are as in Flink: their case matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headwater.catalog.checks import schema_problems, with_key_not_null
from headwater.catalog.like import merge_like
from headwater.catalog.tables import Table, View
from headwater.connectors.base import Connector
from headwater.connectors.registry import CONNECTORS
from headwater.errors import HeadwaterError, Position, SqlError, ValidationError
from headwater.options.closest import did_you_mean
from headwater.options.problems import OptionContext, Problem, problems_error
from headwater.options.reading import read_options, supported_keys
from headwater.options.resolved import ResolvedOptions
from headwater.options.spelling import Spelling
from headwater.options.translate import spelling_of
from headwater.sql.statements import CreateTable, CreateView, Drop

__all__ = ["Catalog"]


class Catalog:
    def __init__(self) -> None:
        self._relations: dict[str, Table | View] = {}

    def create_table(self, statement: CreateTable) -> Table:
        """The new table, or with IF NOT EXISTS the one that is there. Raises one error with all that is wrong."""
        existing = self._relations.get(statement.name)
        if isinstance(existing, Table) and statement.if_not_exists:
            return existing
        self._check_free(statement.name)
        if statement.like is not None:
            statement = merge_like(statement, self.table(statement.like.table, statement.position))
        table = _resolved(statement)
        self._relations[table.name] = table
        return table

    def create_view(self, statement: CreateView) -> View:
        """The view, whose query nobody has looked at yet."""
        existing = self._relations.get(statement.name)
        if isinstance(existing, View) and statement.if_not_exists:
            return existing
        self._check_free(statement.name)
        view = View(
            statement.name,
            statement.query,
            statement.columns,
            statement.comment,
            statement.temporary,
            statement.text,
            statement.position,
        )
        self._relations[view.name] = view
        return view

    def drop(self, statement: Drop) -> None:
        found = self._relations.get(statement.name)
        kind = "TABLE" if isinstance(found, Table) else "VIEW"
        if found is None and statement.if_exists:
            return
        if found is None:
            raise self._unknown(statement.name, statement.position)
        if kind != statement.kind:
            raise ValidationError(
                f"'{statement.name}' is a {kind.lower()}.", hint=f"Write DROP {kind} {statement.name}."
            )
        del self._relations[statement.name]

    def get(self, name: str, position: Position | None = None) -> Table | View:
        """The table or view. Where there is none, the error shows `position`, if it is known, and the closest name."""
        if name not in self._relations:
            raise self._unknown(name, position)
        return self._relations[name]

    def table(self, name: str, position: Position | None = None) -> Table:
        found = self.get(name, position)
        if isinstance(found, View):
            raise ValidationError(f"'{name}' is a view, and a table is needed here.")
        return found

    def tables(self) -> tuple[Table, ...]:
        return tuple(r for _, r in sorted(self._relations.items()) if isinstance(r, Table))

    def views(self) -> tuple[View, ...]:
        return tuple(r for _, r in sorted(self._relations.items()) if isinstance(r, View))

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._relations))

    def with_options(self, table: Table, options: Mapping[str, str], position: Position | None = None) -> Table:
        """The table as an OPTIONS hint makes it, checked again. The catalog keeps the one it has."""
        if not options:
            return table
        connector = table.spelling.name("connector")
        if connector in options:
            raise SqlError(f"An OPTIONS hint cannot change the '{connector}' of a table.", position=position)
        hinted = dict.fromkeys(options, position) if position is not None else {}
        changed = replace(table, option_positions={**table.option_positions, **hinted})
        spelling = spelling_of({**table.spelling.written, **options})
        return _checked(replace(changed, spelling=spelling), [])

    def _check_free(self, name: str) -> None:
        if name in self._relations:
            kind = "table" if isinstance(self._relations[name], Table) else "view"
            raise ValidationError(
                f"A {kind} named '{name}' already exists.", hint="Write IF NOT EXISTS, or DROP it first."
            )

    def _unknown(self, name: str, position: Position | None) -> HeadwaterError:
        fact, detail = f"There is no table or view '{name}'.", did_you_mean(name, self._relations)
        hint = (
            "" if detail else f"There are: {', '.join(self.names())}." if self._relations else "None has been created."
        )
        if position is None:
            return ValidationError(fact, detail=detail, hint=hint)
        return SqlError(fact, position=position, detail=detail, hint=hint)


def _resolved(statement: CreateTable) -> Table:
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
    return _checked(table, problems)


def _checked(table: Table, problems: list[Problem]) -> Table:
    """The table with its options read. The connector judges it only if its columns make sense."""
    connector, spelling = table.connector, table.spelling
    if spelling.problems:
        raise _options_error(table, [*spelling.problems, *problems], spelling.supported)
    given = spelling.options
    declared = (*connector.options, *connector.more_options(given))
    options, found = read_options(declared, given)
    problems = problems + [_explained(problem, connector) for problem in found]
    table = replace(table, options=options)
    if all(problem.kind != "rule" for problem in problems):
        problems += connector.validate(table)
    if problems:
        raise _options_error(table, [spelling.of(problem) for problem in problems], supported_keys(declared))
    return table


def _options_error(table: Table, problems: list[Problem], supported: tuple[str, ...]) -> ValidationError:
    written, positions = table.spelling.written, table.option_positions
    context = OptionContext(table.connector.identifier, supported, written, positions)
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
        detail=f"It is the connector of table '{statement.name}'. {did_you_mean(name, CONNECTORS)}".strip(),
        hint=f"Available factory identifiers are: {known}.",
    )
