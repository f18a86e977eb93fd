"""`headwater sql` through a real pseudo-terminal, on a real broker: what is typed, and what is then on the screen."""

from __future__ import annotations

import json
import os
import re
import runpy
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest

from headwater.broker import Broker
from headwater.testing.kafka import Kafka, Record
from headwater.testing.spark import QUICK_ARGUMENTS

pytestmark = pytest.mark.timeout(600)

TABLES = """\
CREATE TABLE clicks (id INT, who STRING) WITH (
  'connector' = 'kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE totals (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${totals}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'json');
"""
COLUMNS, ROWS = 110, 27  # as the pictures of the documentation have them
PICTURES = "HEADWATER_PICTURES"  # where to put a picture of the shell; `make docs-picture` says so
UP_TO_NOW = "SET 'execution.runtime-mode' = 'batch';"


class Terminal:
    """What a program writes to a terminal, and what a person sees."""

    def __init__(self, directory: Path, *arguments: str, home: Path) -> None:
        # Jobs of other tests, which run beside this one, are not this shell's.
        own = {"HEADWATER_HISTORY": str(home / "history"), "HEADWATER_RUNTIME_DIR": str(home / "run")}
        environment = {**os.environ, **own, "TERM": "xterm-256color"}
        environment.pop("NO_COLOR", None)
        command = ["-c", "from headwater.cli import main; main()", *arguments]
        self.program = pexpect.spawn(
            sys.executable,
            command,
            cwd=directory,
            env=environment,
            encoding="utf-8",
            dimensions=(ROWS, COLUMNS),
            timeout=120,
        )
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.Stream(self._screen)
        self.written = ""

    def type(self, text: str) -> None:
        self.program.send(text)

    def line(self, text: str) -> None:
        self.program.send(f"{text}\r")

    def look(self) -> str:
        """The screen now."""
        try:
            while True:
                text = self.program.read_nonblocking(65536, timeout=0.05)
                self.written += text
                self._stream.feed(text)
                if "\x1b[6n" in text:  # the program asks where the cursor is
                    self.program.send(f"\x1b[{self._screen.cursor.y + 1};{self._screen.cursor.x + 1}R")
        except (pexpect.TIMEOUT, pexpect.EOF):
            return "\n".join(line.rstrip() for line in self._screen.display if line.strip())

    def await_text(self, pattern: str, seconds: float = 90) -> str:
        """The screen as soon as the pattern is on it."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, screen := self.look(), re.MULTILINE):
            assert time.monotonic() < deadline, f"'{pattern}' does not come:\n{screen}"
            assert self.program.isalive(), f"it has ended:\n{screen}"
        return screen

    def clear(self) -> None:
        self.type("\x0c")
        self._screen.reset()

    def save_picture(self, name: str) -> None:
        """The screen now, for the documentation."""
        if PICTURES in os.environ:
            drawing = runpy.run_path(str(Path(__file__).parents[2] / "docs/images/record_demo.py"))
            frame = drawing["Frame"](drawing["picture"](self._screen), 1.0)
            text = drawing["svg"]([frame], "headwater sql")
            Path(os.environ[PICTURES], name).write_text(text, encoding="utf-8")

    def close(self) -> None:
        self.program.close(force=True)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*arguments: str) -> Terminal:
        opened.append(Terminal(tmp_path, *arguments, home=tmp_path))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def test_a_session_from_the_first_word_to_the_last(
    broker: Broker, terminal: Callable[..., Terminal], unique_topic: Callable[[str], str], tmp_path: Path
) -> None:
    kafka, topics = Kafka(broker.bootstrap_servers), {name: unique_topic(name) for name in ("clicks", "totals")}
    kafka.create(dict.fromkeys(topics.values(), 1))
    kafka.produce(_click(topics["clicks"], number, who) for number, who in enumerate(["ann", "bob", "ann"]))
    (tmp_path / "tables.sql").write_text(TABLES, encoding="utf-8")
    values = {**topics, "kafka": broker.bootstrap_servers}
    variables = [word for k, v in values.items() for word in ("--var", f"{k}={v}")]
    shell = terminal("sql", *variables, "--master", "local[2]", *QUICK_ARGUMENTS)

    shell.await_text("^headwater>")  # long before Spark is there
    assert "Spark is starting" in shell.await_text("Ctrl-D quits")
    shell.line("\\i tables.sql")
    shell.line("\\dt")
    shell.await_text(r"clicks +table +kafka")
    shell.line("SELECT who,")
    shell.await_text("^ +->")  # several lines
    shell.line("nothing FROM clicks;")
    shell.await_text(r"\^+\n")  # a caret under what is wrong

    shell.line(UP_TO_NOW)
    shell.line("SELECT who, COUNT(*) AS n FROM clicks GROUP BY who ORDER BY who;")
    shell.await_text(r"^ann +\| +2\n *bob +\| +1\n *2 rows")
    shell.await_text("Spark is ready")
    shell.clear()
    shell.line("\\timing")
    shell.line("SELECT id FROM clicks WHERE id > 1;")
    seconds = re.search(r"Time: ([\d.]+) s", shell.await_text(r"Time: [\d.]+ s"))
    assert seconds is not None

    shell.line("\\timing")
    shell.await_text("Timing is off")
    shell.clear()
    shell.line("SELECT who, COUNT(*) AS n FROM clicks GROUP BY who;")
    shell.await_text("2 rows")
    shell.line("RESET;")
    shell.line("INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who;")
    shell.await_text("Job 'totals' runs in the background")
    shell.await_text("1 job running")
    shell.line("SELECT who, n FROM totals;")  # without an end: a table that changes in place
    shell.await_text(r"ann +2")
    kafka.produce([_click(topics["clicks"], 3, "ann")])
    shell.await_text(r"ann +3")
    shell.save_picture("shell.svg")
    shell.type("\x03")
    shell.await_text("ended")
    shell.clear()
    shell.line("\\jobs")
    shell.await_text(r"totals +running")  # Ctrl-C has ended the query alone
    shell.line("\\stop totals")
    shell.await_text("Job 'totals' stopped")  # said before the next line is typed
    shell.type("\x04")
    shell.program.expect(pexpect.EOF)
    shell.program.wait()
    assert shell.program.exitstatus == 0


def test_a_job_that_ends_is_reported_above_the_line_that_is_typed(terminal: Callable[..., Terminal]) -> None:
    shell = terminal("sql", "--master", "local[2]", *QUICK_ARGUMENTS)
    shell.await_text("Spark is ready")
    shell.line("CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '10');")
    shell.line("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole');")
    shell.line("INSERT INTO nowhere SELECT n FROM numbers;")
    shell.await_text("Job 'nowhere' runs in the background")
    shell.type("SELECT 40")
    shell.await_text(r"^Job 'nowhere' finished\.\nheadwater> SELECT 40")
    shell.line(" + 2 AS answer;")
    assert shell.await_text(r"^ +42\n1 row").count("Job 'nowhere' finished") == 1


def test_completion_and_history(terminal: Callable[..., Terminal], tmp_path: Path) -> None:
    shell = terminal("sql", "--master", "nowhere")  # no Spark is needed to type
    shell.await_text("^headwater>")
    shell.line("CREATE TABLE orders (id INT, customer STRING) WITH ('connector' = 'datagen');")
    shell.await_text("^Table 'orders' is defined")
    shell.clear()
    shell.line("SELECT 1")
    shell.await_text("the statement ends with ';' · Ctrl-C forgets it")
    shell.type("\x03")
    shell.await_text("Ctrl-D quits")
    shell.type("SELECT * FROM or\t")
    shell.await_text(r"SELECT \* FROM orders")
    shell.type("\x03")
    shell.type("SELECT id FROM orders WHERE cus\t")
    shell.await_text("WHERE customer")
    shell.type("\x03")
    shell.type("CREATE TABLE t (a INT) WITH ('connector' = 'dat\t")
    shell.await_text("'connector' = 'datagen")
    shell.type("', 'number-of\t")
    shell.await_text("'number-of-rows")
    shell.type("\x03")
    shell.type("SET 'execution.run\t")
    shell.await_text("SET 'execution.runtime-mode")
    shell.type("\x03")
    shell.line("SET 'x.password' = 'hush';")
    shell.await_text("Unknown option")
    shell.clear()
    shell.type("\x1b[A\x1b[A")
    shell.await_text("CREATE TABLE orders")
    assert "\x1b[" in shell.written  # colours
    kept = (tmp_path / "history").read_text(encoding="utf-8")  # by the next shell: nothing with a password
    assert "CREATE TABLE orders" in kept
    assert "hush" not in kept
    assert (tmp_path / "history").stat().st_mode & 0o077 == 0


def _click(topic: str, number: int, who: str) -> Record:
    return Record(topic, None, json.dumps({"id": number, "who": who}).encode())


def test_a_job_that_cannot_start_is_an_error_of_its_statement(terminal: Callable[..., Terminal]) -> None:
    shell = terminal("sql", "--master", "nowhere")  # it does not come to that
    shell.await_text("^headwater>")
    shell.line(
        "CREATE TABLE far (id INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json', "
        "'properties.bootstrap.servers' = '127.0.0.1:1');"
    )
    shell.await_text("^Table 'far' is defined")
    shell.line("CREATE TABLE nowhere (id INT) WITH ('connector' = 'blackhole');")
    shell.line("INSERT INTO nowhere SELECT id FROM far;")
    shell.await_text("No Kafka broker answers")
    shell.line("\\jobs")
    assert "runs in the background" not in shell.await_text("No jobs")
