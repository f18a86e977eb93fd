"""What tables and help look like where there is little room."""

from __future__ import annotations

import re
import sys
from io import StringIO

import pytest
from rich.console import Console

from headwater.cli.jobs import _HEADER, _SPARE
from headwater.cli.options import options
from headwater.cli.select_output import _table
from headwater.cli.shell.commands import _help
from headwater.cli.style import boxed, plan_lines, show_error
from headwater.errors import JobError
from headwater.plan.nodes import Column
from headwater.results.text import change_count
from headwater.sql.types import BIGINT, STRING

JOB = ("users_per_region", "running", "5", "0.0", "3", "0.0", "0", "3", "1.6 s", "6", "13982")


def drawn(table: object, width: int) -> list[str]:
    console = Console(width=width, file=StringIO())
    console.print(table)
    assert isinstance(console.file, StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines() if line.strip()]


def test_numbers_are_aligned_to_the_right() -> None:
    jobs = [("totals", "running", "130627", ""), ("orders", "finished", "3", "1,200")]
    assert drawn(boxed(("job", "status", "rows in", "rows out"), jobs), 60)[2:] == [
        " totals  running    130627",
        " orders  finished        3     1,200",
    ]


def test_columns_without_content_make_room_for_the_others() -> None:
    header, row = ("name", "type", "key", "watermark", "comment"), ("order_id", "DECIMAL(10, 2)", "", "", "")
    assert drawn(boxed(header, [row], 30), 30)[-1] == " order_id  DECIMAL(10, 2)"
    assert "watermark" in drawn(boxed(header, [row], 80), 80)[0]
    assert "watermark" in drawn(boxed(header, [], 20), 60)[0], "of an empty table all columns are empty"


@pytest.mark.parametrize("width", [40, 45, 60, 80, 91, 120])
def test_no_word_of_a_job_is_broken(width: int) -> None:
    """A cell of two letters and a line each is no table; what there is no room for is left out."""
    table = boxed(_HEADER, [JOB], width, _SPARE)
    assert not isinstance(table, str)
    lines = drawn(table, width)
    assert len(lines) == 3, "header, line, row"
    assert {"users_per_region", "running", "0"} <= set(lines[-1].split())
    assert {"rows", "in", "process"} <= set(lines[0].split()) or width < 80
    assert (lines[0].split() == " ".join(_HEADER).split()) == (width >= 91)


def test_a_row_that_fits_nowhere_is_shown_line_by_line() -> None:
    header, row = ("name", "kind", "topic"), ("page_views", "table", "page_views_of_all_regions")
    assert boxed(header, [row, row], 30) == "\n\n".join(
        ["name   page_views\nkind   table\ntopic  page_views_of_all_regions"] * 2
    )
    assert len(drawn(boxed(("name", "what it is"), [("kafka", "a log of a topic, read and written")], 30), 30)) == 4


PLAN = """\
Write totals (kafka)                 changes=I  key=(id)
└─ Join inner [a.id = b.id]          changes=I  key=(id)  state: the rows of both inputs
   ├─ Scan a (kafka) [id]            changes=I  read: in columns
   └─ Filter (id > 1)                changes=I
      └─ Scan b (upsert-kafka) [id]  changes=UA,D  key=(id)"""


def test_what_an_operator_promises_stands_below_it_where_there_is_no_room_beside_it() -> None:
    lines = PLAN.splitlines()
    assert plan_lines(lines, 0) == lines == plan_lines(lines, 90)
    assert (
        "\n".join(plan_lines(lines, 60))
        == """\
Write totals (kafka)
│    changes=I  key=(id)
└─ Join inner [a.id = b.id]
   │    changes=I  key=(id)  state: the rows of both inputs
   ├─ Scan a (kafka) [id]
   │       changes=I  read: in columns
   └─ Filter (id > 1)
      │    changes=I
      └─ Scan b (upsert-kafka) [id]
              changes=UA,D  key=(id)"""
    )


def test_options_are_read_below_each_other_in_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    options("kafka")
    text = re.sub(r"\x1b\[\d+m", "", capsys.readouterr().out)
    assert max(map(len, text.splitlines()[2:])) <= 50
    assert "…" not in text
    assert "\nscan.bad-records\n  Enum, default fail. What to do" in text


def test_the_widest_column_of_a_live_table_is_cut_first() -> None:
    columns = (Column("n", BIGINT), Column("text", STRING))
    lines = drawn(_table(columns, [(3, "a long text that does not fit")], 24), 24)
    assert lines[0].split() == ["n", "text"]
    assert lines[1].split() == ["BIGINT", "STRING"]
    assert lines[-1].strip().startswith("3   a long te")
    assert lines[-1].endswith("…")


def test_help_is_wrapped_between_words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    _help(None, "")  # type: ignore[arg-type]  # it needs no shell
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 50
    after = lines[next(i for i, line in enumerate(lines) if "\\jobs" in line) + 1]
    assert after.startswith(" " * 20), "what follows stands below the meaning"


def test_an_error_is_wrapped_with_its_first_word(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    show_error(JobError("Directory '/proc/x' is no place for a job.", hint="Choose another one."))
    assert re.sub(r"\x1b\[\d+m", "", capsys.readouterr().err).splitlines() == [
        "Error: Directory '/proc/x' is no place",
        "for a job.",
        "Hint: Choose another one.",
    ]


def test_one_change_is_not_changes() -> None:
    assert [change_count(n) for n in (1, 2, 1200)] == ["1 change", "2 changes", "1,200 changes"]
