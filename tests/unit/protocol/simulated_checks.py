"""What must hold after a schedule, computed plainly from the log: the batches, the state, the sink, the garbage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from simulated_job import (
    OPERATOR,
    TABLE,
    TASKS,
    ExactlyOnceSink,
    Message,
    Sink,
    UpsertSink,
    event_time,
    row,
    step_totals,
)

from headwater.execution.watermarks import END, WatermarkedSource, Watermarks
from headwater.protocol.checkpoint import STATE
from headwater.protocol.entries import LOG, entry_name, entry_numbers
from headwater.protocol.records import Commit, Intent

Entry = dict[str, Any]

SOURCE = Watermarks([WatermarkedSource(list)])


def require(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def entries_of(log: Mapping[int, bytes]) -> list[Entry]:
    return [json.loads(log[number]) for number in sorted(log)]


def positions_of(rows: list[int]) -> dict[str, int]:
    return {str(partition): count for partition, count in enumerate(rows)}


@dataclass
class Reference:
    """What the committed batches give, one after the other."""

    totals: list[dict[str, int]] = field(default_factory=lambda: [{} for _ in range(TASKS)])
    sent: list[list[tuple[int, Message]]] = field(default_factory=lambda: [[] for _ in range(TASKS)])

    def add(self, intent: Intent) -> None:
        for task, totals in enumerate(self.totals):
            changed, messages = step_totals(totals, intent, task)
            totals.update(changed)
            self.sent[task] += [(intent.batch, message) for message in messages]


def replayed(entries: list[Entry]) -> Reference:
    """1. Numbers without gaps. 2. One intent per batch, from where the one before ended. 3. Its commit, to its end.
    4. Watermarks are those of the rows that were read, however often a batch was tried."""
    reference, pending, done, position = Reference(), None, 0, entries[0]["content"]["start"]
    reached: int | None = None
    for number, entry in enumerate(entries):
        require(entry["sequence"] == number, f"the log has no gap before {number}")  # 1
        if entry["kind"] == "intent":
            require(pending is None, f"one intent for batch {done + 1}")  # 2
            pending = Intent.from_json(entry["content"])
            require((pending.batch, pending.start) == (done + 1, position), f"batch {pending.batch} follows")
        elif entry["kind"] == "commit":
            commit = Commit.from_json(entry["content"])
            assert pending is not None, f"batch {commit.batch} was intended"
            require(
                commit.intent == pending.digest and commit.positions == pending.end, "a commit is its intent's"
            )  # 3
            check_watermarks(commit, pending, position[0], reached)  # 4
            reference.add(pending)
            (reached,) = commit.reached
            pending, done, position = None, commit.batch, commit.positions
    require(pending is None, "nothing is under way in the end")
    require(reached == END, "time ends with the input")
    return reference


def check_watermarks(commit: Commit, intent: Intent, start: dict[str, int], reached: int | None) -> None:
    """Those of partitions are the greatest times of all their rows; a batch is given what the one before has left."""
    positions = commit.positions[0]
    after = {k: max(event_time(int(k), o) for o in range(end)) for k, end in positions.items() if end}
    require(commit.watermarks == ([after] if after else []), "the commit has the watermark of every partition")
    open_ = [k for k, end in start.items() if end < (commit.bounds[0] or {})[k]]
    before = {k: max((event_time(int(k), o) for o in range(start[k])), default=None) for k in open_}
    known = [watermark for watermark in before.values() if watermark is not None]
    now = END if not open_ else min(known) if len(known) == len(open_) else None
    now = max((w for w in (reached, now) if w is not None), default=None)
    require(intent.watermarks == [[reached, now]], f"batch {commit.batch} has the watermark of the commit before")


def check_results(
    files: Mapping[str, bytes], log: Mapping[int, bytes], sink: Sink, late_writes: bool, rows: list[int]
) -> None:
    newest = entry_numbers(list(files))[-1]
    entries = entries_of({number: content for number, content in log.items() if number <= newest})
    require(files[entry_name(newest)] == log[newest], "the newest entry is the last that was written")
    reference = replayed(entries)
    check_totals(reference, rows)
    commit = Commit.from_json(json.loads(files[entry_name(entries[-1]["commits"][-1])])["content"])
    check_state(commit, files, reference)
    if isinstance(sink, ExactlyOnceSink):
        for task, writer in enumerate(sink.writers):
            require(writer.log == reference.sent[task], f"writer {task} has every message once")
    elif isinstance(sink, UpsertSink):
        check_upserts(sink, reference, late_writes)


def check_totals(reference: Reference, rows: list[int]) -> None:
    """The batches together are the input, each row once."""
    expected: dict[str, int] = {}
    for partition, count in enumerate(rows):
        for key, value in (row(partition, offset) for offset in range(count)):
            expected[str(key)] = expected.get(str(key), 0) + value
    require({k: v for totals in reference.totals for k, v in totals.items()} == expected, "all input is counted once")


def check_state(commit: Commit, files: Mapping[str, bytes], reference: Reference) -> None:
    for task, expected in enumerate(reference.totals):
        found: dict[str, int] = {}
        for run in commit.state.get(OPERATOR, {}).get(task, {}).get(TABLE, ()):
            require(run.name in files, f"{run.name} is there")
            require(len(files[run.name]) == run.bytes, f"{run.name} is whole")
            found.update(json.loads(files[run.name]))
        require(found == expected, f"state partition {task} holds {expected}, not {found}")


def check_upserts(sink: UpsertSink, reference: Reference, late_writes: bool) -> None:
    """Everything at least once and nothing else. The newest value per key is right, unless a writer that was given up
    came late: nothing can keep those of a plain producer from the topic."""
    sent = [message for messages in reference.sent for message in messages]
    require(set(sink.log) == set(sent), "every message is there, and no other")
    if not late_writes:
        newest = {message[0]: message for _, message in sink.log}
        expected = {message[0]: message for messages in reference.sent for _, message in messages}
        require(newest == expected, "the newest value of each key is right")


def check_garbage(files: Mapping[str, bytes], kept: int) -> None:
    """After an undisturbed run only what the kept commits name is there."""
    numbers = entry_numbers(list(files))
    entries = {number: json.loads(files[entry_name(number)]) for number in numbers}
    newest = entries[numbers[-1]]
    named = {name for number in newest["commits"] if number for name in _names(entries[number])}
    require({name for name in files if name.startswith(STATE)} == named, "no file is left that no commit names")
    others = [n for n, entry in entries.items() if entry["kind"] in ("intent", "commit")]
    require(len(others) <= 2 * kept + 1, "old entries are removed")
    require(len(numbers) == sum(name.startswith(LOG) for name in files), "no leftovers in the log")


def _names(entry: Entry) -> frozenset[str]:
    return Commit.from_json(entry["content"]).names
