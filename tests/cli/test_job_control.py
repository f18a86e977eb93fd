"""Running jobs seen and stopped from another process, and what a run says of itself."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from run_lab import Clicks, Invoke, Start, until

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(autouse=True)
def _runtime_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else's jobs are seen here."""
    monkeypatch.setenv("HEADWATER_RUNTIME_DIR", str(tmp_path_factory.mktemp("run")))


def test_nothing_runs(invoke: Invoke) -> None:
    assert invoke("jobs").out == "No jobs are running.\n"
    said = invoke("stop", "totals")
    assert (said.code, "No job 'totals' is running." in said.err) == (1, True)


def test_a_job_is_seen_and_stopped_from_elsewhere(clicks: Clicks, started: Start, invoke: Invoke) -> None:
    arguments = [*clicks.arguments("unbounded"), "--checkpoint", "state"]
    clicks.click("ann", "bob", "ann")
    first = started(*arguments)
    until(lambda: clicks.totals() == {"ann": 2, "bob": 1}, first)

    until(lambda: _status(invoke)["rows_in"] == 3, first)
    status = _status(invoke)
    assert (status["status"], status["lag"], status["process"]) == ("running", 0, first.pid)
    assert status["begins"].startswith(f"Begins at {clicks.input}:0 offset 0")
    assert 0 < status["latency_seconds"] < 100
    counted = status["operators"]["aggregate-1"]
    assert (counted["rows_in"], counted["state_rows"]) == (3, 2) or counted["rows_in"] == 2, "or pre-aggregated"
    assert counted["seconds"] > 0
    listed = invoke("jobs").out.splitlines()
    assert listed[0].startswith("job     status   rows in")
    assert listed[1].split()[:3] == ["totals", "running", "3"]
    assert "rows in" in invoke("status", "totals", "--checkpoint", "state").out

    second = started(*arguments)
    _, err = second.communicate(timeout=100)
    assert second.returncode == 1
    assert "holds this checkpoint" in err

    said = invoke("stop", "totals", "--checkpoint", "state")
    assert (said.code, said.err) == (0, "")
    assert said.out.startswith("Job 'totals' is stopped: ")
    _, err = first.communicate(timeout=100)
    assert first.returncode == 0, err
    assert invoke("jobs").out == "No jobs are running.\n"
    assert "not running" in invoke("jobs", "--checkpoint", "state").out
    assert "last batch" in invoke("status", "totals", "--checkpoint", "state").out
    assert not Path("state/totals/run.json").exists()


def test_what_is_wrong_is_known_before_spark(clicks: Clicks, invoke: Invoke) -> None:
    began = time.monotonic()
    arguments = [word.replace(clicks.input, f"{clicks.input}s") for word in clicks.arguments("unbounded")]
    said = invoke(*arguments)
    assert said.code == 1
    assert "INSERT INTO totals failed (totals.sql:9)." in said.err
    assert f"'{clicks.input}s'" in said.err
    assert f"Did you mean '{clicks.input}'?" in said.err
    assert "Starting Spark" not in said.err
    assert time.monotonic() - began < 60
    said = invoke(*arguments, "--log-format", "json")
    assert (said.code, json.loads(said.err)["level"]) == (1, "error")


def test_other_jobs_may_continue_after_a_failure(clicks: Clicks, started: Start, tmp_path: Path) -> None:
    clicks.send('{"who": ')
    generated = "'connector' = 'datagen', 'rows-per-second' = '100', 'number-of-rows' = '1000'"
    with (tmp_path / "totals.sql").open("a", encoding="utf-8") as script:
        script.write(f"CREATE TABLE numbers (n INT) WITH ({generated});\n")
        script.write("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole');\n")
        script.write("INSERT INTO nowhere SELECT n FROM numbers;\n")
    logging = ("--log-format", "json", "--log-file", "run.log", "--verbose")
    run = started(*clicks.arguments("unbounded"), "--on-failure", "continue", *logging)
    _, err = run.communicate(timeout=300)
    assert run.returncode == 1, err
    lines = [json.loads(line) for line in err.splitlines()]
    ended = {line["job"]: line["status"] for line in lines if "status" in line}
    assert ended == {"totals": "failed", "nowhere": "finished"}
    assert lines[-1]["level"] == "error"
    assert "INSERT INTO totals failed (totals.sql:9)." in lines[-1]["message"]
    assert [json.loads(line)["message"] for line in (tmp_path / "run.log").read_text().splitlines()] == [
        line["message"] for line in lines
    ]


def _status(invoke: Invoke) -> dict[str, Any]:
    said = invoke("status", "totals", "--json")
    if said.code:
        assert "No job 'totals' is running." in said.err
        return {"rows_in": None}
    found: dict[str, Any] = json.loads(said.out)
    return found
