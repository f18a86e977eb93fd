"""How long a row takes to show in the results, at 1,000 rows a second.

The job counts rows by key. A result that says n for a key shows that the first n rows of that key have come through;
rows of one key are sent in order, so the delay of each follows from when it was sent. Sender and reader share a clock.
"""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from generate import GROUPS, PARTITIONS
from outputs import create_topic
from side import Side
from workloads import WORKLOADS, Place

__all__ = ["Latency", "measure_latency"]

RATE = 1_000
TICK = 0.01
WARM_UP = 15.0
PATIENCE = 60.0


@dataclass(frozen=True)
class Latency:
    """Seconds from sending a row to reading the result that includes it."""

    p50: float
    p99: float
    rows: int


@dataclass
class _Rows:
    """When each row was sent, by key and in order; and the delay of those that have come through."""

    sent: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    delays: list[tuple[float, float]] = field(default_factory=list)

    def arrived(self, key: str, count: int, now: float) -> None:
        self.delays += [(sent, now - sent) for sent in self.sent[key][self.seen[key] : count]]
        self.seen[key] = max(self.seen[key], count)

    @property
    def waiting(self) -> int:
        return sum(map(len, list(self.sent.values()))) - len(self.delays)


def measure_latency(side: Side, place: Place, seconds: float, settings: Mapping[str, str]) -> Latency:
    """Run the job on two new topics; rows of the first seconds warm it up and are not counted."""
    create_topic(place.servers, place.source)
    create_topic(place.servers, place.sink)
    rows, ended = _Rows(), threading.Event()
    reader = threading.Thread(target=_read, args=(place, rows, ended))
    side.start(WORKLOADS["totals"].statements(place, bounded=False), settings)
    reader.start()
    try:
        begin = time.time() + WARM_UP
        _send(place, rows, WARM_UP + seconds)
        _await_all(rows)
    finally:
        ended.set()
        reader.join()
        side.stop()
    delays = [delay for sent, delay in rows.delays if sent >= begin]
    p50, p99 = np.percentile(delays, [50, 99])
    return Latency(float(p50), float(p99), len(delays))


def _send(place: Place, rows: _Rows, seconds: float) -> None:
    """Ten rows every ten milliseconds; a tick that comes late is made up for at once."""
    producer = Producer({"bootstrap.servers": place.servers, "linger.ms": 0})
    random = np.random.default_rng(4)
    text = b'{"payment_id":%d,"account":"a%d","amount":%d,"paid_at":"2024-01-01 00:00:00"}'
    begin = time.time()
    for number, account in enumerate(random.integers(0, GROUPS, int(seconds * RATE)).tolist()):
        due = begin + number // (RATE * TICK) * TICK
        if (pause := due - time.time()) > 0:
            producer.poll(0)
            time.sleep(pause)
        rows.sent[f"a{account}"].append(time.time())
        producer.produce(place.source, text % (number, account, number % 100), partition=account % PARTITIONS)
    if producer.flush(30):
        raise RuntimeError("The broker did not take all rows.")


def _read(place: Place, rows: _Rows, ended: threading.Event) -> None:
    consumer = Consumer({"bootstrap.servers": place.servers, "group.id": "latency", "fetch.wait.max.ms": 10})
    consumer.assign([TopicPartition(place.sink, p, 0) for p in range(PARTITIONS)])
    while not ended.is_set():
        messages = consumer.consume(1_000, timeout=0.005)
        now = time.time()
        for message in messages:
            if message.error() is None:
                value = json.loads(message.value() or b"{}")
                rows.arrived(value["account"], value["payments"], now)
    consumer.close()


def _await_all(rows: _Rows) -> None:
    deadline = time.time() + PATIENCE
    while rows.waiting:
        if time.time() > deadline:
            raise RuntimeError(f"{rows.waiting} rows never showed in the results.")
        time.sleep(0.1)
