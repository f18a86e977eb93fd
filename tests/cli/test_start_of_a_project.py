"""`headwater init` and `headwater doctor`: a project that passes its own test, and what a machine lacks."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from run_lab import Invoke

from headwater.broker import Broker
from headwater.testing import CaseRunner, ReplayMode, read_case


def test_a_new_project_is_valid_and_passes_its_test(
    invoke: Invoke, case_runner: CaseRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = invoke("init", "shop")
    assert made.code == 0
    files = sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file())
    assert files == [
        f"shop/{n}" for n in (".gitignore", "headwater.toml", "tables.sql", "tests/totals.case", "totals.sql")
    ]
    assert "headwater run tables.sql totals.sql" in made.out
    assert max(map(len, made.out.splitlines())) < 80
    checked = invoke("check", "shop/tables.sql", "shop/totals.sql")
    assert checked.out.splitlines()[-1] == "ok: 2 tables, 1 insert"
    case_runner.play(read_case(tmp_path / "shop/tests/totals.case"), ReplayMode.AS_WRITTEN)
    again = invoke("init", "shop")
    assert (again.code, "already exists" in again.err) == (1, True)


def test_a_test_of_a_project_shows_its_results_and_nothing_of_spark(
    invoke: Invoke, broker: Broker, tmp_path: Path
) -> None:
    (tmp_path / "one.case").write_text(
        "sql\nCREATE TABLE t (a INT) WITH ('connector' = 'blackhole');\nINSERT INTO t SELECT 1;\n"
    )
    command = [sys.executable, "-m", "headwater", "test", "one.case", "--broker", broker.bootstrap_servers]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    *results, verdict = done.stdout.splitlines()
    assert results[0] == "ok     one.case  as-written"
    assert re.fullmatch(rf"1 case, played {len(results)} times?: all as expected \(\d+ s\)", verdict)


def test_a_machine_that_has_everything(invoke: Invoke, broker: Broker) -> None:
    said = invoke("doctor", "--broker", broker.bootstrap_servers)
    assert said.code == 0
    assert {line.split()[1] for line in said.out.splitlines()} >= {"Python", "packages", "Java", "jars", "broker"}
    assert "wrong" not in said.out


def test_what_is_missing_is_said_with_what_to_do(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HEADWATER_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    said = invoke("doctor", "--broker", "127.0.0.1:1")
    assert said.code == 1
    lines = {line.split()[1]: line.split()[0] for line in said.out.splitlines() if not line.startswith(" ")}
    assert lines == {
        "Python": "ok", "packages": "ok", "Java": "wrong", "Spark": "note", "jars": "note", "disk": "ok",
        "broker": "wrong",
    }  # fmt: skip
    assert "Correct JAVA_HOME" in said.out
    assert "headwater fetch" in said.out


def test_completion_of_the_shell_can_be_installed(invoke: Invoke) -> None:
    assert "--install-completion" in invoke("--help").out
