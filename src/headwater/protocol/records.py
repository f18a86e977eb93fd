"""What the log of a checkpoint says, as values that turn into JSON and back.

    genesis   batch 0: what the job is, where it starts and ends
    claim     a run takes the checkpoint over from all before it
    intent    batch n reads exactly this, decided once; a replay executes what is written
    commit    batch n is done: the positions after it and every file of the state

All are immutable; positions, splits and facts inside them are plain JSON and must not be changed either.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from headwater.protocol.batch_ids import BatchId
from headwater.protocol.storage import check_name
from headwater.state.manifest import RunFile

__all__ = [
    "FORMAT_VERSION",
    "Claim",
    "Commit",
    "Genesis",
    "Intent",
    "Json",
    "Position",
    "RunFile",
    "StateFiles",
    "canonical",
    "files_of",
    "state_name",
]

FORMAT_VERSION = 2
"""Of everything in a checkpoint: the log and the names in it, the records, the files of the state."""

Json: TypeAlias = dict[str, Any]
Position: TypeAlias = dict[str, int]


StateFiles: TypeAlias = Mapping[str, Mapping[int, Mapping[str, tuple[RunFile, ...]]]]
"""state[operator][state partition][table]: its runs, oldest first. Complete: what is not named is not there."""


def files_of(state: StateFiles) -> Iterator[RunFile]:
    return (
        run
        for partitions in state.values()
        for tables in partitions.values()
        for runs in tables.values()
        for run in runs
    )


def state_name(operator: str, partition: int, attempt: str, unique: str) -> str:
    """The name of a new file of the state. `attempt` is the one that execution was given, so that whatever a failed one
    leaves behind can be recognised; `unique` differs between tasks, copies of a task, tables and runs."""
    return check_name(f"state/{operator}/{partition}/{attempt}-{unique}.arrow")


@dataclass(frozen=True)
class Genesis:
    """What the checkpoint stands for. `identity` is unique: it tells this checkpoint from any other that was or will be
    in the same place. `facts` are what execution compares with the current plan (the plan fingerprint, types, …)."""

    identity: str
    fingerprint: str
    partitions: int
    start: list[Position]
    bounds: list[Position | None]
    topics: list[Json] = field(default_factory=list)
    facts: Json = field(default_factory=dict)

    def to_json(self) -> Json:
        return dict(vars(self))

    @staticmethod
    def from_json(content: Json) -> Genesis:
        return Genesis(**content)


@dataclass(frozen=True)
class Claim:
    """Who has taken the checkpoint over: enough to find the process."""

    run: str
    host: str = ""
    process: int = 0
    time: int = 0

    def to_json(self) -> Json:
        return dict(vars(self))

    @staticmethod
    def from_json(content: Json) -> Claim:
        return Claim(**content)


@dataclass(frozen=True)
class Intent:
    """All that decides what batch `batch` computes, beside the state before it.

    start, end   per source, from where to where it reads
    bounds       per source, where the job ends; None: never
    splits       splits[source][task]: the splits that a task reads
    route        how rows reach the writers
    time         processing time in milliseconds
    topics       per source, facts such as the id of its topic
    sink         facts that the sink wants to find again, also if the batch never commits
    watermarks   per source, its watermark in the batch before and in this one, in milliseconds; None: none yet
    """

    batch: int
    start: list[Position]
    end: list[Position]
    bounds: list[Position | None]
    splits: list[list[list[Any]]]
    route: Json
    time: int
    topics: list[Json] = field(default_factory=list)
    sink: Json = field(default_factory=dict)
    watermarks: list[list[int | None]] = field(default_factory=list)

    @property
    def id(self) -> BatchId:
        return BatchId(self.batch, self.digest)

    @cached_property
    def digest(self) -> str:
        """What a sink's committed batch id carries: the same only for the same content."""
        return hashlib.sha256(canonical(self.to_json())).hexdigest()[:32]

    def to_json(self) -> Json:
        # `vars` also has the cached digest, which cannot be part of what it is made of.
        absent = {"digest"} if self.watermarks else {"digest", "watermarks"}
        return {key: value for key, value in vars(self).items() if key not in absent}

    @staticmethod
    def from_json(content: Json) -> Intent:
        return Intent(**content)


@dataclass(frozen=True)
class Commit:
    """Batch `batch` is done, by `attempt`; `intent` is the digest of its intent. A commit is complete: nothing before
    it is needed to go on from it.

    positions    per source, where the next batch starts
    watermarks   per source and partition, after all that was read, in milliseconds
    reached      per source, the watermark that operators were given in this batch
    state        every file of the state, in `partitions` state partitions
    sink         facts that the sink wants to find again
    counts       rows in, rows out and the like, of this batch
    """

    batch: int
    attempt: str
    intent: str
    partitions: int
    positions: list[Position]
    bounds: list[Position | None]
    watermarks: list[Position] = field(default_factory=list)
    state: StateFiles = field(default_factory=dict)
    sink: Json = field(default_factory=dict)
    topics: list[Json] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    reached: list[int | None] = field(default_factory=list)

    @property
    def id(self) -> BatchId:
        return BatchId(self.batch, self.intent)

    @staticmethod
    def of_genesis(genesis: Genesis) -> Commit:
        return Commit(0, "", "", genesis.partitions, genesis.start, genesis.bounds, topics=genesis.topics)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(run.name for run in files_of(self.state))

    def to_json(self) -> Json:
        content = {key: value for key, value in vars(self).items() if key != "names"}
        content["state"] = {
            operator: {
                str(partition): {table: [run.to_json() for run in runs] for table, runs in tables.items()}
                for partition, tables in partitions.items()
            }
            for operator, partitions in self.state.items()
        }
        return content

    @staticmethod
    def from_json(content: Json) -> Commit:
        state = {
            operator: {
                int(partition): {table: tuple(map(_run_file, runs)) for table, runs in tables.items()}
                for partition, tables in partitions.items()
            }
            for operator, partitions in content["state"].items()
        }
        return Commit(**{**content, "state": state})


def _run_file(content: list[Any]) -> RunFile:
    run = RunFile.from_json(content)
    check_name(run.name)
    return run


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def canonical(content: Any) -> bytes:
    """One text for one content, whatever the order of its keys."""
    return _ENCODER.encode(content).encode()
