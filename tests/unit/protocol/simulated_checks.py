"""What must hold after a schedule, computed plainly from the log: the batches, the state, the sink, the garbage."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from simulated_job import (
    MOST_TASKS,
    OPERATOR,
    TABLE,
    ExactlyOnceSink,
    Message,
    Run,
    Sink,
    UpsertSink,
    event_time,
    partition_of_key,
    row,
    rows_after,
    step_totals,
    tasks_of,
    without_tombstones,
)

from headwater.execution.watermarks import END, WatermarkedSource, Watermarks
from headwater.protocol.checkpoint import STATE
from headwater.protocol.entries import LOG, entry_name, entry_numbers
from headwater.protocol.records import Commit, Genesis, Intent

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

    totals: dict[str, int] = field(default_factory=dict)
    sent: list[list[tuple[int, Message]]] = field(default_factory=lambda: [[] for _ in range(MOST_TASKS)])

    def add(self, intent: Intent) -> None:
        for task in range(tasks_of(intent)):
            changed, messages = step_totals(self.totals, intent, task)
            self.totals.update(changed)
            self.sent[task] += [(intent.batch, message) for message in messages]


def replayed(entries: list[Entry]) -> Reference:
    """1. Numbers without gaps. 2. One intent per batch, from where the one before ended. 3. Its commit, to its end.
    4. Watermarks are those of the rows that were read, however often a batch was tried. 5. Or state was rewritten."""
    newest = Commit.of_genesis(Genesis.from_json(entries[0]["content"]))
    reference, pending, done, position = Reference(), None, 0, newest.positions
    reached: int | None = None
    for number, entry in enumerate(entries):
        require(entry["sequence"] == number, f"the log has no gap before {number}")  # 1
        if entry["kind"] == "intent":
            require(pending is None, f"one intent for batch {done + 1}")  # 2
            pending = Intent.from_json(entry["content"])
            require((pending.batch, pending.start) == (done + 1, position), f"batch {pending.batch} follows")
            require(tasks_of(pending) == newest.partitions, "a batch has the state partitions of the commit before")
        elif entry["kind"] == "commit" and pending is None:
            commit = Commit.from_json(entry["content"])
            same = replace(commit, partitions=newest.partitions, state=newest.state)
            require(same == newest, "a rescale changes state partitions and nothing else")  # 5
            newest = commit
        elif entry["kind"] == "commit":
            commit = Commit.from_json(entry["content"])
            assert pending is not None, f"batch {commit.batch} was intended"
            require(
                commit.intent == pending.digest and commit.positions == pending.end, "a commit is its intent's"
            )  # 3
            check_watermarks(commit, pending, position[0], reached)  # 4
            reference.add(pending)
            (reached,) = commit.reached
            require(commit.partitions == newest.partitions, "only a rescale changes the number of state partitions")
            pending, done, position, newest = None, commit.batch, commit.positions, commit
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
    require(reference.totals == expected, "all input is counted once")


def check_state(commit: Commit, files: Mapping[str, bytes], reference: Reference) -> None:
    rows = without_tombstones(rows_after(reference.totals))
    for task in range(commit.partitions):
        expected = {key: value for key, value in rows.items() if partition_of_key(key, commit.partitions) == task}
        held: Run = {}
        for run in commit.state.get(OPERATOR, {}).get(task, {}).get(TABLE, ()):
            require(run.name in files, f"{run.name} is there")
            require(len(files[run.name]) == run.bytes, f"{run.name} is whole")
            held.update(json.loads(files[run.name]))
        found = without_tombstones(held)
        require(found == expected, f"state partition {task} holds {expected}, not {found}")


def check_upserts(sink: UpsertSink, reference: Reference, late_writes: bool) -> None:
    """Everything at least once and nothing else. The newest value per key is right, unless a writer that was given up
    came late: nothing can keep those of a plain producer from the topic."""
    sent = [message for messages in reference.sent for message in messages]
    require(set(sink.log) == set(sent), "every message is there, and no other")
    if not late_writes:
        newest = {message[0]: message for _, message in sink.log}
        # In the order of batches: after a rescale another task sends the messages of a key.
        expected = {message[0]: message for _, message in sorted(sent)}
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
