"""`headwater modernize`: to standard output, as a difference, into the file, and on a terminal."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from run_lab import Invoke

OLD = """\
create table cars (car_id STRING) with (
  'connector.type' = 'kafka', 'connector.version' = '0.11',
  'connector.topic' = '${topic}',
  'connector.properties.bootstrap.servers' = 'h:1',
  'format.type' = 'csv'
);
insert into cars values ('a');
"""
NEW = """\
create table cars (car_id STRING) with (
  'connector' = 'kafka',
  'topic' = '${topic}',
  'properties.bootstrap.servers' = 'h:1',
  'format' = 'csv'
);
insert into cars values ('a');
"""
SAID = """\
cars.sql:1: cars, 5 options
  'connector.version' is removed: it has no replacement
cars.sql: rewritten, 1 plan compared: the same as before
"""
VAR = ("--var", "topic=t")


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "cars.sql"
    path.write_text(OLD, encoding="utf-8")
    return path


def test_standard_output_is_the_script(invoke: Invoke, script: Path) -> None:
    said = invoke("modernize", "cars.sql", *VAR)
    assert (said.code, said.out, said.err) == (0, NEW, SAID)
    assert script.read_text(encoding="utf-8") == OLD


def test_what_changes_can_be_seen_first(invoke: Invoke, script: Path) -> None:
    said = invoke("modernize", script.name, "--diff", *VAR)
    assert said.code == 0
    assert {"-  'format.type' = 'csv'", "+  'format' = 'csv'", " insert into cars values ('a');"} <= set(
        said.out.splitlines()
    )
    assert "--- cars.sql\n+++ cars.sql\n" in said.out


def test_the_file_can_be_changed(invoke: Invoke, script: Path) -> None:
    said = invoke("modernize", script.name, "--write", *VAR)
    assert (said.code, said.out) == (0, "")
    assert "cars.sql: written, 1 plan compared" in said.err
    assert script.read_text(encoding="utf-8") == NEW
    again = invoke("modernize", script.name, "--write", *VAR)
    assert again.err == "cars.sql: nothing to rewrite\n"
    assert script.read_text(encoding="utf-8") == NEW


def test_a_terminal_shows_the_same_script(
    invoke: Invoke, script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    said = invoke("modernize", script.name, *VAR)
    assert said.code == 0
    for line in NEW.splitlines():
        assert line in said.out


def test_what_is_wrong_has_a_place(invoke: Invoke, script: Path) -> None:
    script.write_text(OLD.replace("0.11", "0.9"), encoding="utf-8")
    said = invoke("modernize", script.name, *VAR)
    assert (said.code, said.out) == (1, "")
    assert "cars.sql:2:31" in said.err
    assert "'0.9' is not one of 0.10, 0.11, universal." in said.err


def test_standard_input_is_read_but_not_written(invoke: Invoke) -> None:
    assert invoke("modernize", "-", *VAR, stdin=OLD).out == NEW
    said = invoke("modernize", "-", "--write", *VAR, stdin=OLD)
    assert said.code == 1
    assert "Standard input cannot be written." in said.err
