"""Expected against received messages. Every comparison answers with what is to be shown: nothing if all is well."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from headwater.testing.case import ExpectMode, Message
from headwater.testing.messages import identity, render_message
from headwater.testing.replay_modes import ReplayOutcome, Rows

__all__ = ["Mismatch", "compare", "compare_outcome", "difference"]


@dataclass(frozen=True)
class Mismatch:
    """Lines that were expected and lines that came, in an order that makes them comparable."""

    expected: tuple[str, ...]
    got: tuple[str, ...]


def compare(expected: Sequence[Message], got: Sequence[Message], mode: ExpectMode) -> Mismatch | None:
    """`got` is what arrived since the last look, or for FINAL the whole topic, partition by partition."""
    arrived = list(got)
    if mode is ExpectMode.FINAL:
        arrived = [message for message in _last(got).values() if message is not None]
        # Messages without a key replace nothing, so all of them are part of what a topic amounts to.
        arrived += [message for message in got if message.key is None]
    if mode is ExpectMode.PER_KEY:
        arrived = _in_order_of(expected, arrived)
        expected = _in_order_of(expected, expected)
    elif mode is not ExpectMode.EXACT:
        arrived = _paired(expected, arrived)
    if len(expected) == len(arrived) and all(map(_matches, expected, arrived)):
        return None
    return _mismatch(expected, arrived)


def compare_outcome(expected: ReplayOutcome, got: Sequence[Message], *, repeats: bool) -> Mismatch | None:
    """The whole topic against what it must amount to; with `repeats`, messages without a key may have come again."""
    keyed = {key: message for key, message in _last(got).items() if expected.rows.get(key, message) is not None}
    rows = [message for message in expected.rows.values() if message is not None]
    arrived = [message for message in keyed.values() if message is not None]
    log = [message for message in got if message.key is None]
    # After a crash an at-least-once sink may write a batch again: of keyed messages the last one still counts, of a log
    # each different one.
    if repeats:
        log = list({identity(message.value): message for message in log}.values())
        rows += list({identity(message.value): message for message in expected.log}.values())
    else:
        rows += expected.log
    return compare(rows, [*arrived, *log], ExpectMode.ANY_ORDER)


def difference(mismatch: Mismatch) -> str:
    """As lines marked with '-' (expected, did not come) and '+' (came, was not expected)."""
    return "\n".join(line for line in difflib.ndiff(mismatch.expected, mismatch.got) if not line.startswith("?"))


def _last(messages: Iterable[Message]) -> Rows:
    """The last message of every key; those that are deleted are left out."""
    rows: Rows = {}
    for message in messages:
        if message.key is not None:
            rows.pop(identity(message.key), None)
            if message.value is not None:
                rows[identity(message.key)] = message
    return rows


def _in_order_of(pattern: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Keys in the order in which `pattern` has them first; each key's messages in their own order."""
    places: dict[object, int] = {}
    for message in pattern:
        places.setdefault(identity(message.key), len(places))
    return sorted(messages, key=lambda message: places.get(identity(message.key), len(places)))


def _paired(expected: Sequence[Message], got: Sequence[Message]) -> list[Message]:
    """What matches an expected message in the order of those, then the rest as it came."""
    rest = list(got)
    pairs: list[Message] = []
    for wanted in expected:
        # One of them for each expected message: two equal ones have to be expected twice.
        found = next((message for message in rest if _matches(wanted, message)), None)
        if found is not None:
            rest.remove(found)
            pairs.append(found)
    return pairs + _in_order_of(expected, rest)


def _matches(expected: Message, got: Message) -> bool:
    """The same key and value, and what else the expectation mentions."""
    return _identities(expected) == _identities(_like(expected, got)) and _like(expected, got) == replace(
        expected, key=got.key, value=got.value, line=got.line
    )


def _identities(message: Message) -> tuple[object, object]:
    return identity(message.key), identity(message.value)


def _like(pattern: Message, message: Message) -> Message:
    """The message with only those attributes that the pattern has."""
    return replace(
        message,
        partition=message.partition if pattern.partition is not None else None,
        timestamp=message.timestamp if pattern.timestamp is not None else None,
        headers=message.headers if pattern.headers else (),
    )


def _mismatch(expected: Sequence[Message], got: Sequence[Message]) -> Mismatch:
    pattern = Message(
        None,
        None,
        next((m.partition for m in expected if m.partition is not None), None),
        next((m.timestamp for m in expected if m.timestamp is not None), None),
        next((m.headers for m in expected if m.headers), ()),
    )
    shown = tuple(render_message(_like(pattern, message)) for message in got)
    return Mismatch(tuple(map(render_message, expected)), shown)
