"""What the commands that take scripts share: reading them, `key=value` arguments, errors that name file and place."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.errors import HeadwaterError, SqlError, ValidationError

if TYPE_CHECKING:
    from headwater.options.project import ProjectFile
    from headwater.session.definitions import Definitions, JobPlan, StatementOutcome
    from headwater.sql.statements import Statement

__all__ = [
    "Environment",
    "Planned",
    "ScriptArguments",
    "ScriptFile",
    "Variables",
    "located",
    "plan_scripts",
    "project_of",
    "read_pairs",
    "read_scripts",
    "variables_of",
]

ScriptArguments = Annotated[
    list[str],
    typer.Argument(metavar="SCRIPT", help="SQL scripts, run in this order; - is standard input."),
]
Variables = Annotated[
    list[str] | None, typer.Option("--var", metavar="K=V", help="Value of ${K} in the scripts; may be repeated.")
]

Environment = Annotated[
    str,
    typer.Option("--env", metavar="NAME", envvar="HEADWATER_ENV", help="An environment of headwater.toml."),
]


@dataclass(frozen=True)
class ScriptFile:
    """A script's text, and what errors call it."""

    name: str
    text: str


@dataclass(frozen=True)
class Planned:
    """One statement of a script and what it gave: its INSERTs, its query."""

    script: ScriptFile
    statement: Statement
    outcome: StatementOutcome

    @property
    def jobs(self) -> tuple[JobPlan, ...]:
        return self.outcome.jobs

    def origin(self, job: JobPlan) -> str:
        """Where its INSERT is written: 'totals.sql:12'."""
        return f"{self.script.name}:{job.insert.position.line}"


def read_scripts(paths: Sequence[str]) -> list[ScriptFile]:
    # The second one would be empty, and a script without statements is no error.
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
    from headwater.options.closest import closest

    # By what they do not have in common: with '.sql', any two short names are similar.
    beside = [p.stem for p in path.parent.glob("*.sql")] if path.parent.is_dir() else []
    near = closest(path.stem, beside)
    return f"Did you mean '{near}.sql'?" if near is not None else ""


def project_of(scripts: Sequence[ScriptFile], environment: str) -> ProjectFile:
    """The headwater.toml beside the first script; for standard input, the one in the current directory."""
    from headwater.options.project import find_project, read_project

    directory = Path(scripts[0].name).parent if scripts and scripts[0].name not in ("<stdin>", "-e") else Path()
    return replace(read_project(find_project(directory), environment), directory=directory)


def variables_of(project: ProjectFile, var: Sequence[str] | None) -> Mapping[str, str]:
    """Those of the command line, of headwater.toml, and what is outside: ${env:…}, ${file:…}."""
    from headwater.options.variables import ScriptVariables

    return ScriptVariables({**project.variables, **read_pairs(var, "--var")}, project.directory)


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


def plan_scripts(
    definitions: Definitions, scripts: Sequence[ScriptFile], variables: Mapping[str, str]
) -> list[Planned]:
    """Validate the scripts one after the other: no Spark, no broker. `definitions` has what they define. Raises all
    that is wrong in them, each error with its place."""
    from headwater.session.script_check import ScriptProblem, check_script, raise_faults

    planned: list[Planned] = []
    faults: list[ScriptProblem] = []
    for script in scripts:
        checked = check_script(definitions, script.text, script.name, variables)
        planned += [Planned(script, statement, outcome) for statement, outcome in checked.statements]
        faults += [ScriptProblem(fault.placed) for fault in checked.faults]
    raise_faults(faults)
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
        position = error.position or statement.place
        raise SqlError(
            error.fact, position=position, script=script.name, detail=error.detail, hint=error.hint
        ) from error
