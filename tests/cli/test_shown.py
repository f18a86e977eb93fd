"""How numbers, tables and running jobs are shown, without any job running."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from headwater.cli.live import job_table
from headwater.cli.style import aligned, count, rate, seconds, span
from headwater.cli.view import LogSettings, PlainView, log_error, open_view, summary_lines
from headwater.control.meter import JobSample, Meter
from headwater.errors import HeadwaterError, JobError
from headwater.execution.job import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def reading(progress: Progress, rate_in: float = 0.0, rate_out: float | None = None) -> JobSample:
    return JobSample(progress, "a.sql:3", 2.0, rate_in, rate_out)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "0"), (0.44, "0.4"), (12.3, "12"), (3456.7, "3,457"), (1.23e6, "1.2 M"), (4.5e7, "45 M")],
)
def test_rates_stay_narrow(value: float | None, shown: str) -> None:
    assert rate(value) == shown


def test_numbers_and_times() -> None:
    assert (count(1234567), count(None)) == ("1,234,567", "–")
    assert [seconds(s) for s in (0, 0.041, 1.25, 75.4)] == ["–", "0.04 s", "1.2 s", "75 s"]
    assert [span(s) for s in (5, 65, 3725)] == ["0:05", "1:05", "1:02:05"]


def test_plain_tables_are_aligned() -> None:
    assert aligned([("a", "bb"), ("long", "c")]) == ["a     bb", "long  c"]
    assert aligned([]) == []


def test_a_meter_knows_the_rate_of_the_last_seconds() -> None:
    clock, progress = Clock(), Progress("t", "running")
    meter = Meter(lambda: progress, clock=clock)
    for second in range(1, 21):
        clock.now = 100.0 + second
        progress = replace(progress, rows_in=second * 100 if second <= 10 else 1000, rows_out=second, batches=second)
        read = meter.read()
        if second == 10:
            assert read.rate_in == pytest.approx(100)
    assert (read.rate_in, read.rate_out) == (0, pytest.approx(1))


def test_what_has_ended_has_its_average() -> None:
    clock, progress = Clock(), Progress("t", "running")
    meter = Meter(lambda: progress, clock=clock)
    clock.now += 4
    progress = replace(progress, status="finished", rows_in=400, batches=1)
    meter.read()
    clock.now += 60
    read = meter.read()
    assert (read.rate_in, read.rate_out, read.age) == (100, None, 4)


def test_plain_lines_come_when_something_happens() -> None:
    lines: list[str] = []
    clock = Clock()
    view = PlainView(lines.append, clock)
    progress = Progress("t", "running", batches=1, rows_in=10, rows_out=2, batch_seconds=0.5, state_rows=7)
    view.show([reading(progress, 5, 1)])
    assert lines.pop().endswith("t  running  in 10 (5.0/s)  out 2 (1.0/s)  lag 0  batch 0.50 s  state 7")
    clock.now += 1
    view.show([reading(replace(progress, batches=2))])
    assert lines == []
    clock.now += 5
    view.show([reading(replace(progress, batches=2))])
    assert len(lines) == 1
    clock.now += 6
    view.show([reading(replace(progress, batches=2))])
    assert len(lines) == 1
    view.show([reading(replace(progress, batches=2, note="The broker does not answer. Trying again in 4 s."))])
    assert lines[1].endswith("t  running  The broker does not answer. Trying again in 4 s.")


def test_the_summary_is_one_line_per_job() -> None:
    done = Progress("t", "finished", batches=2, rows_in=1000, rows_out=3, state_rows=3)
    assert summary_lines([reading(done), reading(Progress("longer", "finished"))]) == [
        "t       finished  1,000 rows in, 3 out, 2 batches, 3 rows of state, 2.0 s",
        "longer  finished  nothing to do",
    ]


def shown_at(width: int, *readings: JobSample) -> str:
    written = StringIO()
    Console(width=width, file=written).print(job_table(readings, width))
    return written.getvalue()


RUNNING = Progress("totals", "running", 12, 123456, 789, 5, 0.41, state_rows=1000)


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_table_shows_all_jobs(width: int) -> None:
    text = shown_at(width, reading(RUNNING, 4500, 20), reading(Progress("b")))
    for word in ("totals", "running", "123,456", "4,500", "789", "0.41 s", "1,000", "b", "starting"):
        assert word in text
    assert ("a.sql:3" in text) == (width > 100)


@pytest.mark.parametrize("width", [20, 30, 40, 60, 80, 100, 120, 200])
@pytest.mark.parametrize("name", ["totals", "pageviews_per_region_and_hour"])
def test_the_name_of_a_job_is_there_at_every_width(width: int, name: str) -> None:
    lines = shown_at(width, reading(replace(RUNNING, name=name), 4500, 20), reading(Progress("b"))).splitlines()
    assert all(len(line) <= width for line in lines)
    first_column = "".join(line.split()[0] for line in lines[3:] if line.strip())
    assert first_column == f"{name}b"


def test_a_job_that_waits_for_a_broker_is_retrying() -> None:
    note = "The broker does not answer. Trying again in 4 s."
    waiting = replace(RUNNING, status="retrying", note=note)
    assert "retrying" in shown_at(80, reading(waiting))
    lines: list[str] = []
    PlainView(lines.append, Clock()).show([reading(waiting)])
    assert lines[0].endswith(f"totals  retrying  {note}")
    assert not reading(waiting).ended


def test_lines_of_a_log_have_a_date_and_a_level() -> None:
    lines: list[str] = []
    view = PlainView(lines.append, Clock())
    view.say("State ends with this run.")
    view.say("It is odd.", "warning", "totals")
    view.show([reading(replace(RUNNING, status="failed", note=""))])
    assert [line.split("  ", 2)[1:] for line in lines] == [
        ["INFO", "   State ends with this run."],
        ["WARNING", "totals: It is odd."],
        ["ERROR", "  totals  failed  in 123,456 (0/s)  out 789 (–/s)  lag 5  batch 0.41 s  state 1,000"],
    ]
    assert all(datetime.strptime(line[:20], "%Y-%m-%dT%H:%M:%SZ") for line in lines)


def test_a_log_may_be_json() -> None:
    lines: list[str] = []
    view = PlainView(lines.append, Clock(), as_json=True)
    view.say("Two\nlines.", "warning", "totals")
    view.show([reading(RUNNING, 4500.04)])
    said, shown = map(json.loads, lines)
    assert (said["level"], said["job"], said["message"]) == ("warning", "totals", "Two\nlines.")
    assert (shown["status"], shown["rows_in"], shown["rate_in"], shown["lag"]) == ("running", 123456, 4500.0, 5)
    assert said["time"].endswith("Z")


def test_a_verbose_log_has_every_batch() -> None:
    lines: list[str] = []
    clock = Clock()
    view = PlainView(lines.append, clock, verbose=True)
    view.show([reading(RUNNING)])
    for batch in (13, 14):
        view.show([reading(replace(RUNNING, batches=batch))])
    assert [line.split("  ")[1] for line in lines] == ["INFO", "DEBUG", "DEBUG"]


def test_a_log_file_gets_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", StringIO())
    for _ in range(2):
        view = open_view("totals.sql", LogSettings(as_json=True, file=str(tmp_path / "log")))
        view.phase("Starting Spark …")
        view.show([reading(RUNNING)])
        view.close()
        view.say("Stopped.")
    log_error(JobError("It broke."), LogSettings(as_json=True, file=str(tmp_path / "log")))
    lines = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 7
    assert json.loads(lines[-1])["message"] == "It broke."
    with pytest.raises(HeadwaterError, match="cannot be written"):
        open_view("totals.sql", LogSettings(file=str(tmp_path / "nowhere" / "log")))
