"""How the text of an option becomes a value, as Flink reads it.

duration   '10 s', '500ms', '1 min', 'PT1H30M'; a plain number is milliseconds          datetime.timedelta
memory     '64 mb', '1g'; a plain number is bytes                                        int
list       'a;b; c', or 'a;b' in quotes where an element has a ';' of its own            tuple of str
map        'k:v,k2:v2', quoted the same way                                              dict of str to str
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from headwater.options.base import OptionType
from headwater.options.splitting import split_quoted

__all__ = ["BOOL", "DURATION", "INT", "LIST", "LONG", "MAP", "MEMORY", "STRING", "enum", "show"]

_MICROSECONDS = {
    ("ns", "nano", "nanos", "nanosecond", "nanoseconds"): 0.001,
    ("µs", "micro", "micros", "microsecond", "microseconds"): 1,
    ("ms", "milli", "millis", "millisecond", "milliseconds"): 1_000,
    ("s", "sec", "secs", "second", "seconds"): 1_000_000,
    ("m", "min", "minute", "minutes"): 60_000_000,
    ("h", "hour", "hours"): 3_600_000_000,
    ("d", "day", "days"): 86_400_000_000,
}
_BYTES = {
    ("b", "bytes"): 1,
    ("k", "kb", "kibibytes"): 1 << 10,
    ("m", "mb", "mebibytes"): 1 << 20,
    ("g", "gb", "gibibytes"): 1 << 30,
    ("t", "tb", "tebibytes"): 1 << 40,
}
_ISO_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:[.,]\d{1,9})?)S)?)?",
    re.IGNORECASE,
)


def _integer(bits: int) -> Callable[[str], int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def parse(text: str) -> int:
        if not re.fullmatch(r"[+-]?\d+", text):
            raise ValueError(f"'{text}' is not an integer.")
        value = int(text)
        if not low <= value <= high:
            raise ValueError(f"'{text}' is outside {low} … {high}.")
        return value

    return parse


def _boolean(text: str) -> bool:
    if text.lower() not in {"true", "false"}:
        raise ValueError(f"'{text}' is neither 'true' nor 'false'.")
    return text.lower() == "true"


def _duration(text: str) -> timedelta:
    number, unit = _amount(text)
    if not number:
        return _iso_duration(text.strip())
    # A number without a unit is milliseconds, as in Flink.
    factor = _factor(_MICROSECONDS, unit or "ms", "time unit")
    try:
        return timedelta(microseconds=int(number) * factor)
    except OverflowError:
        raise ValueError(f"'{text}' is too long a time.") from None


def _iso_duration(text: str) -> timedelta:
    match = _ISO_DURATION.fullmatch(text)
    if not match or not any(match.groups()):
        raise ValueError(f"'{text}' is not a duration; write it like '10 s', '1 min' or '500 ms'.")
    # ISO 8601 allows a comma as the decimal sign.
    return timedelta(**{unit: float(n.replace(",", ".")) for unit, n in match.groupdict().items() if n})


def _memory(text: str) -> int:
    number, unit = _amount(text)
    if not number:
        raise ValueError(f"'{text}' is not a size; write it like '64 mb' or '1 gb'.")
    return int(number) * int(_factor(_BYTES, unit or "b", "size unit"))


def _amount(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"([0-9]*)\s*(.*)", text.strip(), re.DOTALL)
    assert match is not None
    return match[1], match[2].strip().lower()


def _factor(units: dict[tuple[str, ...], Any], unit: str, what: str) -> Any:
    for labels, factor in units.items():
        if unit in labels:
            return factor
    known = ", ".join(labels[0] if len(labels[0]) > 1 else labels[1] for labels in units)
    raise ValueError(f"'{unit}' is not a {what}; use one of {known}.")


def _list(text: str) -> tuple[str, ...]:
    return tuple(split_quoted(text, ";"))


def _map(text: str) -> dict[str, str]:
    pairs = [split_quoted(item, ":") for item in split_quoted(text, ",")]
    if any(len(pair) != 2 for pair in pairs):
        raise ValueError(f"'{text}' is not a map; write it like 'key1:value1,key2:value2'.")
    return {key: value for [key, value] in pairs}


STRING = OptionType("String", str)
INT = OptionType("Integer", _integer(32))
LONG = OptionType("Long", _integer(64))
BOOL = OptionType("Boolean", _boolean)
DURATION = OptionType("Duration", _duration)
MEMORY = OptionType("MemorySize", _memory)
LIST = OptionType("List", _list)
MAP = OptionType("Map", _map)


def enum(choices: Sequence[str]) -> OptionType:
    """One of `choices`, whatever the case; the value is the choice as declared."""
    by_text = {choice.lower(): choice for choice in choices}

    def parse(text: str) -> str:
        if text.strip().lower() not in by_text:
            raise ValueError(f"'{text}' is not one of {', '.join(choices)}.")
        return by_text[text.strip().lower()]

    return OptionType("Enum", parse)


def show(value: Any) -> str:
    """A value as a user would write it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ";".join(value)
    if isinstance(value, dict):
        return ",".join(f"{k}:{v}" for k, v in value.items())
    return _show_duration(value) if isinstance(value, timedelta) else str(value)


def _show_duration(value: timedelta) -> str:
    micros = value // timedelta(microseconds=1)
    for unit, size in (("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000)):
        if micros and micros % size == 0:
            return f"{micros // size} {unit}"
    return f"{micros // 1000} ms" if micros % 1000 == 0 else f"{micros} µs"
