"""Every error Headwater raises on purpose.

    HeadwaterError              anything that is shown to a user: a short fact, a detail, a hint
    ├── SqlError                the text of a script is wrong; carries line, column and the source line
    │   └── DependentError      a statement uses a table or view whose own statement is wrong
    ├── ScriptErrors            several statements of a script are wrong; `errors` has each of them
    ├── ValidationError         a statement is well formed, but a table, option or query in it is not allowed
    ├── JobError                a running job stopped
    │   ├── BadRecordError      a message could not be decoded; names topic, partition and offset
    │   ├── ResultClosedError   nobody reads the rows of a SELECT any more: its own job hears of it, no user does
    │   ├── ResultTooLargeError   the rows of a SELECT are more than the driver holds
    │   ├── DataLossError       offsets that the job still needs are gone from the broker
    │   ├── IncompatibleCheckpointError   the checkpoint belongs to another job or another version of it
    │   │   ├── CheckpointTakenError      another run has taken the checkpoint over, or still holds it
    │   │   └── DamagedCheckpointError    a file of the checkpoint is not what it was written as
    │   │       └── MissingFileError      a file that the checkpoint names is not there
    │   ├── StaleCheckpointError   the sink is ahead of the checkpoint, which is an older copy
    │   ├── UnknownSchemaError  a message names a schema that the registry has not been asked for yet; it passes
    │   └── WorkerLostError     a Python worker of Spark ended in the middle of its work; it may pass
    ├── KafkaUnavailableError   the broker cannot be reached or cannot answer; it may pass
    │   ├── KafkaNotReadyError  the broker answers, but has no leader or coordinator for the moment
    │   └── KafkaRefusedError   the broker said no: login, certificate, permission, no such topic
    ├── RegistryUnavailableError   the schema registry cannot be reached or cannot answer; it may pass
    │   └── RegistryRefusedError   the registry said no: login, certificate, permission, schema
    ├── StorageUnavailableError    the storage of a checkpoint cannot be reached or cannot answer; it may pass
    │   └── StorageRefusedError    the storage said no: login, permission, address, no such bucket
    └── SetupError       this machine lacks something: Java, jars, a free port

`str(error)` is the whole message for a person: fact, detail, then `Hint: …`. No error carries a secret.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

__all__ = [
    "BadRecordError",
    "CheckpointTakenError",
    "DamagedCheckpointError",
    "DataLossError",
    "DependentError",
    "HeadwaterError",
    "IncompatibleCheckpointError",
    "JobError",
    "KafkaNotReadyError",
    "KafkaRefusedError",
    "KafkaUnavailableError",
    "MissingFileError",
    "Position",
    "RegistryRefusedError",
    "RegistryUnavailableError",
    "ResultClosedError",
    "ResultTooLargeError",
    "ScriptErrors",
    "SetupError",
    "SqlError",
    "StaleCheckpointError",
    "StorageRefusedError",
    "StorageUnavailableError",
    "UnknownSchemaError",
    "ValidationError",
    "WorkerLostError",
]


# The longest part of a line of SQL in an error: a terminal has 80 columns, and the line number stands in front.
_WIDEST = 68


class HeadwaterError(Exception):
    """Base of all: `fact` is one short sentence, `detail` what was seen, `hint` what to do."""

    def __init__(self, fact: str, *, detail: str = "", hint: str = "") -> None:
        self.fact = fact
        self.detail = detail
        self.hint = hint
        super().__init__(fact)

    def __str__(self) -> str:
        return self._message()

    def _message(self, place: str = "") -> str:
        hint = f"Hint: {self.hint}" if self.hint else ""
        return "\n".join([self.fact, *filter(None, (place, self.detail, hint))])


@dataclass(frozen=True)
class Position:
    """A place in a script: 1-based line and column, and the text of that line."""

    line: int
    column: int
    text: str = field(repr=False)
    length: int = 1

    def render(self, name: str = "") -> str:
        where = f"{name}:{self.line}:{self.column}" if name else f"line {self.line}, column {self.column}"
        gutter = str(self.line)
        text, column, length = self._part()
        caret = " " * (column - 1) + "^" * max(1, length)
        return f"{where}\n  {gutter} | {text}\n  {' ' * len(gutter)} | {caret}"

    def _part(self) -> tuple[str, int, int]:
        """What of a long line is shown, and where the place is in that: a caret below a line that a terminal has
        broken would point at nothing."""
        if len(self.text) <= _WIDEST or self.column > len(self.text):
            return self.text, self.column, self.length
        length = min(self.length, _WIDEST // 2)
        first = min(max(0, self.column - 1 - (_WIDEST - length) // 2), len(self.text) - _WIDEST)
        cut = self.text[first : first + _WIDEST]
        before, behind = "…" if first else "", "…" if first + _WIDEST < len(self.text) else ""
        return f"{before}{cut}{behind}", self.column - first + len(before), length


class SqlError(HeadwaterError):
    """The text of a script is wrong at a known place."""

    def __init__(
        self, fact: str, *, position: Position | None = None, script: str = "", detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(fact, detail=detail, hint=hint)
        self.position = position
        self.script = script

    def __str__(self) -> str:
        return self._message(f"  at {self.position.render(self.script)}" if self.position is not None else "")


class DependentError(SqlError):
    """What is wrong is the statement that should have created what this one uses."""


class ScriptErrors(HeadwaterError):
    """Several statements are wrong, each for a reason of its own."""

    def __init__(self, errors: Sequence[HeadwaterError]) -> None:
        super().__init__(f"{len(errors)} statements are wrong.")
        self.errors = tuple(errors)

    def __str__(self) -> str:
        return "\n\n".join([self.fact, *(str(error) for error in self.errors)])


class ValidationError(HeadwaterError):
    """A table definition, an option or a query is not allowed. `position` is the place in its statement, if it is
    known; whoever knows the script adds its name."""

    def __init__(self, fact: str, *, detail: str = "", hint: str = "", position: Position | None = None) -> None:
        super().__init__(fact, detail=detail, hint=hint)
        self.position = position

    def __str__(self) -> str:
        return self._message(f"  at {self.position.render()}" if self.position is not None else "")


class JobError(HeadwaterError):
    """A running job stopped because of this."""


class BadRecordError(JobError):
    """A message could not be decoded."""


class ResultClosedError(JobError):
    """The reader of a SELECT has gone."""


class ResultTooLargeError(JobError):
    """The result of a SELECT does not fit into what the driver may hold."""


class DataLossError(JobError):
    """Messages the job had not read yet are gone."""


class IncompatibleCheckpointError(JobError):
    """The checkpoint was written by a job this one cannot continue."""


class CheckpointTakenError(IncompatibleCheckpointError):
    """Another run writes to the same checkpoint. The one that was started last goes on; all others stop."""


class DamagedCheckpointError(IncompatibleCheckpointError):
    """A file of the checkpoint cannot be read, or is not what the commit that names it says."""


class MissingFileError(DamagedCheckpointError):
    """A file that the checkpoint names is not there; `name` is relative to the checkpoint."""

    def __init__(self, name: str, location: str) -> None:
        self.name = name
        super().__init__(
            f"File '{name}' of the checkpoint is missing.",
            detail=f"Checkpoint: {location}",
            hint="Restore the checkpoint from a copy, or start with a new --checkpoint directory (the job then reads "
            "its input again).",
        )

    def __reduce__(self) -> tuple[type[MissingFileError], tuple[str, str]]:
        return type(self), (self.name, self.detail.removeprefix("Checkpoint: "))


class StaleCheckpointError(JobError):
    """The sink already has a batch that this checkpoint does not know: going on would lose or double rows."""


class UnknownSchemaError(JobError):
    """A message names a schema that is not known yet. A running job asks the registry for it and tries again."""


class WorkerLostError(JobError):
    """A Python worker of Spark was killed or crashed. A running job tries again."""


class KafkaUnavailableError(HeadwaterError):
    """The broker cannot be reached, or cannot answer now. A running job tries again."""


class KafkaNotReadyError(KafkaUnavailableError):
    """The broker answers, but a partition has no leader, or a group no coordinator, for the moment."""


class KafkaRefusedError(KafkaUnavailableError):
    """The broker refused: not authenticated, not allowed, no such topic. Trying again would not help."""


class RegistryUnavailableError(HeadwaterError):
    """The schema registry cannot be reached, or cannot answer now. A running job tries again."""


class RegistryRefusedError(RegistryUnavailableError):
    """The registry refused: not authenticated, not allowed, not compatible. Trying again would not help."""


class StorageUnavailableError(HeadwaterError):
    """The storage of a checkpoint cannot be reached, or cannot answer now. A running job tries again."""


class StorageRefusedError(StorageUnavailableError):
    """The storage refused: not authenticated, not allowed, not supported. Trying again would not help."""


class SetupError(HeadwaterError):
    """The machine lacks something Headwater needs."""
