"""What the commands that take scripts share: reading them, `key=value` arguments, errors that name file and place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.errors import HeadwaterError, SqlError, ValidationError

if TYPE_CHECKING:
    from headwater.plan.nodes import Write
    from headwater.session import Session
    from headwater.sql.statements import Insert, Statement

__all__ = [
    "Planned",
    "ScriptArguments",
    "ScriptFile",
    "Variables",
    "located",
    "plan_scripts",
    "read_pairs",
    "read_scripts",
]

ScriptArguments = Annotated[
    list[str],
    typer.Argument(metavar="SCRIPT", help="Files of SQL statements, run in this order; - is standard input."),
]
Variables = Annotated[
    list[str] | None, typer.Option("--var", metavar="K=V", help="Value of ${K} in the scripts; may be repeated.")
]


@dataclass(frozen=True)
class ScriptFile:
    """A script's text, and what errors call it."""

    name: str
    text: str


@dataclass(frozen=True)
class Planned:
    """One statement of a script and the plans of its INSERTs."""

    script: ScriptFile
    statement: Statement
    plans: tuple[Write, ...]

    @property
    def inserts(self) -> tuple[Insert, ...]:
        """The INSERTs behind `plans`, in the same order."""
        from headwater.sql import statements as s

        if isinstance(self.statement, s.StatementSet):
            return self.statement.inserts
        return (self.statement,) if isinstance(self.statement, s.Insert) else ()


def read_scripts(paths: Sequence[str]) -> list[ScriptFile]:
    if paths.count("-") > 1:
        raise HeadwaterError("Standard input can be read only once.", hint="Give '-' once.")
    return [_read(path) for path in paths]


def _read(path: str) -> ScriptFile:
    try:
        if path == "-":
            return ScriptFile("<stdin>", sys.stdin.read())
        return ScriptFile(path, Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HeadwaterError(f"There is no file '{path}'.", hint=_near(Path(path))) from None
    except IsADirectoryError:
        raise HeadwaterError(f"'{path}' is a directory.", hint="Name the scripts in it one by one.") from None
    except UnicodeDecodeError as error:
        raise HeadwaterError(f"'{path}' is not UTF-8 text.", detail=f"Byte {error.start} cannot be read.") from None
    except OSError as error:
        raise HeadwaterError(f"'{path}' cannot be read.", detail=str(error.strerror)) from None


def _near(path: Path) -> str:
    """A file beside it with a similar name, if there is one."""
    from headwater.options.closest import did_you_mean

    beside = [p.name for p in path.parent.glob("*.sql")] if path.parent.is_dir() else []
    return did_you_mean(path.name, beside)


def read_pairs(given: Sequence[str] | None, option: str) -> dict[str, str]:
    """`k=v` arguments as a dictionary; anything else is a usage error."""
    pairs: dict[str, str] = {}
    for text in given or ():
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"'{text}' is not KEY=VALUE.", param_hint=option)
        if key.strip() in pairs:
            raise typer.BadParameter(f"'{key.strip()}' is given twice.", param_hint=option)
        pairs[key.strip()] = value
    return pairs


def plan_scripts(session: Session, scripts: Sequence[ScriptFile]) -> list[Planned]:
    """Validate the scripts one after the other in `session`: no Spark, no broker."""
    from headwater.sql.script import parse_script

    planned = []
    for script in scripts:
        with located(script):
            statements = parse_script(script.text, script.name, session.variables)
        for statement in statements:
            with located(script, statement):
                planned.append(Planned(script, statement, tuple(session._define(statement))))
    return planned


@contextmanager
def located(script: ScriptFile, statement: Statement | None = None) -> Iterator[None]:
    """Errors inside know the script, and if they have no place of their own, that of the statement."""
    try:
        yield
    except SqlError as error:
        error.script = error.script or script.name
        raise
    except ValidationError as error:
        if statement is None:
            raise
        raise SqlError(
            error.fact, position=statement.position, script=script.name, detail=error.detail, hint=error.hint
        ) from error
