"""How long a row takes to show in the results, at 1,000 rows a second.

A result of each job tells how many rows of its group have come through; rows of one group are sent in order, so the
delay of each follows from when it was sent. Sender and reader share a clock.

    log      COUNT(*) by account, as in the workload `totals`: a result of n shows the first n payments of the account
    upsert   SUM(balance) by region, as in `regions`, where every change adds 1 to the balance of an account that stays
             in its region: a result of n shows the first n changes in the region, though each retracts the one before
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from engines import Batch, EngineProcess
from generate import GROUPS, PARTITIONS
from outputs import create_topic
from workloads import WORKLOADS, Place

__all__ = ["LATENCIES", "Latency", "LatencyJob", "measure_latency"]

RATE = 1_000
TICK_SECONDS = 0.01
WARM_UP_SECONDS = 60.0
"""The JVMs of both engines go on compiling what they run for about as long."""
LAST_ROWS_SECONDS = 60.0
ACCOUNTS = 20 * GROUPS


@dataclass(frozen=True)
class Sent:
    """A message, and the group in whose result it shows."""

    group: str
    key: bytes | None
    value: bytes
    partition: int


@dataclass(frozen=True)
class LatencyJob:
    """`p50` and `p99` are goals, in seconds. `group` and `count` name the columns of a result."""

    name: str
    title: str
    workload: str
    p50: float
    p99: float
    messages: Callable[[], Iterator[Sent]]
    group: str
    count: str


@dataclass(frozen=True)
class Latency:
    """Seconds from sending a row to reading the result that includes it, and the engine's micro-batches meanwhile."""

    p50: float
    p99: float
    rows: int
    batches: tuple[Batch, ...] = ()


@dataclass
class _Rows:
    """When each row was sent, by group and in order; and the delay of those that have come through."""

    sent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    delays: list[tuple[float, float]] = field(default_factory=list)

    def arrived(self, group: str, count: int, now: float) -> None:
        """A lower count than before is a retraction on the way to a higher one."""
        self.delays += [(sent, now - sent) for sent in self.sent[group][self.seen[group] : count]]
        self.seen[group] = max(self.seen[group], count)

    @property
    def waiting(self) -> int:
        return sum(map(len, list(self.sent.values()))) - len(self.delays)


def measure_latency(
    job: LatencyJob, engine: EngineProcess, place: Place, seconds: float, settings: Mapping[str, str]
) -> Latency:
    """Run the job on two new topics; rows and batches of the first seconds warm it up and are not counted."""
    create_topic(place.servers, place.source)
    create_topic(place.servers, place.sink)
    rows, ended = _Rows(), threading.Event()
    reader = threading.Thread(target=_read, args=(job, place, rows, ended))
    engine.start(WORKLOADS[job.workload].statements(place, bounded=False), settings)
    reader.start()
    batches: list[Batch] = []
    try:
        begin = time.time() + WARM_UP_SECONDS
        _send(job, place, rows, WARM_UP_SECONDS + seconds)
        _await_all(rows)
    finally:
        ended.set()
        reader.join()
        batches = engine.stop()
    delays = [delay for sent, delay in rows.delays if sent >= begin]
    p50, p99 = np.percentile(delays, [50, 99])
    return Latency(float(p50), float(p99), len(delays), tuple(batch for batch in batches if batch.ended >= begin))


def _send(job: LatencyJob, place: Place, rows: _Rows, seconds: float) -> None:
    """Ten rows every ten milliseconds; a tick that comes late is made up for at once."""
    producer = Producer({"bootstrap.servers": place.servers, "linger.ms": 0})
    begin = time.time()
    for number, message in zip(range(int(seconds * RATE)), job.messages(), strict=False):
        due = begin + number // (RATE * TICK_SECONDS) * TICK_SECONDS
        if (pause := due - time.time()) > 0:
            producer.poll(0)
            time.sleep(pause)
        rows.sent[message.group].append(time.time())
        producer.produce(place.source, message.value, message.key, partition=message.partition)
    if producer.flush(30):
        raise RuntimeError("The broker did not take all rows.")


def _read(job: LatencyJob, place: Place, rows: _Rows, ended: threading.Event) -> None:
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "latency", "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(place.sink, p, 0) for p in range(PARTITIONS)])
    while not ended.is_set():
        messages = consumer.consume(1_000, timeout=0.005)
        now = time.time()
        for message in messages:
            content = message.value()
            if message.error() is None and content is not None:
                result = json.loads(content)
                rows.arrived(result[job.group], result[job.count], now)
    consumer.close()


def _await_all(rows: _Rows) -> None:
    deadline = time.time() + LAST_ROWS_SECONDS
    while rows.waiting:
        if time.time() > deadline:
            raise RuntimeError(f"{rows.waiting} rows never showed in the results.")
        time.sleep(0.1)


def _payments() -> Iterator[Sent]:
    random, number = np.random.default_rng(4), 0
    text = b'{"payment_id":%d,"account":"a%d","amount":%d,"paid_at":"2024-01-01 00:00:00"}'
    while True:
        for account in random.integers(0, GROUPS, RATE).tolist():
            yield Sent(f"a{account}", None, text % (number, account, number % 100), account % PARTITIONS)
            number += 1


def _balances() -> Iterator[Sent]:
    """Accounts of one region are in one partition: GROUPS is a multiple of PARTITIONS."""
    random, balances = np.random.default_rng(5), [0] * ACCOUNTS
    text = b'{"id":%d,"region":"r%d","balance":%d,"changed_at":"2024-01-01 00:00:00"}'
    while True:
        for id_ in random.integers(0, ACCOUNTS, RATE).tolist():
            balances[id_] += 1
            region = id_ % GROUPS
            yield Sent(f"r{region}", b'{"id":%d}' % id_, text % (id_, region, balances[id_]), id_ % PARTITIONS)


LATENCIES = {
    job.name: job
    for job in (
        LatencyJob("log", "one aggregation", "totals", 0.3, 0.6, _payments, "account", "payments"),
        LatencyJob("upsert", "upsert → aggregation", "regions", 0.4, 0.8, _balances, "region", "balance"),
    )
}
