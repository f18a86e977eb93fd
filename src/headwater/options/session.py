"""What `SET 'key' = 'value'` knows. An option of Flink that has no meaning here is taken with a note; one that would
change results and is not there yet is refused; any other key is an error with the closest one that exists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headwater.errors import ValidationError
from headwater.options.base import Option, OptionType
from headwater.options.closest import close_to, did_you_mean
from headwater.options.parsing import parse_value
from headwater.options.secrets import MASK, is_secret, masked
from headwater.options.session_flink import DIFFERS, FLINKS, MEANINGLESS
from headwater.options.time_zone import time_zone
from headwater.options.types import BOOL, DURATION, INT, LONG, STRING, enum, show

__all__ = ["CHUNK_ROWS", "SESSION_OPTIONS", "SessionOptions", "check_job_name", "is_declared"]

CHUNK_ROWS = 16_384
"""The default of 'headwater.source.chunk-rows'."""

_LONGEST_NAME = 200  # bytes; file systems take 255


def check_job_name(text: str) -> str:
    """The name of a job is also that of its directory in the checkpoint. Raises ValueError if it cannot be."""
    if not text.strip():
        raise ValueError("The name is empty.")
    if text.startswith(".") or ".." in text:
        raise ValueError(f"'{text}' is the name of a directory: it may not start with '.' or contain '..'.")
    bad = next((c for c in text if c in "/\\" or not c.isprintable()), None)
    if bad is not None:
        raise ValueError(f"'{text}' is the name of a directory: it may not contain {bad!r}.")
    if len(text.encode()) > _LONGEST_NAME:
        raise ValueError(f"The name is longer than {_LONGEST_NAME} bytes.")
    return text


def _choice(key: str, choices: tuple[str, ...], meaning: str) -> Option:
    return Option(key, enum(choices), meaning, choices[0], choices=choices)


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
        OptionType("String", time_zone),
        "Session time zone, in which TIMESTAMP_LTZ values are converted to dates and strings; 'default' is that of the "
        "machine. Jobs with state keep the time zone they were first started with.",
        "UTC",
    ),
    Option(
        "pipeline.name",
        OptionType("String", check_job_name),
        "Name of the job that the next INSERT starts, and of its checkpoint; in a statement set, '-' and the target "
        "table are appended. Default: the target table. Every INSERT needs a name of its own.",
    ),
    Option(
        "parallelism.default",
        _positive(INT),
        "Number of parallel tasks of a job: of those that read and write, where a table does not say otherwise "
        "('scan.parallelism', 'sink.parallelism'), and state partitions of a new checkpoint. Default: the number of "
        "Spark's cores.",
    ),
    Option(
        "execution.checkpointing.dir",
        STRING,
        "Directory for the checkpoints of the jobs that follow. `--checkpoint` sets it for a whole run.",
    ),
    Option(
        "state.checkpoints.dir",
        STRING,
        "Former name of 'execution.checkpointing.dir'.",
        deprecated="execution.checkpointing.dir",
    ),
    Option(
        "table.exec.source.cdc-events-duplicate",
        BOOL,
        "Whether CDC sources may contain duplicate events. They then need a PRIMARY KEY, and a Normalize operator "
        "drops duplicates.",
        False,
    ),
    Option(
        "table.exec.source.idle-timeout",
        DURATION,
        "After how long without messages a partition no longer holds back the watermark of its table, and a table that "
        "of others. With 0, it always does. 'scan.watermark.idle-timeout' sets it for one table.",
        timedelta(0),
    ),
    Option(
        "table.exec.emit.early-fire.enabled",
        BOOL,
        "Whether results of windows that are still open are emitted, as updates, with every batch.",
        False,
    ),
    Option(
        "table.exec.emit.late-fire.enabled",
        BOOL,
        "Whether rows that come after their window has closed update its result, for 'table.exec.emit.allow-lateness'.",
        False,
    ),
    Option(
        "table.exec.emit.allow-lateness",
        DURATION,
        "How long after its end a window is kept for late rows, if 'table.exec.emit.late-fire.enabled' is set.",
        timedelta(0),
    ),
    _choice(
        "execution.runtime-mode",
        ("streaming", "batch", "automatic"),
        "'batch': every table that is read must be bounded, and is read as one batch, so that only final results are "
        "written. 'automatic' is 'streaming'. A job ends by itself when all its inputs are bounded, in either mode.",
    ),
    _choice(
        "sql-client.execution.result-mode",
        ("table", "changelog", "tableau"),
        "How the command line shows a SELECT. 'table': its rows; of a query that does not end, on a terminal, a table "
        "that changes in place. 'changelog': every change, one line each. 'tableau': rows of a query that ends, "
        "changes of one that does not.",
    ),
    Option(
        "sql-client.execution.max-table-result.rows",
        _positive(LONG),
        "How many rows of a SELECT may be held in memory: a table that is to be shown, sorted or returned as a whole. "
        "A larger result is an error.",
        1_000_000,
    ),
    Option(
        "table.dml-sync",
        BOOL,
        "Whether an INSERT has to end before the next statement is executed. Otherwise the INSERTs of a script run "
        "side by side.",
        False,
    ),
    _choice(
        "table.exec.sink.not-null-enforcer",
        ("error", "drop"),
        "What a row with NULL in a NOT NULL column does: 'error' stops the job, 'drop' leaves the row out.",
    ),
    _choice(
        "table.exec.sink.type-length-enforcer",
        ("ignore", "trim_pad", "error"),
        "Lengths of CHAR, VARCHAR, BINARY and VARBINARY columns of a sink: 'ignore' writes values as they are, "
        "'trim_pad' shortens and pads them, 'error' stops the job.",
    ),
    _choice(
        "table.exec.sink.upsert-materialize",
        ("auto", "none", "force"),
        "Updating results whose rows the primary key of the sink does not identify: 'auto' keeps all rows of a key as "
        "state and writes the last one, 'none' rejects the query, 'force' does so for every table with a primary key. "
        "INSERT … ON CONFLICT says it for one statement.",
    ),
    Option(
        "python.files",
        STRING,
        "Where the modules of Python functions are: files, directories and archives, separated by commas. The "
        "directory of the script is always searched.",
        "",
    ),
    Option(
        "table.exec.state.ttl",
        DURATION,
        "How long the state of a key is kept without new rows for it; 0 is forever. After that, a row with the key "
        "starts from scratch. Windows and other state that the watermark cleans up is kept as long as it is needed.",
        timedelta(0),
    ),
    Option("headwater.batch.max-rows", _positive(LONG), "Maximum number of messages in one batch.", 2_000_000),
    Option(
        "headwater.batch.interval",
        DURATION,
        "Minimum time between the starts of two batches. A longer interval means fewer updates and more latency; with "
        "0, a batch starts as soon as there is data and the batch before is done.",
        timedelta(0),
    ),
    Option(
        "headwater.batch.poll-interval",
        _positive(DURATION),
        "How long a job that has read everything waits before it checks for new messages.",
        timedelta(milliseconds=50),
    ),
    Option(
        "headwater.source.chunk-rows",
        _positive(INT),
        "How many Kafka messages are decoded together; fewer where they are large. Small splits of a task are fetched "
        "together up to this number. Smaller chunks need less memory and more time. Results do not depend on it; it "
        "may be different at every start.",
        CHUNK_ROWS,
    ),
    Option(
        "headwater.state.partitions",
        _positive(INT),
        "Number of state partitions of a new checkpoint. Default: 'parallelism.default', else the number of Spark's "
        "cores.",
    ),
    Option(
        "headwater.join.without-equality",
        BOOL,
        "Whether a join may have no equality between columns of its sides. All rows of both sides are then in one "
        "state partition, and every change of a row meets all rows of the other side.",
        False,
    ),
    Option(
        "headwater.checkpoint.ignore-orphaned",
        BOOL,
        "Whether a job may start from scratch although the directory has an unused checkpoint with the same query, or "
        "one of an earlier release.",
        False,
    ),
)

_BY_KEY = {option.key: option for option in SESSION_OPTIONS}


@dataclass(frozen=True)
class SessionOptions:
    """The settings of a session. `set` and `reset` answer with new ones and never change these."""

    given: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"SessionOptions({masked(self.given)})"

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
        # The current key goes before its older name, whichever was set last.
        for spelling in (option, *(o for o in SESSION_OPTIONS if o.deprecated == key)):
            if spelling.key in self.given:
                return parse_value(spelling, self.given[spelling.key])
        return option.default

    def rows(self) -> list[tuple[str, str]]:
        """For a bare `SET`: everything declared and everything given, as text."""
        values = {option.key: show(option.default) for option in SESSION_OPTIONS if not option.deprecated}
        values.update(self.given)
        return sorted((key, MASK if is_secret(key) else text) for key, text in values.items())


def is_declared(key: str) -> bool:
    """Whether `key` is an option of Headwater's own, and so has a value that can be right or wrong."""
    return key in _BY_KEY


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
    # A key of Flink's families that is almost one that works here is a typo.
    if key.startswith(FLINKS) and not close_to(key, [*_BY_KEY, *DIFFERS]):
        return f"'{key}' has no effect: it belongs to Flink, and nothing here depends on it."
    raise ValidationError(
        f"Unknown option '{key}'.",
        detail=did_you_mean(key, known),
        hint="`headwater options session` lists what SET knows; options of a table belong into its WITH clause.",
    )
