"""`headwater init` and `headwater doctor`: a project that passes its own test, and what a machine lacks."""

from __future__ import annotations

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
    checked = invoke("check", "shop/tables.sql", "shop/totals.sql")
    assert checked.out.splitlines()[-1] == "ok: 2 tables, 1 insert"
    case_runner.play(read_case(tmp_path / "shop/tests/totals.case"), ReplayMode.AS_WRITTEN)
    again = invoke("init", "shop")
    assert (again.code, "already exists" in again.err) == (1, True)


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
