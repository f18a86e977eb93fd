"""CREATE FUNCTION, DROP FUNCTION, `Session.register`, and calls of what they have defined."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.catalog.functions import SYSTEM
from headwater.errors import ValidationError
from headwater.python_functions.called import NamedFunction
from headwater.python_functions.declare import PythonFunction, declared
from headwater.python_functions.load import load_function, root_of
from headwater.sql import statements as s
from headwater.sql.paths import split
from headwater.sql.user_calls import UserFunction, bound

__all__ = ["bound_functions", "create_function", "drop_function", "register_function"]

S = TypeVar("S", bound=s.Statement)
_WITHOUT = {"retract": "over updates and deletes (it has no retract)", "merge": "in sessions (it has no merge)"}


def bound_functions(statement: S, catalog: Catalog) -> S:
    """The statement with the user's functions in it, as they are now."""

    def lookup(name: str, node: exp.Expr) -> UserFunction | None:
        return catalog.functions.find(name, catalog.databases.current, statement.position_of(node))

    return bound(statement, lookup)


def create_function(statement: s.CreateFunction, catalog: Catalog, python_files: str) -> tuple[str, ...]:
    """Imports the function's module: its types must be known to whoever calls it. Answers with notes for the user."""
    database = _database(statement, catalog)
    if statement.if_not_exists and catalog.functions.exists(statement.name, database):
        return ()
    directories = _directories(statement, python_files)
    try:
        function = load_function(statement.path, directories)
    except ValidationError as error:
        raise statement.error(error.fact, detail=error.detail, hint=error.hint) from error
    found = (*directories, *root_of(function.target))
    name = split(statement.name)[-1]
    catalog.functions.create(NamedFunction(name, function, statement.path, tuple(dict.fromkeys(found))), database)
    return _notes(name, function)


def drop_function(statement: s.DropFunction, catalog: Catalog) -> None:
    database = _database(statement, catalog)
    if not statement.if_exists or catalog.functions.exists(statement.name, database):
        catalog.functions.drop(statement.name, database)


def register_function(name: str, function: Any, catalog: Catalog) -> tuple[str, ...]:
    """As a temporary system function. Answers with notes for the user."""
    if not name.isidentifier():
        raise ValidationError(f"'{name}' cannot be the name of a function.", hint="Use letters, digits and '_'.")
    made = declared(function)
    catalog.functions.replace(NamedFunction(name, made, "", root_of(made.target)), SYSTEM)
    return _notes(name, made)


def _notes(name: str, function: PythonFunction) -> tuple[str, ...]:
    """What a group keeps for an aggregate function; EXPLAIN says what it is in a query."""
    if function.kind != "aggregate":
        return ()
    if "accumulate" not in function.can:
        why = "it is vectorised" if function.style != "row" else "what create_accumulator returns cannot be stored"
        return (f"A group keeps all values for function '{name}': {why}.",)
    missing = [text for method, text in _WITHOUT.items() if method not in function.can]
    otherwise = f", and all values {' and '.join(missing)}" if missing else ""
    return (f"A group keeps an accumulator for function '{name}'{otherwise}.",)


def _database(statement: s.CreateFunction | s.DropFunction, catalog: Catalog) -> str:
    *given, _ = split(statement.name)
    if statement.system:
        if given:
            raise statement.error("A system function does not belong to a database.", hint="Leave the database out.")
        return SYSTEM
    database = given[0] if given else catalog.databases.current
    catalog.databases.check(database, statement.place)
    return database


def _directories(statement: s.CreateFunction, python_files: str) -> tuple[str, ...]:
    """That of the script, if it is a file, and what 'python.files' names."""
    script = Path(statement.script.name) if statement.script is not None else Path()
    beside = [str(script.resolve().parent)] if script.is_file() else []
    named = [str(Path(part.strip()).resolve()) for part in python_files.split(",") if part.strip()]
    return (*beside, *named)
