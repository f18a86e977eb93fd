"""Expected and received messages side by side."""

from __future__ import annotations

import pytest

from headwater.testing.case import Avro, ExpectMode, Message
from headwater.testing.compare import Mismatch, compare, compare_outcome, difference
from headwater.testing.messages import parse_message
from headwater.testing.replay_modes import ReplayOutcome


def lines(*texts: str) -> list[Message]:
    return [parse_message(text) for text in texts]


def arrived(*texts: str) -> list[Message]:
    """As Kafka gives them: with a partition and a time."""
    return [Message(m.key, m.value, m.partition or 0, m.timestamp or 99, m.headers) for m in lines(*texts)]


AB = ("a => 1", "b => 1", "a => 2")


@pytest.mark.parametrize(
    ("mode", "got", "same"),
    [
        (ExpectMode.EXACT, ("a => 1", "b => 1", "a => 2"), True),
        (ExpectMode.EXACT, ("b => 1", "a => 1", "a => 2"), False),
        (ExpectMode.PER_KEY, ("b => 1", "a => 1", "a => 2"), True),
        (ExpectMode.PER_KEY, ("b => 1", "a => 2", "a => 1"), False),
        (ExpectMode.PER_KEY, ("a => 1", "b => 1", "a => 2", "c => 1"), False),
        (ExpectMode.PER_KEY, ("a => 1", "a => 2"), False),
        (ExpectMode.ANY_ORDER, ("b => 1", "a => 2", "a => 1"), True),
        (ExpectMode.ANY_ORDER, ("b => 1", "a => 2", "a => 2"), False),
        (ExpectMode.ANY_ORDER, ("b => 1", "a => 2"), False),
    ],
)
def test_modes(mode: ExpectMode, got: tuple[str, ...], same: bool) -> None:
    assert (compare(lines(*AB), arrived(*got), mode) is None) is same


def test_final_is_what_is_left() -> None:
    got = arrived("a => 1", "b => 1", "a => 2", "b => null", "null => log")
    assert compare(lines("a => 2", "null => log"), got, ExpectMode.FINAL) is None
    assert compare(lines("a => 1", "null => log"), got, ExpectMode.FINAL) is not None
    assert compare(lines("a => 2", "b => 1", "null => log"), got, ExpectMode.FINAL) is not None


def test_nothing_expected_means_nothing_may_come() -> None:
    assert compare([], [], ExpectMode.PER_KEY) is None
    assert compare([], arrived("a => 1"), ExpectMode.PER_KEY) == Mismatch((), ("a => 1",))


def test_only_what_is_mentioned_is_compared() -> None:
    got = arrived("@partition=1 @timestamp=5 @header.h=x a => 1")
    for text in ("a => 1", "@partition=1 a => 1", "@timestamp=5 a => 1", "@header.h=x @partition=1 a => 1"):
        assert compare(lines(text), got, ExpectMode.EXACT) is None, text
    for text in ("@partition=0 a => 1", "@timestamp=6 a => 1", "@header.h=y a => 1", "@header.g=x a => 1"):
        mismatch = compare(lines(text), got, ExpectMode.EXACT)
        assert mismatch is not None
        assert mismatch.expected == (text,)
    shown = compare(lines("@partition=0 a => 1"), got, ExpectMode.EXACT)
    assert shown is not None
    assert shown.got == ("@partition=1 a => 1",)


def test_avro_is_compared_by_value() -> None:
    got = [Message(Avro({"k": 1, "l": 2}), Avro({"v": None}))]
    assert compare(lines('avro{"l":2,"k":1} => avro{"v":null}'), got, ExpectMode.PER_KEY) is None


def test_an_outcome_may_repeat_only_after_kills() -> None:
    outcome = ReplayOutcome("t", {b"a": Message(b"a", b"2")}, tuple(lines("null => x", "null => y")), 1)
    once = arrived("a => 1", "a => 2", "null => x", "null => y")
    again = [*once, *arrived("null => y", "a => 2")]
    assert compare_outcome(outcome, once, repeats=False) is None
    assert compare_outcome(outcome, again, repeats=False) is not None
    assert compare_outcome(outcome, again, repeats=True) is None
    assert compare_outcome(outcome, arrived("a => 2", "null => x"), repeats=True) is not None


def test_a_key_left_open_is_not_looked_at() -> None:
    outcome = ReplayOutcome("t", {b"a": None}, (), 1)
    assert compare_outcome(outcome, arrived("a => 7"), repeats=False) is None
    assert compare_outcome(outcome, [], repeats=False) is None
    assert compare_outcome(outcome, arrived("b => 7"), repeats=False) is not None


def test_a_difference_is_shown_line_by_line() -> None:
    mismatch = compare(lines("a => 1", "b => null"), arrived("a => 1", "b => 0"), ExpectMode.PER_KEY)
    assert mismatch is not None
    assert difference(mismatch).splitlines() == ["  a => 1", "- b => null", "+ b => 0"]
