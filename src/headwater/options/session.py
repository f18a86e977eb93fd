"""What `SET 'key' = 'value'` knows. An option of Flink that has no meaning here is taken with a note; one that would
change results and is not there yet is refused; any other key is an error with the closest one that exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from headwater.errors import ValidationError
from headwater.options.base import Option, OptionType
from headwater.options.closest import did_you_mean
from headwater.options.reading import parse_value
from headwater.options.secrets import MASK, is_secret
from headwater.options.session_flink import DIFFERS, MEANINGLESS
from headwater.options.types import BOOL, DURATION, INT, LONG, STRING, show

__all__ = ["SESSION_OPTIONS", "SessionOptions"]


def _time_zone(text: str) -> str:
    if text.lower() == "default":
        return ""
    try:
        ZoneInfo(text)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(f"'{text}' is not a time zone; write it like 'UTC' or 'Europe/Berlin'.") from None
    return text


def _positive(kind: OptionType) -> OptionType:
    def parse(text: str) -> Any:
        value = kind.parse(text)
        if value <= type(value)(0):
            raise ValueError(f"'{text}' is not greater than zero.")
        return value

    return OptionType(kind.name, parse)


SESSION_OPTIONS: tuple[Option, ...] = (
    Option(
        "table.local-time-zone",
        OptionType("String", _time_zone),
        "Time zone in which TIMESTAMP_LTZ values become dates and texts; 'default' is the machine's own.",
        "UTC",
    ),
    Option("pipeline.name", STRING, "Name of the jobs that follow, in progress and in logs."),
    Option(
        "parallelism.default",
        _positive(INT),
        "How many tasks a job runs side by side. Default: as many as Spark has cores for.",
    ),
    Option(
        "execution.checkpointing.dir",
        STRING,
        "Directory in which the jobs that follow keep progress and state. `--checkpoint` sets it for a whole run.",
    ),
    Option("state.checkpoints.dir", STRING, "Older name of it.", deprecated="execution.checkpointing.dir"),
    Option(
        "table.exec.source.cdc-events-duplicate",
        BOOL,
        "Whether change events may come twice: sources of changes then need a PRIMARY KEY, and only the newest change "
        "of a key counts.",
        False,
    ),
    Option("headwater.batch.max-rows", _positive(LONG), "Most messages that one batch of a job takes.", 2_000_000),
    Option(
        "headwater.batch.interval",
        DURATION,
        "Shortest time between the starts of two batches; a longer one means fewer updates and more latency.",
        timedelta(milliseconds=50),
    ),
    Option(
        "headwater.state.partitions",
        _positive(INT),
        "Into how many parts the state of a job is split; fixed with its first checkpoint. Default: twice the cores.",
    ),
)

_BY_KEY = {option.key: option for option in SESSION_OPTIONS}


@dataclass(frozen=True)
class SessionOptions:
    """The settings of a session. `set` and `reset` answer with new ones and never change these."""

    given: Mapping[str, str] = field(default_factory=dict)

    def set(self, key: str, text: str) -> tuple[SessionOptions, str]:
        """The settings with one more, and a note for the user if the key changes nothing here ('' otherwise)."""
        note = ""
        if key in _BY_KEY:
            _check(_BY_KEY[key], text)
        elif key in DIFFERS:
            DIFFERS[key].check(key, text)
        else:
            note = _meaningless(key)
        return SessionOptions({**self.given, key: text}), note

    def reset(self, key: str = "") -> SessionOptions:
        """As if `key`, or without one everything, had never been set."""
        if not key:
            return SessionOptions()
        if key not in self.given and key not in _BY_KEY and key not in DIFFERS:
            _meaningless(key)
        return SessionOptions({k: v for k, v in self.given.items() if k != key})

    def __getitem__(self, key: str) -> Any:
        """The value of a declared option, which may have been set under its older name."""
        option = _BY_KEY[key]
        for spelling in (option, *(o for o in SESSION_OPTIONS if o.deprecated == key)):
            if spelling.key in self.given:
                return parse_value(spelling, self.given[spelling.key])
        return option.default

    def rows(self) -> list[tuple[str, str]]:
        """For a bare `SET`: everything declared and everything given, as text."""
        texts = {option.key: show(option.default) for option in SESSION_OPTIONS if not option.deprecated}
        texts.update(self.given)
        return sorted((key, MASK if is_secret(key) else text) for key, text in texts.items())


def _check(option: Option, text: str) -> None:
    try:
        parse_value(option, text)
    except ValueError as error:
        raise ValidationError(f"Invalid value for option '{option.key}'.", detail=str(error)) from None


def _meaningless(key: str) -> str:
    for prefix, reason in MEANINGLESS.items():
        if key == prefix or (prefix.endswith(".") and key.startswith(prefix)):
            return f"'{key}' has no effect: {reason}"
    known = [*_BY_KEY, *DIFFERS, *(k for k in MEANINGLESS if not k.endswith("."))]
    raise ValidationError(
        f"Unknown option '{key}'.",
        detail=did_you_mean(key, known),
        hint="`headwater options session` lists what SET knows; options of a table belong into its WITH clause.",
    )
