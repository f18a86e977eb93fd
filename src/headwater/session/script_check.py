"""A script checked to its end: every statement that is wrong, not only the first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headwater.errors import DependentError, HeadwaterError, ScriptErrors, SqlError, ValidationError
from headwater.session.definitions import Definitions, StatementOutcome
from headwater.sql import statements as s
from headwater.sql.parser import FaultyStatement, parse_all
from headwater.sql.script import Script

__all__ = ["Checked", "ScriptProblem", "check_script", "raise_faults"]


@dataclass(frozen=True)
class ScriptProblem:
    """What is wrong, and the statement in which it was found; None if that could not be parsed."""

    error: HeadwaterError
    statement: s.Statement | None = None

    @property
    def placed(self) -> HeadwaterError:
        """The error with a position: its own, or that of the statement."""
        error, statement = self.error, self.statement
        if statement is None:
            return error
        if not isinstance(error, SqlError):
            placed = statement.error(error.fact, detail=error.detail, hint=error.hint)
            placed.position = getattr(error, "position", None) or placed.position
            return placed
        error.script = error.script or (statement.script.name if statement.script is not None else "")
        return error


@dataclass
class Checked:
    """What is valid, with what it gave, and what is not. A statement that is wrong only because another one is
    counts as neither."""

    statements: list[tuple[s.Statement, StatementOutcome]] = field(default_factory=list)
    faults: list[ScriptProblem] = field(default_factory=list)


def raise_faults(faults: list[ScriptProblem]) -> None:
    """The one error there is, or all of them together."""
    if len(faults) == 1:
        raise faults[0].error
    if faults:
        raise ScriptErrors([fault.placed for fault in faults])


def check_script(
    definitions: Definitions, text: str, name: str = "", variables: Mapping[str, str] | None = None
) -> Checked:
    """Apply all statements that are right. `definitions` has what they define."""
    checked = Checked()
    try:
        found = list(parse_all(Script(text, name, variables)))
    except SqlError as error:  # a quote that nothing closes hides all that follows
        return Checked(faults=[ScriptProblem(error)])
    for statement in found:
        if isinstance(statement, FaultyStatement):
            checked.faults.append(ScriptProblem(statement.error))
            # Statements that use it are then known to be wrong only because of this one, and are not reported as well.
            definitions.catalog.mark_broken(statement.creates)
        else:
            _apply(definitions, statement, checked)
    return checked


def _apply(definitions: Definitions, statement: s.Statement, checked: Checked) -> None:
    try:
        checked.statements.append((statement, definitions.outcome(statement)))
    except (SqlError, ValidationError) as error:
        checked.faults += _faults(definitions, statement, error)
        if isinstance(statement, s.CreateTable | s.CreateView | s.CreateFunction):
            definitions.catalog.mark_broken(statement.name)


def _faults(definitions: Definitions, statement: s.Statement, error: HeadwaterError) -> Iterator[ScriptProblem]:
    """Those of all INSERTs of a statement set, not only of the first one that is wrong."""
    if isinstance(statement, s.StatementSet):
        for insert in statement.inserts:
            try:
                # On a copy: the names of jobs that a faulty set would have taken stay free.
                definitions.copy().outcome(insert)
            except (SqlError, ValidationError) as other:
                yield from _faults(definitions, insert, other)
    elif not isinstance(error, DependentError):
        yield ScriptProblem(error, statement)
