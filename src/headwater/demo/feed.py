"""Feeding the input topic at an even rate, from a thread of its own."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from datetime import datetime, timezone

from headwater.demo.traffic import Traffic
from headwater.errors import KafkaUnavailableError

__all__ = ["Feed", "create_topics"]

_TICK = 0.05


def create_topics(servers: str, partitions: int, plain: Sequence[str], compacted: Sequence[str]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    topics = [NewTopic(name, partitions, 1) for name in plain]
    topics += [NewTopic(name, partitions, 1, config={"cleanup.policy": "compact"}) for name in compacted]
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 0})  # lives until all results are there
    for made in admin.create_topics(topics).values():
        made.result(30)


class Feed:
    """`rate` views a second until `stop`, which returns when the broker has all of them."""

    def __init__(self, servers: str, topic: str, rate: int) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 20, "acks": "all", "log_level": 0})
        self._topic = topic
        self._rate = rate
        self._traffic = Traffic(seed=1)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headwater-demo-feed", daemon=True)
        self.sent = 0

    def start(self) -> Feed:
        self._thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        left = self._producer.flush(30)
        if left:
            raise KafkaUnavailableError(f"The broker did not take {left} messages of the demo.")

    def _run(self) -> None:
        began = time.monotonic()
        while not self._stop.wait(_TICK):
            due = int((time.monotonic() - began) * self._rate)
            now = datetime.now(timezone.utc)
            while self.sent < due:
                view = self._traffic.view(now)
                self._producer.produce(self._topic, json.dumps(view).encode())
                self.sent += 1
            self._producer.poll(0)
