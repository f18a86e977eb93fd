"""Jobs that do not run: what the page shows of them is said by the test."""

from __future__ import annotations

import math
import tempfile
import time
from typing import Any, cast

from headwater.connectors.runtime import LeftOut
from headwater.control.monitor import Monitor
from headwater.errors import BadRecordError
from headwater.execution.job import Job, JobSettings
from headwater.execution.operator_metrics import OperatorProgress
from headwater.session.definitions import Definitions
from headwater.sql.parser import parse_script

__all__ = ["SHOP", "Clock", "jobs_of", "shop"]

_SERVERS = "'properties.bootstrap.servers' = '127.0.0.1:9'"
_LOG = f"'connector' = 'kafka', 'topic' = 't', {_SERVERS}, 'format' = 'json'"
_TABLE = f"'connector' = 'upsert-kafka', 'topic' = 't', {_SERVERS}, 'key.format' = 'json', 'value.format' = 'json'"
SHOP = f"""
CREATE TABLE orders (id STRING, who STRING, region STRING, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)
  WITH ({_TABLE});
CREATE TABLE clicks (who STRING, page STRING) WITH ({_LOG});
CREATE TABLE totals (region STRING, n BIGINT, total DECIMAL(20, 2), PRIMARY KEY (region) NOT ENFORCED) WITH ({_TABLE});
CREATE TABLE visits (who STRING, n BIGINT) WITH ({_LOG});
CREATE TABLE everything (k STRING, n BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH ({_TABLE});
INSERT INTO totals SELECT region, COUNT(*), SUM(price) FROM orders WHERE price > 0 GROUP BY region;
INSERT INTO visits SELECT who, CHAR_LENGTH(page) FROM clicks WHERE page LIKE '/shop/%';
INSERT INTO everything SELECT k, COUNT(*) FROM (
  SELECT who AS k FROM orders WHERE price > 1 UNION ALL SELECT region AS k FROM orders WHERE price > 2
  UNION ALL SELECT who AS k FROM clicks WHERE page = '/a' UNION ALL SELECT page AS k FROM clicks WHERE who <> 'x'
  UNION ALL SELECT w AS k FROM (SELECT who AS w, COUNT(*) AS n FROM clicks GROUP BY who) WHERE n > 3
  UNION ALL SELECT w AS k FROM (SELECT page AS w, COUNT(DISTINCT who) AS n FROM clicks GROUP BY page) WHERE n > 5
) GROUP BY k;
"""


class Clock:
    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def jobs_of(script: str) -> list[Job]:
    definitions = Definitions()
    planned = [job for statement in parse_script(script, "shop.sql") for job in definitions.apply(statement)]
    return [Job(job.name, job.plan, cast(Any, None), tempfile.gettempdir(), JobSettings()) for job in planned]


def shop(title: str = "shop.sql") -> tuple[Monitor, list[Job]]:
    """An hour of three jobs: a busy one, an idle one, and one whose plan is large and which has failed."""
    clock = Clock(time.time() - 3660)
    monitor = Monitor(title, clock)
    monitor.spark_ui = "http://127.0.0.1:4040"
    jobs = jobs_of(SHOP)
    for line, job in enumerate(jobs, 8):
        monitor.add(job, f"shop.sql:{line}")
        job.on_batch = monitor.saw
    busy, idle, failing = jobs
    busy.report(status="running", begins="Continues after batch 1,204 at orders:0 offset 918,221.", batch=1204)
    idle.report(status="running", begins="Begins at clicks:0 offset 0.")
    failing.report(status="running", begins="Begins at orders:0 offset 0.")
    _hour(clock, busy, failing)
    clock.now = time.time()
    return monitor, jobs


def _hour(clock: Clock, busy: Job, failing: Job) -> None:
    began = clock.now
    for batch in range(1, 1200):
        clock.now += 3
        passed, before = clock.now - began, busy.reported
        rows = int(3 * (2000 + 900 * math.sin(passed / 240) + 150 * math.sin(passed / 7)))
        lag = int(abs(400 * math.sin(passed / 100)) + 30_000 * math.exp(-(((passed - 1700) / 120) ** 2)))
        busy.report(
            batches=batch,
            batch=1204 + batch,
            rows_in=before.rows_in + rows,
            rows_out=(before.rows_out or 0) + rows // 40,
            lag=lag,
            batch_seconds=0.35 + rows / 30_000,
            latency_seconds=0.7 + lag / 20_000,
            state_rows=1200 + batch,
            state_bytes=180_000 + batch * 300,
            bad_records=before.bad_records + (batch % 600 == 0),
            positions=({"orders:0": 918_221 + batch * 1000},),
            operators={
                "normalize-1": OperatorProgress(before.rows_in, before.rows_in * 2, 0.21, 1100 + batch, 150_000),
                "aggregate-1": OperatorProgress(before.rows_in * 2, before.rows_out or 0, 0.12, 48, 9_000),
            },
        )
        if batch % 600 == 0:
            problem = 'json (value): Field "price": a number was expected.'
            payload = '{"id": "o-77121", "who": "ann", "region": "north", "price": "twelve"}'
            busy.leave_out(LeftOut("bad", "orders:1 offset 917,342", problem, payload))
        if batch == 500:
            busy.report(status="retrying", note="No Kafka broker answers at '127.0.0.1:9092'. Trying again in 4 s.")
            busy.report(status="running", note="")
        if batch == 900:
            failing.error = BadRecordError(
                "A message of table 'clicks' could not be decoded as json: topic 'clicks', partition 1, offset 88123.",
                detail='Message: {"who": {"first": "<b>ann</b>"}, "page": "/shop/cart"}',
                hint="Correct the producer or the table's columns, or set 'scan.bad-records'.",
            )
            failing.report(status="failed")
