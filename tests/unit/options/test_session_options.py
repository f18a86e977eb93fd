"""SET: what is known, what means nothing here, and what is refused."""

from __future__ import annotations

from datetime import timedelta

import pytest

from headwater.errors import ValidationError
from headwater.options.session import SESSION_OPTIONS, SessionOptions
from headwater.options.session_flink import DIFFERS


def test_defaults() -> None:
    options = SessionOptions()
    assert options["headwater.batch.max-rows"] == 2_000_000
    assert options["headwater.batch.interval"] == timedelta(milliseconds=50)
    assert options["parallelism.default"] is None
    assert options["table.local-time-zone"] == "UTC"


def test_setting_changes_a_copy() -> None:
    before = SessionOptions()
    after, note = before.set("headwater.batch.interval", "1 s")
    assert (after["headwater.batch.interval"], note) == (timedelta(seconds=1), "")
    assert before["headwater.batch.interval"] == timedelta(milliseconds=50)
    assert after.reset("headwater.batch.interval") == after.reset() == before


def test_the_checkpoint_directory_has_two_names() -> None:
    for name in ("state.checkpoints.dir", "execution.checkpointing.dir"):
        options, _ = SessionOptions().set(name, "/data")
        assert options["execution.checkpointing.dir"] == "/data"


@pytest.mark.parametrize(
    "key",
    [
        "table.exec.mini-batch.enabled",
        "table.exec.mini-batch.allow-latency",
        "sql-client.verbose",
        "execution.checkpointing.interval",
        "state.backend.type",
        "restart-strategy",
        "pipeline.max-parallelism",
    ],
)
def test_what_means_nothing_here_is_taken_with_a_note(key: str) -> None:
    options, note = SessionOptions().set(key, "5 s")
    assert note.startswith(f"'{key}' has no effect: ")
    assert (key, "5 s") in options.rows()


@pytest.mark.parametrize(
    ("key", "value", "fact"),
    [
        ("headwater.batch.max-row", "5", "Unknown option 'headwater.batch.max-row'."),
        ("topic", "x", "Unknown option 'topic'."),
        ("headwater.batch.max-rows", "0", "Invalid value for option 'headwater.batch.max-rows'."),
        ("headwater.batch.max-rows", "many", "Invalid value for option 'headwater.batch.max-rows'."),
        ("table.local-time-zone", "Mars/Olympus", "Invalid value for option 'table.local-time-zone'."),
        ("table.exec.state.ttl", "1 h", "'table.exec.state.ttl' = '1 h' is not supported yet."),
        ("table.exec.sink.not-null-enforcer", "DROP", "'table.exec.sink.not-null-enforcer' = 'DROP' is not supported"),
    ],
)
def test_errors(key: str, value: str, fact: str) -> None:
    with pytest.raises(ValidationError) as raised:
        SessionOptions().set(key, value)
    assert raised.value.fact.startswith(fact)


def test_a_typo_gets_the_closest_key() -> None:
    with pytest.raises(ValidationError, match=r"Did you mean 'headwater.batch.max-rows'\?"):
        SessionOptions().set("headwater.batch.maxrows", "5")
    with pytest.raises(ValidationError, match="Unknown option"):
        SessionOptions().reset("headwater.batch.maxrows")


@pytest.mark.parametrize("key", DIFFERS)
def test_what_happens_anyway_can_be_said(key: str) -> None:
    for value in DIFFERS[key].allowed:
        options, note = SessionOptions().set(key, value.upper())
        assert (key, value.upper(), note) == (key, options.given[key], "")


def test_rows_show_everything_and_no_secret() -> None:
    options, _ = SessionOptions().set("sql-client.password", "hunter2")
    rows = dict(options.rows())
    assert rows["sql-client.password"] == "******"
    assert {o.key for o in SESSION_OPTIONS if not o.deprecated} <= rows.keys()
    assert rows["headwater.batch.interval"] == "50 ms"
