"""Calling the command: in this process where that is enough, in one of its own where signals and exit codes matter."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from run_lab import Clicks, Invoke, Said, Start

from headwater import cli
from headwater.broker import Broker


@pytest.fixture
def invoke(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Invoke:
    """`headwater …` in `tmp_path`, in this process."""

    def call(*arguments: str, stdin: str = "") -> Said:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["headwater", *arguments])
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as left:
            cli.main()
        captured = capsys.readouterr()
        code = left.value.code
        return Said(code if isinstance(code, int) else 0, captured.out, captured.err)

    return call


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """`headwater …` in `tmp_path`, in a process of its own, which is also the head of a process group."""

    def call(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from headwater.cli import main; main()", *arguments],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    return call


@pytest.fixture
def clicks(broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path) -> Clicks:
    return Clicks(broker, unique_topic, tmp_path)


@pytest.fixture
def started(start: Start) -> Iterator[Start]:
    """As `start`; what is still running in the end is killed."""
    running: list[subprocess.Popen[str]] = []

    def call(*arguments: str) -> subprocess.Popen[str]:
        running.append(start(*arguments))
        return running[-1]

    yield call
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate()
