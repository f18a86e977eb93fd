"""A case file as data: topics, a script, messages in, messages out. `parse` reads it from text, `play` plays it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Literal

__all__ = [
    "Avro",
    "Block",
    "Case",
    "Directive",
    "Expect",
    "ExpectError",
    "ExpectMode",
    "ExpectPlan",
    "ExpectTable",
    "Message",
    "Payload",
    "Phase",
    "Produce",
    "Restart",
    "Sql",
    "Topic",
]

Phase = Literal["create", "insert", "run"]


@dataclass(frozen=True)
class Avro:
    """A payload written as JSON that is Avro on the wire, by the columns of the table that owns the topic."""

    value: Any


Payload = bytes | Avro | None


@dataclass(frozen=True)
class Message:
    """One line `key => value`. What is None or () was not written: left to Kafka, or not looked at."""

    key: Payload
    value: Payload
    partition: int | None = None
    timestamp: int | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    line: int = 0


class ExpectMode(Enum):
    """How the messages of an `expect` are compared with those that arrived since the last look at the topic.

    EXACT: the same, partition by partition in order. PER_KEY: for every key the same in order. ANY_ORDER: the same.
    FINAL: the last message of every key of the whole topic, without keys that are deleted.
    """

    EXACT = "exact"
    PER_KEY = "per-key"
    ANY_ORDER = "any-order"
    FINAL = "final"


@dataclass(frozen=True)
class Block:
    """Lines [first, last) of the file, counted from 1: the body below a directive, which `--rewrite` may replace."""

    first: int
    last: int


@dataclass(frozen=True)
class Topic:
    name: str
    partitions: int = 1
    compacted: bool = False
    line: int = 0


@dataclass(frozen=True)
class Sql:
    """`text` has an empty line for every line of the file before it, so that errors in it name the file's own lines."""

    text: str
    line: int = 0


@dataclass(frozen=True)
class Produce:
    """Messages that the jobs see in one batch."""

    topic: str
    messages: tuple[Message, ...]
    line: int = 0


@dataclass(frozen=True)
class Expect:
    topic: str
    mode: ExpectMode
    messages: tuple[Message, ...]
    body: Block
    line: int = 0


@dataclass(frozen=True)
class ExpectTable:
    """The rows of a table now, in any order, as text."""

    table: str
    rows: tuple[tuple[str, ...], ...]
    body: Block
    line: int = 0


@dataclass(frozen=True)
class ExpectError:
    """create: the SQL above cannot be read or defined; insert: an INSERT in it cannot be planned; run: a job stops."""

    phase: Phase
    wanted: tuple[str, ...]
    body: Block
    line: int = 0


@dataclass(frozen=True)
class ExpectPlan:
    """What EXPLAIN says of the INSERTs of the SQL above."""

    text: str
    body: Block
    line: int = 0


@dataclass(frozen=True)
class Restart:
    """All jobs end and the script starts again on the same checkpoint; SQL right below takes the old script's place."""

    kill: bool
    line: int = 0


Directive = Topic | Sql | Produce | Expect | ExpectTable | ExpectError | ExpectPlan | Restart


@dataclass(frozen=True)
class Case:
    """`not_yet` is the reason why it is known to fail; such a case fails if it passes."""

    path: str
    directives: tuple[Directive, ...]
    not_yet: str = ""
    text: str = field(default="", repr=False)

    @property
    def topics(self) -> tuple[Topic, ...]:
        return tuple(d for d in self.directives if isinstance(d, Topic))
