"""Which form the rows of a query take on the command line: a table, changes, CSV or JSON, by whether it ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.cli.select_output import RowFormat, show_query
from headwater.errors import ValidationError
from headwater.plan.nodes import Column
from headwater.results.query import Change
from headwater.session import Session
from headwater.sql.types import INT


@dataclass
class Answer:
    """What a QueryResult shows of itself, without a job behind it."""

    bounded: bool
    updating: bool
    running: bool = False
    stopped: bool = False
    columns = (Column("n", INT),)
    query = SimpleNamespace(order=())

    def shown_rows(self) -> list[tuple[Any, ...]]:
        assert self.bounded, "a query without an end has no final rows"
        return [(2,)]

    def shown_changes(self) -> Iterator[Change]:
        yield Change("+I", (1,))
        if self.updating:
            yield Change("-U", (1,))
            yield Change("+U", (2,))

    def stop(self) -> None:
        self.stopped = True


TABLE = ["  n", "INT", "---", "  2", "1 row"]
CHANGES = ["+I[1]", "-U[1]", "+U[2]"]


@pytest.mark.parametrize(
    ("answer", "form", "mode", "expected"),
    [
        (Answer(True, True), RowFormat.table, "table", TABLE),
        (Answer(True, True), RowFormat.table, "tableau", TABLE),
        (Answer(True, True), RowFormat.table, "changelog", CHANGES),
        (Answer(False, True), RowFormat.table, "table", CHANGES),  # standard output is no terminal here
        (Answer(False, False), RowFormat.table, "tableau", CHANGES[:1]),
        (Answer(True, True), RowFormat.csv, "table", ["n", "2"]),
        (Answer(False, True), RowFormat.csv, "table", ["op,n", "+I,1", "-U,1", "+U,2"]),
        (Answer(False, False), RowFormat.jsonl, "table", ['{"n": 1}']),
        (Answer(True, False), RowFormat.jsonl, "table", ['{"n": 1}']),  # read as it comes, not held
        (Answer(True, True), RowFormat.json, "table", ['[{"n": 2}]']),
    ],
)
def test_forms(
    answer: Any, form: RowFormat, mode: str, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    show_query(answer, form, mode, lambda: False)
    assert capsys.readouterr().out.splitlines() == expected


def test_an_array_needs_an_end() -> None:
    answer: Any = Answer(False, True, running=True)
    with pytest.raises(ValidationError, match="does not end"):
        show_query(answer, RowFormat.json, "table", lambda: False)
    assert answer.stopped


def test_a_plan_keeps_its_layout_in_a_notebook(capsys: pytest.CaptureFixture[str]) -> None:
    """A table would cut its lines, and a browser would fold its spaces."""
    session = Session()
    session.sql("CREATE TABLE sales (store INT) WITH ('connector' = 'datagen')")
    for statement in (
        "EXPLAIN SELECT store, COUNT(*) FROM sales WHERE store < 3 GROUP BY store",
        "SHOW CREATE TABLE sales",
    ):
        shown = session.sql(statement)
        text = "\n".join(row[0] for row in shown.rows())
        assert shown._repr_html_().startswith("<pre ")
        assert f">{escape(text)}</pre>" in shown._repr_html_()
        shown.show()
        assert capsys.readouterr().out == f"{text}\n"
    assert "<table>" in session.sql("SHOW TABLES")._repr_html_()
