"""The live view on a terminal: what it shows, and that it redraws cleanly when the terminal is resized."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from headwater.cli.live import LiveView
from headwater.control.meter import JobSample
from headwater.execution.job import Progress

RUNNING = Progress("totals", "running", 12, 123456, 789, 5, 0.41, state_rows=1000)


class Terminal:
    """As terminals are that wrap what is on them when they get narrower. It knows what `rich` writes to draw in place:
    carriage return, new line, cursor up, erase line, hide and show the cursor."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.lines = [""]
        self.row = 0

    def resize(self, width: int) -> None:
        rows: list[str] = []
        for number, line in enumerate(self.lines):
            pieces = [line[i : i + width] for i in range(0, len(line), width)] or [""]
            if number == self.row:
                self.row = len(rows) + len(pieces) - 1
            rows += pieces
        self.width, self.lines = width, rows

    def feed(self, text: str) -> None:
        while text:
            if text.startswith("\x1b["):
                end = next(i for i, c in enumerate(text[2:], 2) if c.isalpha())
                self._control(text[2:end], text[end])
                text = text[end + 1 :]
                continue
            if text[0] == "\n":
                self.row += 1
                self.lines += [""] * (self.row - len(self.lines) + 1)
            elif text[0] != "\r":
                self.lines[self.row] += text[0]
                assert len(self.lines[self.row]) <= self.width, self.lines[self.row]
            text = text[1:]

    def _control(self, value: str, letter: str) -> None:
        if letter == "A":
            self.row = max(0, self.row - int(value))
        elif letter == "K":
            assert value == "2"
            self.lines[self.row] = ""
        else:
            assert letter in "mhl", (value, letter)

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.lines).rstrip()


class Drawn:
    def __init__(self, width: int) -> None:
        self.file = StringIO()
        self.console = Console(
            file=self.file, force_terminal=True, force_interactive=True, width=width, height=50, _environ={}
        )
        self.terminal = Terminal(width)
        self.view = LiveView("totals.sql", self.console, refresh=False)

    def refresh(self) -> str:
        self.view.refresh()
        return self.see()

    def see(self) -> str:
        self.terminal.feed(self.file.getvalue())
        self.file.seek(0)
        self.file.truncate()
        return self.terminal.text

    def resize(self, width: int) -> None:
        self.terminal.resize(width)
        self.console.width = width


def reading(progress: Progress) -> JobSample:
    return JobSample(progress, "totals.sql:3", 2.0, 4500, 20)


@pytest.mark.parametrize("widths", [(120, 60, 33, 120), (200, 21, 90), (80, 79, 78, 40, 200)])
def test_it_is_drawn_once_at_every_width(widths: tuple[int, ...]) -> None:
    drawn = Drawn(widths[0])
    drawn.view.address("Spark UI", "http://127.0.0.1:4040")
    drawn.view.show([reading(RUNNING), reading(replace(RUNNING, name="others", status="retrying", note="It is away."))])
    drawn.refresh()
    for width in widths[1:]:
        drawn.resize(width)
        drawn.view.say("Something was said.") if width == 40 else None
        text = drawn.refresh()
        assert text.count("totals.sql") in (1, 2, 3), text  # the title, and the column 'from' where there is room
        assert text.count("others: It is") == 1, text
        assert text.count("job") == 1, text
        names = [line.split()[0] for line in text.splitlines() if line.strip()]
        assert names.count("totals") + names.count("others") == 2, text
    drawn.view.close()
    assert "Ctrl-C" not in drawn.see(), "nothing is left to be stopped"


def test_it_says_what_can_be_done() -> None:
    drawn = Drawn(120)
    drawn.view.phase("Starting Spark …")
    assert "Ctrl-C" not in drawn.refresh()
    drawn.view.phase("")
    drawn.view.address("Spark UI", "http://127.0.0.1:4040")
    drawn.view.address("Page", "http://127.0.0.1:4848/?token=abc")
    drawn.view.show([reading(RUNNING)])
    assert drawn.refresh().splitlines()[-1].split("  ·  ") == [
        "Spark UI http://127.0.0.1:4040",
        "Page http://127.0.0.1:4848/?token=abc",
        "Ctrl-C stops after the current batch.",
    ]
    drawn.resize(60)
    assert drawn.refresh().splitlines()[-3:] == [
        "Spark UI http://127.0.0.1:4040",
        "Page http://127.0.0.1:4848/?token=abc",
        "Ctrl-C stops after the current batch.",
    ]
    drawn.view.phase("Stopping after the current batch; Ctrl-C again ends at once.")
    assert "Ctrl-C stops" not in drawn.refresh()
    drawn.view.close()


def test_what_is_said_stays_above() -> None:
    drawn = Drawn(80)
    drawn.view.show([reading(RUNNING)])
    drawn.refresh()
    drawn.view.say("Begins at orders:0 offset 0.", job="totals")
    drawn.view.say("It is odd.", "warning", "totals")
    lines = drawn.refresh().splitlines()
    assert lines[:2] == ["totals: Begins at orders:0 offset 0.", "Warning: totals: It is odd."]
    assert lines[2].startswith("totals.sql  0:0")
    drawn.view.close()
