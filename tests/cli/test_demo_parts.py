"""The parts of the demo that need no broker: its traffic, and its own reading of Avro and CSV."""

from __future__ import annotations

from datetime import datetime, timezone
from io import StringIO
from types import SimpleNamespace

import pytest
from rich.console import Console

from headwater.cli import app
from headwater.cli.demo import NEXT, verdict_lines
from headwater.cli.demo_screen import DemoScreen
from headwater.demo.results import avro_counts, csv_counts
from headwater.demo.run import Verdict
from headwater.demo.scripts import COPY, COUNT, OUTPUTS, query_of, script
from headwater.demo.traffic import REGIONS, Traffic
from headwater.execution.job import Progress


def test_traffic_is_made_of_all_regions_and_returning_visitors() -> None:
    traffic = Traffic(seed=1)
    views = [traffic.view(datetime(2024, 5, 1, 12, 0, 0, 5000, timezone.utc)) for _ in range(5000)]
    assert {view["user_region"] for view in views} == set(REGIONS)
    assert 1000 < len({view["user_id"] for view in views}) < 5000
    assert views[0]["viewtime"] == "2024-05-01 12:00:00.005"


def test_the_same_seed_is_the_same_traffic() -> None:
    now = datetime(2024, 5, 1, tzinfo=timezone.utc)
    assert [Traffic(7).view(now) for _ in range(3)] == [Traffic(7).view(now) for _ in range(3)]


def test_avro_by_the_book() -> None:
    # "Asia" is 4 bytes long, zigzag 8; then twice: branch 1 of the union, zigzag 2, and 300 and 64 as zigzag varints
    value = bytes([8]) + b"Asia" + bytes([2, 0xD8, 0x04]) + bytes([2, 0x80, 0x01])
    assert avro_counts(value) == ("Asia", 300, 64)


def test_csv_with_quotes() -> None:
    assert csv_counts(b'"East Asia",12,3') == ("East Asia", 12, 3)


def test_scripts_are_those_of_the_documents() -> None:
    query = "SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region;"
    assert " ".join(query_of(COUNT).split()) == f"INSERT INTO pageviews_per_region {query}"
    assert "'format' = 'csv'" in script(COPY)


def test_a_verdict_says_what_differs() -> None:
    expected = {"Asia": (3, 2), "Europe": (1, 1)}
    right = Verdict(expected, {"t": dict(expected)})
    assert right.equal
    assert verdict_lines(right) == ["✓ t: 2 regions, 4 page views, equal to a recount of the input"]
    wrong = Verdict(expected, {"t": {"Asia": (3, 2), "Europe": (2, 1)}})
    assert not wrong.equal
    assert verdict_lines(wrong) == [
        "✗ t: not equal to a recount of the input",
        "    Europe: (2, 1), recounted (1, 1) (page views, visitors)",
    ]


@pytest.mark.parametrize("width", [60, 80, 104, 140])
def test_numbers_are_whole_at_every_width(width: int) -> None:
    """Where there is little room, the bars beside them are left out."""
    counts = dict.fromkeys(REGIONS, (123_456, 45_678))
    run = SimpleNamespace(followers=dict.fromkeys(OUTPUTS), counts=lambda _: counts, feed=None, jobs=[], phase="")
    console = Console(width=width, file=StringIO())
    screen = DemoScreen(run, 60, console)  # type: ignore[arg-type]
    screen.show(1.0)
    screen.close()
    assert isinstance(console.file, StringIO)
    shown = console.file.getvalue()
    assert shown.count("123,456") == shown.count("45,678") >= 2 * len(REGIONS)
    assert "…" not in shown
    assert ("█" in shown) == (width > 60)


def test_the_last_picture_shows_jobs_that_have_stopped() -> None:
    progress = [Progress("totals", status="running")]
    job = SimpleNamespace(progress=lambda: progress[-1])
    run = SimpleNamespace(followers={OUTPUTS[0]: None}, counts=lambda _: {}, feed=None, jobs=[job, job], phase="")
    console = Console(width=120, file=StringIO())
    screen = DemoScreen(run, 60, console)  # type: ignore[arg-type]
    screen.show(1.0)
    progress.append(Progress("totals", status="stopped"))
    screen.close()
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue().count("stopped") == 2


def test_what_to_try_next_is_there_after_an_installation() -> None:
    """Commands alone: files of the repository are not installed."""
    commands = {c.name for c in app.registered_commands} | {g.name for g in app.registered_groups}
    for step, _ in NEXT:
        program, command, *_ = step.split()
        assert (program, command in commands, "." in step) == ("headwater", True, False), step
