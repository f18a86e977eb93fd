"""SET: what is known, what means nothing here, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest

from headwater.errors import ValidationError
from headwater.options.session import SESSION_OPTIONS, SessionOptions
from headwater.options.session_flink import DIFFERS


def test_defaults() -> None:
    options = SessionOptions()
    assert options["headwater.batch.max-rows"] == 2_000_000
    assert options["headwater.batch.interval"] == timedelta(0)
    assert options["headwater.batch.poll-interval"] == timedelta(milliseconds=50)
    assert options["parallelism.default"] is None
    assert options["table.local-time-zone"] == "UTC"


def test_setting_changes_a_copy() -> None:
    before = SessionOptions()
    after, note = before.set("headwater.batch.interval", "1 s")
    assert (after["headwater.batch.interval"], note) == (timedelta(seconds=1), "")
    assert before["headwater.batch.interval"] == timedelta(0)
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
        "table.exec.sink.rowtime-inserter",
        "sql-client.display.max-column-width",
        "execution.shutdown-on-application-finish",
        "security.kerberos.login.keytab",
        "jobmanager.memory.process.size",
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
        ("table.exec.sink.not-null-enforcer", "X", "Invalid value for option 'table.exec.sink.not-null-enforcer'."),
        ("table.local-timezone", "UTC", "Unknown option 'table.local-timezone'."),
        ("table.exec.state.tll", "0", "Unknown option 'table.exec.state.tll'."),
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
    assert rows["headwater.batch.interval"] == "0 ms"


@pytest.mark.parametrize(
    ("zone", "expected"), [("Europe/Berlin", "Europe/Berlin"), (":Asia/Tokyo", "Asia/Tokyo"), ("Nowhere/None", None)]
)
def test_the_default_time_zone_is_the_machines(
    monkeypatch: pytest.MonkeyPatch, zone: str, expected: str | None
) -> None:
    """By its name: it is part of what a checkpoint stands for."""
    monkeypatch.setenv("TZ", zone)
    options, _ = SessionOptions().set("table.local-time-zone", "default")
    found = options["table.local-time-zone"]
    assert found == expected if expected is not None else ZoneInfo(found)


@pytest.mark.parametrize("name", ["daily", "daily report 2", "größe", "a.b-c_d"])
def test_a_job_may_be_called_anything_that_is_a_directory(name: str) -> None:
    options, _ = SessionOptions().set("pipeline.name", name)
    assert options["pipeline.name"] == name


@pytest.mark.parametrize(
    ("zone", "found"),
    [
        ("GMT+08:00", "Etc/GMT-8"),
        ("UTC+8", "Etc/GMT-8"),
        ("UTC-03:30", "-03:30"),
        ("+05:30", "+05:30"),
        ("gmt+0", "UTC"),
        ("Asia/Shanghai", "Asia/Shanghai"),
        ("America/Los_Angeles", "America/Los_Angeles"),
    ],
)
def test_zones_as_java_writes_them(zone: str, found: str) -> None:
    options, note = SessionOptions().set("table.local-time-zone", zone)
    assert (options["table.local-time-zone"], note) == (found, "")


@pytest.mark.parametrize(
    ("key", "value", "found"),
    [
        ("execution.runtime-mode", "BATCH", "batch"),
        ("table.dml-sync", "true", True),
        ("table.exec.sink.not-null-enforcer", "DROP", "drop"),
        ("table.exec.sink.type-length-enforcer", "TRIM_PAD", "trim_pad"),
        ("parallelism.default", "4", 4),
    ],
)
def test_flinks_keys_that_mean_the_same_here(key: str, value: str, found: object) -> None:
    options, note = SessionOptions().set(key, value)
    assert (options[key], note) == (found, "")
