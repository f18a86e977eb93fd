"""kill -9 in the middle of batches, again and again, under load: the result is what a recount of the input gives."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from headwater.broker import Broker
from headwater.runtime.checkpoint import Checkpoint

KILLS = 4
CHANGES = 12_000

SCRIPT = """
SET 'headwater.batch.max-rows' = '400';
CREATE TABLE orders (id BIGINT, region STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${orders}', 'properties.bootstrap.servers' = '${kafka}',
      'key.format' = 'raw', 'value.format' = 'json');
CREATE TABLE totals (region STRING, n BIGINT, total BIGINT, amounts BIGINT, PRIMARY KEY (region) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${totals}', 'properties.bootstrap.servers' = '${kafka}',
      'key.format' = 'raw', 'value.format' = 'json');
INSERT INTO totals
SELECT region, COUNT(*), SUM(amount), COUNT(DISTINCT amount) FROM orders GROUP BY region;
"""


@pytest.mark.timeout(600)
def test_nothing_is_lost_or_wrong_after_kills(
    broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path
) -> None:
    dice = random.Random(11)
    orders, totals = unique_topic("orders"), unique_topic("totals")
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for future in admin.create_topics([NewTopic(orders, 3, 1), NewTopic(totals, 2, 1)]).values():
        future.result()
    script = tmp_path / "orders.sql"
    script.write_text(SCRIPT)
    variables = {"orders": orders, "totals": totals, "kafka": broker.bootstrap_servers}
    checkpoint = Checkpoint(str(tmp_path / "state" / "1-totals"))
    load = _Load(broker.bootstrap_servers, orders)
    load.start()
    for _ in range(KILLS):
        job = _start(script, tmp_path / "state", variables)
        _await_commits(job, checkpoint, checkpoint.last_commit() + 1 + dice.randrange(3))
        time.sleep(dice.random() * 0.7)
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
    load.join()
    job = _start(script, tmp_path / "state", variables)
    _await_position(job, checkpoint, CHANGES)
    os.killpg(job.pid, signal.SIGTERM)
    assert job.wait(60) == 0
    assert _table(broker.bootstrap_servers, totals) == load.recount()


class _Load(threading.Thread):
    """Changes to orders for about half a minute: the job never catches up for long while it is being killed."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self._producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random"})
        self._topic = topic
        self._alive: dict[int, tuple[str, int]] = {}

    def run(self) -> None:
        dice = random.Random(5)
        for number in range(CHANGES):
            key = dice.randrange(500)
            if dice.random() < 0.15:
                self._alive.pop(key, None)
                value = None
            else:
                self._alive[key] = (f"r{dice.randrange(20)}", dice.randrange(50))
                region, amount = self._alive[key]
                value = json.dumps({"id": key, "region": region, "amount": amount}).encode()
            self._producer.produce(self._topic, key=key.to_bytes(8, "big"), value=value)
            if number % 40 == 0:
                self._producer.flush(30)
                time.sleep(0.1)
        assert self._producer.flush(30) == 0

    def recount(self) -> dict[str, tuple[int, int, int]]:
        regions: dict[str, list[int]] = {}
        for region, amount in self._alive.values():
            regions.setdefault(region, []).append(amount)
        return {region: (len(a), sum(a), len(set(a))) for region, a in regions.items()}


def _start(script: Path, state: Path, variables: dict[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", "from headwater.cli import main; main()", "run", str(script)]
    command += ["--checkpoint", str(state), "--master", "local[2]"]
    for name, value in variables.items():
        command += ["--var", f"{name}={value}"]
    return subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _await_commits(job: subprocess.Popen[bytes], checkpoint: Checkpoint, wanted: int) -> None:
    _await(job, lambda: checkpoint.last_commit() >= wanted)


def _await_position(job: subprocess.Popen[bytes], checkpoint: Checkpoint, wanted: int) -> None:
    def reached() -> bool:
        intent = checkpoint.intent(checkpoint.last_commit())
        return intent is not None and sum(intent.end[0].values()) >= wanted

    _await(job, reached)


def _await(job: subprocess.Popen[bytes], condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 180
    while not condition():
        assert job.poll() is None, f"the job ended with code {job.returncode}"
        assert time.monotonic() < deadline, "the job makes no progress"
        time.sleep(0.05)


def _table(servers: str, topic: str) -> dict[str, tuple[int, int, int]]:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
    )
    consumer.subscribe([topic])
    rows: dict[str, Any] = {}
    ended = 0
    while ended < 2:
        message = consumer.poll(30)
        assert message is not None, "the topic cannot be read"
        if message.error() is not None:
            ended += 1
            continue
        key = message.key().decode()
        if message.value() is None:
            rows.pop(key, None)
        else:
            value = json.loads(message.value())
            rows[key] = (value["n"], value["total"], value["amounts"])
    consumer.close()
    return rows
