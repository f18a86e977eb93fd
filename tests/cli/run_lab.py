"""What commands say; topics and a script for tests that start `headwater run` in a process of its own."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.broker import Broker
from headwater.demo.results import read_all
from headwater.testing.spark import QUICK_ARGUMENTS

Start = Callable[..., subprocess.Popen[str]]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Invoke = Callable[..., Said]

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
        variables = [word for key, value in values.items() for word in ("--var", f"{key}={value}")]
        return ["run", "totals.sql", *QUICK_ARGUMENTS, *variables]


def until(happened: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 200) -> None:
    deadline = time.monotonic() + seconds
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline
        time.sleep(0.1)
