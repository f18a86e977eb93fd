"""A notebook, executed by nbclient in a kernel of its own: results show themselves, change while their query runs, and
can be stopped."""

from __future__ import annotations

import re
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

SETUP = """\
from headwater.session import Session
from headwater.testing.spark import QUICK_SPARK
session = Session(master="local[1]", conf=QUICK_SPARK)
session.sql('''
CREATE TABLE ticks (n BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '20');
CREATE TABLE numbers (n BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '3', 'fields.n.kind' = 'sequence',
  'fields.n.start' = '1', 'fields.n.end' = '3');
CREATE TABLE nowhere (n BIGINT) WITH ('connector' = 'blackhole')
''')"""
BOUNDED = "session.sql('SELECT n, n * 10 AS tenfold FROM numbers')"
UNBOUNDED = "session.sql('SELECT COUNT(*) AS n FROM ticks')"
INSERT = "session.sql('INSERT INTO nowhere SELECT n FROM numbers')"
FAILING = "session.sql('SELECT 1 / (COUNT(*) - COUNT(*)) AS n FROM ticks')"
WAIT = """\
import time
deadline = time.monotonic() + 60
while {condition} and time.monotonic() < deadline:
    time.sleep(0.1)
"""
STOP = """\
counted = _
{wait}
counted.stop()
{joined}
print(counted.rows()[0][0])"""
JOINED = """\
import threading
[thread.join() for thread in threading.enumerate() if thread.name == "headwater-display"]"""
CELLS = (
    SETUP,
    BOUNDED,
    UNBOUNDED,
    STOP.format(wait=WAIT.format(condition="counted.rows() < [(40,)]"), joined=JOINED),
    FAILING,
    f"{JOINED};",
    INSERT,
    "session.close()",
)


class Client(NotebookClient):
    """Remembers what changed in place, as HTML."""

    def process_message(self, msg: dict[str, Any], cell: Any, cell_index: int) -> Any:
        if msg["msg_type"] == "update_display_data":
            updates.append(msg["content"]["data"]["text/html"])
        return super().process_message(msg, cell, cell_index)


updates: list[str] = []


@pytest.fixture(scope="module")
def executed() -> list[Any]:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    client = Client(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": "."}})
    return [cell["outputs"] for cell in client.execute()["cells"]]


def shown(outputs: list[Any]) -> str:
    [html] = [output["data"]["text/html"] for output in outputs if "data" in output]
    return str(html)


def test_definitions_show_nothing(executed: list[Any]) -> None:
    assert executed[0] == []


def test_a_job_is_named(executed: list[Any]) -> None:
    assert shown(executed[6]) == "<p>Job <code>nowhere</code> runs in the background.</p>"


def test_a_result_shows_itself(executed: list[Any]) -> None:
    html = shown(executed[1])
    assert re.findall(r"<td[^>]*>(\d+)</td>", html) == ["1", "10", "2", "20", "3", "30"]
    assert html.endswith("<p>3 rows</p>")


def test_it_changes_while_its_query_runs_and_can_be_stopped(executed: list[Any]) -> None:
    counts = [int(n) for html in updates if "tenfold" not in html for n in re.findall(r"<td[^>]*>(\d+)</td>", html)]
    assert len(set(counts)) > 1, counts
    assert counts == sorted(counts)
    running = [html for html in updates if "running" in html]
    assert running, "it says how it is ended"
    assert all("stop()" in html for html in running)
    [printed] = executed[3]
    assert int(printed["text"]) >= 40
    assert shown(executed[2]).endswith("<p>1 row</p>"), "the end is shown where the query was displayed"
    assert f">{int(printed['text'])}</td>" in shown(executed[2])


def test_a_query_that_fails_says_so_where_it_is_shown(executed: list[Any]) -> None:
    html = shown(executed[4])
    assert "failed" in html
    assert "Traceback" not in str(executed[4:])
