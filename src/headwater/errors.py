"""Every error Headwater raises on purpose.

    HeadwaterError              anything a user can be told about: a short fact, a detail, a hint
    ├── SqlError                the text of a script is wrong; carries line, column and the source line
    ├── ValidationError         a statement is well formed, but a table, option or query in it is not allowed
    ├── JobError                a running job stopped
    │   ├── BadRecordError      a message could not be decoded; names topic, partition and offset
    │   ├── DataLossError       offsets that the job still needs are gone from the broker
    │   ├── IncompatibleCheckpointError   the checkpoint belongs to another job or another version of it
    │   ├── UnknownSchemaError  a message names a schema that the registry has not been asked for yet; it passes
    │   └── WorkerLostError     a Python worker of Spark ended in the middle of its work; it may pass
    ├── KafkaUnavailableError   the broker cannot be reached or cannot answer; it may pass
    │   └── KafkaRefusedError   the broker said no: login, certificate, permission, no such topic
    ├── RegistryUnavailableError   the schema registry cannot be reached or cannot answer; it may pass
    │   └── RegistryRefusedError   the registry said no: login, certificate, permission, schema
    └── SetupError       this machine lacks something: Java, jars, a free port

`str(error)` is the whole message for a person: fact, detail, then `Hint: …`. No error carries a secret.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "BadRecordError",
    "DataLossError",
    "HeadwaterError",
    "IncompatibleCheckpointError",
    "JobError",
    "KafkaRefusedError",
    "KafkaUnavailableError",
    "Position",
    "RegistryRefusedError",
    "RegistryUnavailableError",
    "SetupError",
    "SqlError",
    "UnknownSchemaError",
    "UnusualMessagesError",
    "ValidationError",
    "WorkerLostError",
]


class HeadwaterError(Exception):
    """Base of all: `fact` is one short sentence, `detail` what was seen, `hint` what to do."""

    def __init__(self, fact: str, *, detail: str = "", hint: str = "") -> None:
        self.fact = fact
        self.detail = detail
        self.hint = hint
        super().__init__(fact)

    def __str__(self) -> str:
        parts = [self.fact]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)


@dataclass(frozen=True)
class Position:
    """A place in a script: 1-based line and column, and the text of that line."""

    line: int
    column: int
    text: str
    length: int = 1

    def render(self, name: str = "") -> str:
        where = f"{name}:{self.line}:{self.column}" if name else f"line {self.line}, column {self.column}"
        gutter = str(self.line)
        caret = " " * (self.column - 1) + "^" * max(1, self.length)
        return f"{where}\n  {gutter} | {self.text}\n  {' ' * len(gutter)} | {caret}"


class SqlError(HeadwaterError):
    """The text of a script is wrong at a known place."""

    def __init__(
        self, fact: str, *, position: Position | None = None, script: str = "", detail: str = "", hint: str = ""
    ) -> None:
        super().__init__(fact, detail=detail, hint=hint)
        self.position = position
        self.script = script

    def __str__(self) -> str:
        if self.position is None:
            return super().__str__()
        parts = [f"{self.fact}", f"  at {self.position.render(self.script)}"]
        if self.detail:
            parts.append(self.detail)
        if self.hint:
            parts.append(f"Hint: {self.hint}")
        return "\n".join(parts)


class ValidationError(HeadwaterError):
    """A table definition, an option or a query is not allowed."""


class JobError(HeadwaterError):
    """A running job stopped because of this."""


class BadRecordError(JobError):
    """A message could not be decoded."""


class DataLossError(JobError):
    """Messages the job had not read yet are gone."""


class IncompatibleCheckpointError(JobError):
    """The checkpoint was written by a job this one cannot continue."""


class UnknownSchemaError(JobError):
    """A message names a schema that is not known yet. A running job asks the registry for it and tries again."""


class UnusualMessagesError(JobError):
    """A batch cannot be read by the short cut that was tried. A job reads it the longer way; nobody is told."""


class WorkerLostError(JobError):
    """A Python worker of Spark was killed or crashed. A running job tries again."""


class KafkaUnavailableError(HeadwaterError):
    """The broker cannot be reached, or cannot answer now. A running job tries again."""


class KafkaRefusedError(KafkaUnavailableError):
    """The broker refused: not authenticated, not allowed, no such topic. Trying again would not help."""


class RegistryUnavailableError(HeadwaterError):
    """The schema registry cannot be reached, or cannot answer now. A running job tries again."""


class RegistryRefusedError(RegistryUnavailableError):
    """The registry refused: not authenticated, not allowed, not compatible. Trying again would not help."""


class SetupError(HeadwaterError):
    """The machine lacks something Headwater needs."""
