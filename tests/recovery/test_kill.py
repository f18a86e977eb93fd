"""kill -9 in the middle of batches, again and again, under load: the result is what a recount of the input gives.
`test_exactly_once` kills a job with state in every test run; this one is long.

HEADWATER_KILLS=20 sets the number of kills.
"""

from __future__ import annotations

import json
import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_view import CheckpointView
from processes import await_progress, kill_all, kill_driver, kill_workers, running

from headwater.broker import Broker
from headwater.testing.kafka import Kafka, Record

KILLS = int(os.environ.get("HEADWATER_KILLS", "8"))
VICTIMS = (kill_workers, kill_driver, kill_workers, kill_all)

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


@pytest.mark.long
@pytest.mark.timeout(300 + 60 * KILLS)
def test_nothing_is_lost_or_wrong_after_kills(
    broker: Broker, unique_topic: Callable[[str], str], tmp_path: Path
) -> None:
    dice = random.Random(11)
    topics = {"orders": unique_topic("orders"), "totals": unique_topic("totals")}
    kafka = Kafka(broker.bootstrap_servers)
    kafka.create({topics["orders"]: 3, topics["totals"]: 2})
    script = tmp_path / "orders.sql"
    script.write_text(SCRIPT)
    checkpoint = CheckpointView(tmp_path / "state" / "totals")
    variables = {**topics, "kafka": broker.bootstrap_servers}
    load = _Load(kafka, topics["orders"])
    load.start()
    number = 0
    while number < KILLS:
        with running(script, tmp_path / "state", variables, tmp_path / "log") as job:
            while number < KILLS and job.poll() is None:
                wanted = checkpoint.batch + 1 + dice.randrange(3)
                await_progress(job, checkpoint, lambda wanted=wanted: checkpoint.batch >= wanted)
                time.sleep(dice.random() * 0.7)
                VICTIMS[number % len(VICTIMS)](job)
                number += 1
    load.finish()
    with running(script, tmp_path / "state", variables, tmp_path / "log") as job:
        await_progress(job, checkpoint, lambda: checkpoint.rows_read >= load.sent)
        job.terminate()  # not its whole group: Spark's JVM must live until the current batch is done
        assert job.wait(60) == 0
    assert _table(kafka, topics["totals"]) == load.recount()
    kafka.close()


class _Load(threading.Thread):
    """Changes to orders for as long as kills go on."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        super().__init__(daemon=True)
        self._kafka = kafka
        self._topic = topic
        self._alive: dict[int, tuple[str, int]] = {}
        self._enough = threading.Event()
        self.sent = 0

    def run(self) -> None:
        dice = random.Random(5)
        while not self._enough.wait(0.2):
            self._kafka.produce([self._change(dice) for _ in range(10)])
            self.sent += 10

    def finish(self) -> None:
        self._enough.set()
        self.join()

    def _change(self, dice: random.Random) -> Record:
        key, value = dice.randrange(500), None
        self._alive.pop(key, None)
        if dice.random() > 0.15:
            region, amount = self._alive[key] = (f"r{dice.randrange(20)}", dice.randrange(50))
            value = json.dumps({"id": key, "region": region, "amount": amount}).encode()
        return Record(self._topic, key.to_bytes(8, "big"), value)

    def recount(self) -> dict[str, tuple[int, int, int]]:
        regions: dict[str, list[int]] = {}
        for region, amount in self._alive.values():
            regions.setdefault(region, []).append(amount)
        return {region: (len(a), sum(a), len(set(a))) for region, a in regions.items()}


def _table(kafka: Kafka, topic: str) -> dict[str, tuple[int, int, int]]:
    rows: dict[str, tuple[int, int, int]] = {}
    ends = {partition: end for (_, partition), end in kafka.ends({topic: 2}).items()}
    for record in kafka.read(topic, {}, ends):
        assert record.key is not None
        rows.pop(record.key.decode(), None)
        if record.value is not None:
            value = json.loads(record.value)
            rows[record.key.decode()] = (value["n"], value["total"], value["amounts"])
    return rows
