"""Replay modes: every case is played as written, and again with its input in other batches and with crashes.

As written, everything is compared. The other modes may change how many messages come out, but never what they add up
to: of an `expect` only the outcome counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import cycle

from headwater.testing.case import (
    Case,
    Directive,
    Expect,
    ExpectError,
    ExpectMode,
    ExpectTable,
    Message,
    Produce,
    Restart,
    Sql,
)
from headwater.testing.messages import identity

__all__ = [
    "Combined",
    "ReplayMode",
    "ReplayOutcome",
    "Rows",
    "Step",
    "outcomes",
    "replay_modes_of",
    "settings_of_runs",
    "steps",
]


class ReplayMode(Enum):
    """ONE_BATCH: all input that follows the script at once, decoded in small chunks. ONE_BY_ONE: a batch per message.
    KILLS: every batch crashes once, before it is computed, before it is written or before it is committed in turn, and
    its jobs start again, with chunks of another size."""

    AS_WRITTEN = "as-written"
    ONE_BATCH = "one-batch"
    ONE_BY_ONE = "one-by-one"
    KILLS = "kills"


Rows = dict[str | bytes | None, Message | None]


@dataclass(frozen=True)
class Combined:
    """Blocks that the jobs see in one batch."""

    blocks: tuple[Produce, ...]

    @property
    def line(self) -> int:
        return self.blocks[0].line


@dataclass(frozen=True)
class ReplayOutcome:
    """What a topic must amount to in the end, from everything the case expects of it.

    `rows` has the last message of every key that is not deleted, by the key's identity; None where the case leaves it
    open. `log` are the messages without a key. `line` is that of the last `expect`.
    """

    topic: str
    rows: Rows
    log: tuple[Message, ...]
    line: int


Step = Directive | Combined | ReplayOutcome


def replay_modes_of(case: Case) -> tuple[ReplayMode, ...]:
    """Those that make sense. Without input there is nothing to replay; where jobs fail or change, blocks stay whole;
    and batches that are the same as written are not played twice."""
    blocks = [d for d in case.directives if isinstance(d, Produce)]
    fails = any(isinstance(d, ExpectError) and d.phase == "run" for d in case.directives)
    if case.not_yet or fails or not blocks:
        return (ReplayMode.AS_WRITTEN,)
    left_out = set()
    if len(blocks) == 1 or _script_changes(case):
        left_out.add(ReplayMode.ONE_BATCH)
    if all(len(block.messages) == 1 for block in blocks):
        left_out.add(ReplayMode.ONE_BY_ONE)
    return tuple(mode for mode in ReplayMode if mode not in left_out)


def _script_changes(case: Case) -> bool:
    following = zip(case.directives, case.directives[1:], strict=False)
    return any(isinstance(before, Restart) and isinstance(after, Sql) for before, after in following)


_SMALL_CHUNKS = {"headwater.source.chunk-rows": "2"}


def settings_of_runs(mode: ReplayMode) -> Iterator[Mapping[str, str]]:
    """What is set for each run of the script, from its first start on."""
    if mode is ReplayMode.ONE_BATCH:
        return cycle((_SMALL_CHUNKS,))
    # A batch that crashed is computed again in other chunks: its results must not depend on them.
    return cycle((_SMALL_CHUNKS, {}) if mode is ReplayMode.KILLS else ({},))


def steps(case: Case, mode: ReplayMode) -> tuple[Step, ...]:
    if mode is ReplayMode.AS_WRITTEN:
        return case.directives
    lasting = [d for d in case.directives if not isinstance(d, Expect) or d.mode is ExpectMode.FINAL]
    if mode is ReplayMode.ONE_BATCH:
        return (*_one_batch(lasting), *outcomes(case))
    if mode is ReplayMode.ONE_BY_ONE:
        lasting = [step for d in lasting for step in _one_by_one(d)]
    return (*lasting, *outcomes(case))


def _one_by_one(directive: Directive) -> Iterable[Directive]:
    if not isinstance(directive, Produce):
        return (directive,)
    return (replace(directive, messages=(message,), line=message.line) for message in directive.messages)


def _one_batch(directives: list[Directive]) -> list[Step]:
    """Blocks behind the last SQL are produced together; checks before the last of them would come too early."""
    last_sql = max((i for i, d in enumerate(directives) if isinstance(d, Sql)), default=-1)
    moved = [i for i, d in enumerate(directives) if isinstance(d, Produce) and i > last_sql]
    if not moved:
        return list(directives)
    start, stop = last_sql + 1, moved[-1] + 1
    together = Combined(tuple(d for d in directives[start:stop] if isinstance(d, Produce)))
    # What these would see of the first blocks never exists if all blocks are one batch.
    early = (Produce, Expect, ExpectTable, Restart)
    kept = [d for d in directives[start:stop] if not isinstance(d, early)]
    return [*directives[:start], *kept, together, *directives[stop:]]


def outcomes(case: Case) -> tuple[ReplayOutcome, ...]:
    """For every topic that is expected anything of, what all its expectations amount to."""
    expected: dict[str, list[Expect]] = {}
    for directive in case.directives:
        if isinstance(directive, Expect):
            expected.setdefault(directive.topic, []).append(directive)
    return tuple(_outcome(topic, blocks) for topic, blocks in expected.items())


def _outcome(topic: str, blocks: list[Expect]) -> ReplayOutcome:
    rows: Rows = {}
    log: list[Message] = []
    for block in blocks:
        if block.mode is ExpectMode.FINAL:
            rows, log = {}, []
        log += [message for message in block.messages if message.key is None]
        keyed = [message for message in block.messages if message.key is not None]
        unclear = block.mode is ExpectMode.ANY_ORDER
        seen: set[str | bytes | None] = set()
        for message in keyed:
            key = identity(message.key)
            # Of several messages of one key in any order nobody can say which is the last.
            if unclear and key in seen:
                rows[key] = None
            elif message.value is None:
                rows.pop(key, None)
            else:
                rows[key] = message
            seen.add(key)
    return ReplayOutcome(topic, rows, tuple(log), blocks[-1].line)
