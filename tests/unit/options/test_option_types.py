"""Texts of options, read as Flink reads them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.options.base import OptionType
from headwater.options.types import BOOL, DURATION, INT, LIST, LONG, MAP, MEMORY, enum, show


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10 s", timedelta(seconds=10)),
        ("10s", timedelta(seconds=10)),
        (" 500ms ", timedelta(milliseconds=500)),
        ("500", timedelta(milliseconds=500)),
        ("1 min", timedelta(minutes=1)),
        ("1 m", timedelta(minutes=1)),
        ("2 Hours", timedelta(hours=2)),
        ("3 d", timedelta(days=3)),
        ("7 µs", timedelta(microseconds=7)),
        ("2000 ns", timedelta(microseconds=2)),
        ("PT1H30M", timedelta(hours=1, minutes=30)),
        ("pt0.5s", timedelta(milliseconds=500)),
        ("0", timedelta(0)),
    ],
)
def test_durations(text: str, value: timedelta) -> None:
    assert DURATION.parse(text) == value


@pytest.mark.parametrize("text", ["", "s", "1h 30min", "-1 s", "1.5 s", "10 parsecs", "PT", "99999999999999 d"])
def test_no_durations(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        DURATION.parse(text)


@pytest.mark.parametrize(
    ("text", "value"), [("1", 1), ("64 mb", 64 << 20), ("1g", 1 << 30), ("2 kibibytes", 2048), ("3 T", 3 << 40)]
)
def test_sizes(text: str, value: int) -> None:
    assert MEMORY.parse(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a;b", ("a", "b")),
        ("event_id; user_id", ("event_id", "user_id")),
        ("'a;b';c", ("a;b", "c")),
        ('"it\'s";b', ("it's", "b")),
        ("'it''s'", ("it's",)),
        ("a;;b", ("a", "", "b")),
        ("", ()),
        ("  ", ()),
        ("one", ("one",)),
    ],
)
def test_lists(text: str, value: tuple[str, ...]) -> None:
    assert LIST.parse(text) == value


@pytest.mark.parametrize("text", ["'a", "'a'b"])
def test_no_lists(text: str) -> None:
    with pytest.raises(ValueError, match="quote"):
        LIST.parse(text)


def test_maps() -> None:
    assert MAP.parse("k:v, k2 : v2") == {"k": "v", "k2": "v2"}
    assert MAP.parse("'k:''a:b,c''',l:m") == {"k": "a:b,c", "l": "m"}
    with pytest.raises(ValueError, match="not a map"):
        MAP.parse("k")


@pytest.mark.parametrize(
    ("kind", "text"), [(INT, "x"), (INT, "1.5"), (INT, "2147483648"), (LONG, "9" * 20), (BOOL, "yes")]
)
def test_what_is_no_number_and_no_boolean(kind: OptionType, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        kind.parse(text)


def test_enumerations_do_not_care_for_case() -> None:
    assert enum(("ALL", "EXCEPT_KEY")).parse("except_key") == "EXCEPT_KEY"


@pytest.mark.parametrize("text", ["5 min", "90 s", "10 ms", "2 d", "0 ms", "7 µs"])
def test_durations_are_shown_as_they_are_written(text: str) -> None:
    assert show(DURATION.parse(text)) == text
