"""The command itself: quick to start, plain about errors. What each command does is tested where that thing is."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest

from headwater import cli
from headwater.errors import SetupError

SLOW = {"confluent_kafka", "numpy", "pandas", "pyarrow", "pyspark", "rich", "sqlglot"}


def fail_with(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def app(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", app)


def test_help_loads_nothing_slow() -> None:
    script = "import sys; from headwater import cli; print(*(name for name in sys.modules if '.' not in name))"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert "headwater" in loaded
    assert SLOW.isdisjoint(loaded)


def test_version_names_all_that_matters() -> None:
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    versions = {line[:14].strip(): line[14:].strip() for line in shown.splitlines()}
    assert versions["Headwater"] == version("headwater")
    assert versions["Spark"] == "4.1.1"
    assert versions["Kafka client"].startswith("3.9.1 (Java), ")
    assert versions["Kafka broker"] == "4.1.0 (embedded)"
    assert versions["Java"][0].isdigit()


def test_an_error_is_a_message(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fail_with(SetupError("No port.", detail="All are taken.", hint="Free one."), monkeypatch)
    with pytest.raises(SystemExit) as left:
        cli.main()
    assert left.value.code == 1
    assert capsys.readouterr() == ("", "Error: No port.\nAll are taken.\nHint: Free one.\n")


def test_a_bug_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fail_with(KeyError("who"), monkeypatch)
    with pytest.raises(SystemExit):
        cli.main()
    assert capsys.readouterr().err.startswith("Error: KeyError: 'who'\nHint: This is a bug in Headwater.")


def test_debugging_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(KeyError("who"), monkeypatch)
    monkeypatch.setenv("HEADWATER_DEBUG", "1")
    with pytest.raises(KeyError):
        cli.main()


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["run", "a.sql", "--ui"], ["run", "a.sql", "--ui=any"]),
        (["run", "--ui", "a.sql"], ["run", "--ui=any", "a.sql"]),
        (["run", "a.sql", "--ui", "4900", "-v"], ["run", "a.sql", "--ui", "4900", "-v"]),
        (["run", "--ui", "--ui=0"], ["run", "--ui=any", "--ui=0"]),
        (["jobs"], ["jobs"]),
        ([], []),
    ],
)
def test_the_port_of_the_page_may_be_left_out(given: list[str], read: list[str]) -> None:
    assert cli._with_port(given) == read
