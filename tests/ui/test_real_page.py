"""`headwater run --ui` with a real job on a real broker, opened in a real browser."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from browser import Browser
from prometheus_client.parser import text_string_to_metric_families

from headwater.broker import Broker
from headwater.testing.kafka import Kafka, Record
from headwater.testing.spark import QUICK_JVM

pytestmark = pytest.mark.timeout(400)

HEADWATER = [sys.executable, "-c", "from headwater.cli import main; main()"]
SCRIPT = """\
CREATE TABLE orders (id STRING, region STRING, price INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${orders}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'json', 'scan.bad-records' = '${bad}'
);
CREATE TABLE totals (region STRING, n BIGINT, total BIGINT, PRIMARY KEY (region) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${totals}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'json'
);
INSERT INTO totals SELECT region, COUNT(*), SUM(price) FROM orders GROUP BY region;
"""


# where to put a picture of the page, after some minutes of traffic; `make docs-picture` says so
PICTURES = os.environ.get("HEADWATER_PICTURES", "")


def headwater(directory: Path, *arguments: str) -> str:
    done = subprocess.run([*HEADWATER, *arguments], cwd=directory, capture_output=True, text=True, check=False)
    return done.stdout


@pytest.fixture
def kafka(broker: Broker) -> Kafka:
    return Kafka(broker.bootstrap_servers)


@pytest.fixture
def topics(unique_topic: Callable[[str], str]) -> dict[str, str]:
    return {name: unique_topic(name) for name in ("orders", "totals")}


@pytest.fixture
def policy() -> str:
    """What is done with bad messages."""
    return "skip"


@pytest.fixture
def run(kafka: Kafka, topics: dict[str, str], policy: str, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    kafka.create(dict.fromkeys(topics.values(), 2))
    kafka.produce([order(topics["orders"], n) for n in range(2000)])
    (tmp_path / "orders.sql").write_text(SCRIPT, encoding="utf-8")
    values = {"kafka": kafka.bootstrap_servers, "bad": policy, **topics}
    variables = [word for key, value in values.items() for word in ("--var", f"{key}={value}")]
    quick = ("--conf", f"spark.driver.extraJavaOptions={QUICK_JVM}")
    process = subprocess.Popen(
        [*HEADWATER, "run", "--ui", "0", "orders.sql", "--checkpoint", "state", *quick, *variables],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield process
    if process.poll() is None:
        process.kill()
    process.communicate()


def order(topic: str, n: int) -> Record:
    row = {"id": f"o{n}", "region": f"region {n % 7}", "price": n % 90}
    return Record(topic, f"o{n}".encode(), json.dumps(row).encode())


def bad_order(topic: str) -> Record:
    return Record(topic, b"bad", b'{"id": "bad", "price": "<b>twelve</b>"}')


def feed(kafka: Kafka, topic: str) -> None:
    for second in range(200):
        rows = int(600 + 400 * math.sin(second / 20))
        kafka.produce([order(topic, (second * 137 + n * 7) % 50_000) for n in range(rows)])
        time.sleep(1)


def test_a_real_job_is_seen_and_stopped(
    run: subprocess.Popen[str],
    kafka: Kafka,
    topics: dict[str, str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    kafka.produce([bad_order(topics["orders"])])
    status = until_it_has_read(run, tmp_path, 2001)
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        browser.size(1280, 900)
        browser.open(status["page"])
        browser.until("document.body.innerText.includes('2,001 in all')")
        browser.until("document.querySelectorAll('.box.stateful .figures span').length >= 8")
        text = browser.text()
        for words in ("running", "Aggregate", "Normalize", "Bad messages", "<b>twelve</b>", "Begins at", "Spark UI"):
            assert words in text, words
        metrics = urllib.request.urlopen(status["page"].split("?")[0] + "metrics").read().decode()
        value = {
            s.name: s.value for f in text_string_to_metric_families(metrics) for s in f.samples if "le" not in s.labels
        }
        assert value["headwater_job_rows_read_total"] == 2001
        assert value["headwater_job_latency_seconds_count"] == status["batches"]
        if PICTURES:
            feed(kafka, topics["orders"])
            browser.until("document.querySelectorAll('.chart .line').length >= 5")
            browser.screenshot(Path(PICTURES) / "page.png")
        browser.run("document.getElementById('stop').click(), document.getElementById('stop').click()")
        _, err = run.communicate(timeout=100)
        assert run.returncode == 0, err
        assert "Page: http://127.0.0.1:" in err
        assert browser.complaints == []
    finally:
        browser.close()


@pytest.mark.parametrize("policy", ["fail"])
def test_a_real_job_that_fails_says_why_although_its_run_has_ended(
    run: subprocess.Popen[str],
    kafka: Kafka,
    topics: dict[str, str],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    status = until_it_has_read(run, tmp_path, 2000)
    browser = Browser(tmp_path_factory.mktemp("chromium"))
    try:
        browser.size(390, 844)
        browser.open(status["page"])
        browser.until("document.body.innerText.includes('2,000 in all')")
        kafka.produce([bad_order(topics["orders"])])
        browser.until("!document.getElementById('away').hidden", 100)
        error = browser.run("document.getElementById('job-error').textContent")
        assert "A message of table 'orders' could not be decoded as json" in error
        assert "Hint: " in error
        assert browser.run("document.querySelector('.job-card .status').textContent") == "failed"
        assert browser.run("document.getElementById('stop').hidden")
        assert browser.run("document.documentElement.scrollWidth <= window.innerWidth")
        _, err = run.communicate(timeout=100)
        assert (run.returncode, error.splitlines()[0] in err) == (1, True), err
    finally:
        browser.close()


def until_it_has_read(run: subprocess.Popen[str], directory: Path, rows: int) -> dict[str, Any]:
    deadline = time.monotonic() + 200
    while time.monotonic() < deadline:
        assert run.poll() is None, run.communicate()[1]
        answer = headwater(directory, "status", "totals", "--checkpoint", "state", "--json")
        status: dict[str, Any] = json.loads(answer) if answer else {}
        if status.get("rows_in") == rows and "page" in status:
            return status
        time.sleep(0.5)
    raise AssertionError("it never read everything")
