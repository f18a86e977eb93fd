"""CREATE FUNCTION, DROP FUNCTION, `Session.register`, and calls of what they have defined."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from sqlglot import exp

from headwater.catalog.catalog import Catalog
from headwater.catalog.functions import SYSTEM
from headwater.errors import ValidationError
from headwater.python_functions.called import NamedFunction
from headwater.python_functions.declare import declared
from headwater.python_functions.load import load_function, root_of
from headwater.sql import statements as s
from headwater.sql.paths import split
from headwater.sql.user_calls import UserFunction, bound

__all__ = ["bound_functions", "create_function", "drop_function", "register_function"]

S = TypeVar("S", bound=s.Statement)
_NOT_CALLED = {
    "retract": "the function is evaluated over the values that its group has, which is the same if retract takes back "
    "what accumulate has done. See docs/functions-python.md.",
    "merge": "a group is never accumulated in parts.",
}


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
    return tuple(
        f"{method} of function '{name}' is not called: {_NOT_CALLED[method]}" for method in function.not_called
    )


def drop_function(statement: s.DropFunction, catalog: Catalog) -> None:
    database = _database(statement, catalog)
    if not statement.if_exists or catalog.functions.exists(statement.name, database):
        catalog.functions.drop(statement.name, database)


def register_function(name: str, function: Any, catalog: Catalog) -> None:
    """As a temporary system function."""
    if not name.isidentifier():
        raise ValidationError(f"'{name}' cannot be the name of a function.", hint="Use letters, digits and '_'.")
    made = declared(function)
    catalog.functions.replace(NamedFunction(name, made, "", root_of(made.target)), SYSTEM)


def _database(statement: s.CreateFunction | s.DropFunction, catalog: Catalog) -> str:
    *given, _ = split(statement.name)
    if statement.system:
        if given:
            raise statement.error("A system function belongs to no database.", hint="Leave the database out.")
        return SYSTEM
    database = given[0] if given else catalog.databases.current
    catalog.databases.check(database, statement.position)
    return database


def _directories(statement: s.CreateFunction, python_files: str) -> tuple[str, ...]:
    """That of the script, if it is a file, and what 'python.files' names."""
    script = Path(statement.script.name) if statement.script is not None else Path()
    beside = [str(script.resolve().parent)] if script.is_file() else []
    named = [str(Path(part.strip()).resolve()) for part in python_files.split(",") if part.strip()]
    return (*beside, *named)
