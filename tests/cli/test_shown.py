"""How numbers, tables and running jobs are shown, without any job running."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from headwater.cli.live import job_table
from headwater.cli.meter import Meter, Reading
from headwater.cli.style import aligned, count, rate, seconds, span
from headwater.cli.view import PlainView, summary_lines
from headwater.runtime.job import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def reading(progress: Progress, rate_in: float = 0.0, rate_out: float | None = None) -> Reading:
    return Reading(progress, "a.sql:3", 2.0, rate_in, rate_out)


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
    clock, progress = Clock(), Progress("1-t", "running")
    meter = Meter(lambda: progress, clock=clock)
    for second in range(1, 21):
        clock.now = 100.0 + second
        progress = replace(progress, rows_in=second * 100 if second <= 10 else 1000, rows_out=second, batches=second)
        read = meter.read()
        if second == 10:
            assert read.rate_in == pytest.approx(100)
    assert (read.rate_in, read.rate_out) == (0, pytest.approx(1))


def test_what_has_ended_has_its_average() -> None:
    clock, progress = Clock(), Progress("1-t", "running")
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
    progress = Progress("1-t", "running", batches=1, rows_in=10, rows_out=2, batch_seconds=0.5, state_rows=7)
    view.show([reading(progress, 5, 1)])
    assert lines.pop().endswith("1-t  running  in 10 (5.0/s)  out 2 (1.0/s)  lag 0  batch 0.50 s  state 7")
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
    assert lines[1].endswith("1-t  The broker does not answer. Trying again in 4 s.")


def test_the_summary_is_one_line_per_job() -> None:
    done = Progress("1-t", "finished", batches=2, rows_in=1000, rows_out=3, state_rows=3)
    assert summary_lines([reading(done), reading(Progress("2-longer", "finished"))]) == [
        "1-t       finished  1,000 rows in, 3 out, 2 batches, 3 rows of state, 2.0 s",
        "2-longer  finished  nothing to do",
    ]


@pytest.mark.parametrize("width", [80, 120])
def test_the_live_table_shows_all_jobs(width: int) -> None:
    written = StringIO()
    console = Console(width=width, file=written)
    running = Progress("1-totals", "running", 12, 123456, 789, 5, 0.41, 0.0, 1000)
    console.print(job_table([reading(running, 4500, 20), reading(Progress("2-b"))], wide=width > 100))
    text = written.getvalue()
    for word in ("1-totals", "running", "123,456", "4,500", "789", "0.41 s", "1,000", "2-b", "starting"):
        assert word in text
    assert ("a.sql:3" in text) == (width > 100)
