"""kill -9 in the middle of batches, again and again, under load: the result is what a recount of the input gives.
`test_exactly_once` kills a job with state in every test run; this one is long.

HEADWATER_KILLS=20 sets the number of kills.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkpoint_view import CheckpointView
from orders import ORDERS_TABLE, TOTALS_JOB, Orders, totals_in
from processes import await_progress, kill_all, kill_driver, kill_workers, running

from headwater.broker import Broker
from headwater.testing.kafka import Kafka

KILLS = int(os.environ.get("HEADWATER_KILLS", "8"))
VICTIMS = (kill_workers, kill_driver, kill_workers, kill_all)

SCRIPT = f"SET 'headwater.batch.max-rows' = '400';{ORDERS_TABLE}{TOTALS_JOB}"


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
    orders = Orders(kafka, topics["orders"])
    orders.place(250)
    load = _Load(orders)
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
        await_progress(job, checkpoint, lambda: checkpoint.rows_read >= orders.sent)
        job.terminate()  # not its whole group: Spark's JVM must live until the current batch is done
        assert job.wait(60) == 0
    assert totals_in(kafka, topics["totals"], 2) == orders.recount()
    kafka.close()


class _Load(threading.Thread):
    """Changes to orders for as long as kills go on."""

    def __init__(self, orders: Orders) -> None:
        super().__init__(daemon=True)
        self._orders = orders
        self._enough = threading.Event()

    def run(self) -> None:
        while not self._enough.wait(0.2):
            self._orders.change(10)

    def finish(self) -> None:
        self._enough.set()
        self.join()
