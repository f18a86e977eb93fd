"""`headwater run` and `headwater demo` on a real broker: results, exit codes, clean stops and what is said."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from headwater.broker import Broker
from headwater.demo.results import read_all

pytestmark = pytest.mark.timeout(600)

Start = Callable[..., subprocess.Popen[str]]

TABLES = """\
CREATE TABLE clicks (who STRING) WITH (
  'connector' = 'kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = '${bounded}', 'format' = 'json'
);
CREATE TABLE totals (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${totals}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'json'
);
"""
QUICK_START = ("--conf", "spark.ui.enabled=false")
COUNT = "INSERT INTO totals SELECT who, COUNT(*) FROM clicks GROUP BY who;\n"


class Clicks:
    """Two topics of their own, and the script that counts from one into the other."""

    def __init__(self, broker: Broker, unique_topic: Callable[[str], str], directory: Path) -> None:
        self.servers = broker.bootstrap_servers
        self.input, self.output = unique_topic("clicks"), unique_topic("totals")
        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})
        for made in admin.create_topics([NewTopic(self.input, 2), NewTopic(self.output, 1)]).values():
            made.result(30)
        (directory / "totals.sql").write_text(TABLES + COUNT, encoding="utf-8")

    def send(self, *values: str) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for value in values:
            producer.produce(self.input, value.encode())
        assert producer.flush(30) == 0

    def click(self, *people: str) -> None:
        self.send(*(json.dumps({"who": who}) for who in people))

    def totals(self) -> dict[str, int]:
        rows = [json.loads(value) for value in read_all(self.servers, self.output)]
        return {row["who"]: row["n"] for row in rows}

    def arguments(self, bounded: str) -> list[str]:
        values = {"kafka": self.servers, "clicks": self.input, "totals": self.output, "bounded": bounded}
        return ["run", "totals.sql", *QUICK_START, *(word for k, v in values.items() for word in ("--var", f"{k}={v}"))]


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


def until(happened: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_bounded_input_ends_by_itself(clicks: Clicks, started: Start, tmp_path: Path) -> None:
    with (tmp_path / "totals.sql").open("a", encoding="utf-8") as script:
        script.write("CREATE TABLE screen (who STRING) WITH ('connector' = 'print');\n")
        script.write("INSERT INTO screen SELECT UPPER(who) FROM clicks WHERE who <> 'bob';\nSHOW TABLES;\n")
    clicks.click("ann", "bob", "ann")
    process = started(*clicks.arguments("latest-offset"))
    out, err = process.communicate(timeout=400)
    assert process.returncode == 0, err
    assert clicks.totals() == {"ann": 2, "bob": 1}
    assert sorted(line for line in out.splitlines() if line.startswith("+I")) == ["+I[ANN]", "+I[ANN]"]
    assert "totals" in out
    assert "State ends with this run" in err
    assert "1-totals  finished  3 rows in, 2 out" in err
    assert "WARN" not in err


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(clicks: Clicks, started: Start) -> None:
    arguments = [*clicks.arguments("unbounded"), "--checkpoint", "state"]
    clicks.click("ann", "bob", "ann")
    first = started(*arguments)
    until(lambda: clicks.totals() == {"ann": 2, "bob": 1}, first)
    os.killpg(first.pid, signal.SIGINT)  # as a terminal does: to every process of the group
    _, err = first.communicate(timeout=200)
    assert first.returncode == 0, err
    assert "Stopped. State is kept in 'state': run the same command again to continue." in err
    assert "1-totals  stopped  3 rows in" in err

    clicks.click("ann", "cid")
    second = started(*arguments)
    until(lambda: clicks.totals() == {"ann": 3, "bob": 1, "cid": 1}, second)
    second.terminate()
    _, err = second.communicate(timeout=200)
    assert second.returncode == 0, err
    assert "1-totals  stopped  2 rows in" in err


def test_a_failing_job_says_which_and_why(clicks: Clicks, started: Start) -> None:
    clicks.click("ann")
    clicks.send('{"who": ')
    process = started(*clicks.arguments("latest-offset"))
    out, err = process.communicate(timeout=400)
    assert process.returncode == 1
    assert "Error: INSERT INTO totals failed (totals.sql:9)." in err
    assert f"topic '{clicks.input}', partition" in err
    assert "Hint: " in err
    assert "Traceback" not in out + err
    assert "at org.apache" not in err


def test_a_second_ctrl_c_ends_at_once() -> None:
    up = "print('up', flush=True); time.sleep(30)"
    waiting = f"import time; from headwater.cli.stopping import Stop\nwith Stop():\n  {up}"
    process = subprocess.Popen([sys.executable, "-c", waiting], stdout=subprocess.PIPE, text=True)
    with process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        while process.poll() is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        assert process.returncode == 130
        assert time.monotonic() - began < 10


def test_the_demo_proves_itself(started: Start) -> None:
    process = started("demo", "--seconds", "5", "--rate", "500")
    out, err = process.communicate(timeout=500)
    assert process.returncode == 0, out + err
    assert out.startswith("Headwater demo")
    for table in ("pageviews_per_region", "pageviews_per_region_db"):
        assert f"✓ {table}: 9 regions, " in out
    assert "equal to a recount of the input" in out
    assert err == ""
