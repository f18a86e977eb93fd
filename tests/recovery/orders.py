"""Orders that are placed, changed and deleted, in an upsert topic; and what a recount of them gives."""

from __future__ import annotations

import json
import random

from headwater.testing.kafka import Kafka, Record

ORDERS_TABLE = """
CREATE TABLE orders (id BIGINT, region STRING, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${orders}', 'properties.bootstrap.servers' = '${kafka}',
      'key.format' = 'raw', 'value.format' = 'json');
"""
TOTALS_JOB = """
CREATE TABLE totals (region STRING, n BIGINT, total BIGINT, amounts BIGINT, PRIMARY KEY (region) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${totals}', 'properties.bootstrap.servers' = '${kafka}',
      'key.format' = 'raw', 'value.format' = 'json');
INSERT INTO totals
SELECT region, COUNT(*), SUM(amount), COUNT(DISTINCT amount) FROM orders GROUP BY region;
"""
CHANGED = 500
"""Orders that are changed all the time; those that are only placed have greater numbers."""
Totals = dict[str, tuple[int, int, int]]


class Orders:
    def __init__(self, kafka: Kafka, topic: str) -> None:
        self._kafka = kafka
        self._topic = topic
        self._dice = random.Random(5)
        self._alive: dict[int, tuple[str, int]] = {}
        self._last = CHANGED
        self.sent = 0

    def place(self, count: int) -> None:
        """New orders that nobody changes: without the state of these, whatever comes later is counted wrong."""
        self._kafka.produce([self._placed(self._last + 1) for _ in range(count)])
        self.sent += count

    def change(self, count: int) -> None:
        self._kafka.produce([self._change() for _ in range(count)])
        self.sent += count

    def _change(self) -> Record:
        key, value = self._dice.randrange(CHANGED), None
        self._alive.pop(key, None)
        if self._dice.random() > 0.15:
            value = self._value(key)
        return Record(self._topic, key.to_bytes(8, "big"), value)

    def _placed(self, key: int) -> Record:
        self._last = key
        return Record(self._topic, key.to_bytes(8, "big"), self._value(key))

    def _value(self, key: int) -> bytes:
        region, amount = self._alive[key] = (f"r{self._dice.randrange(20)}", self._dice.randrange(50))
        return json.dumps({"id": key, "region": region, "amount": amount}).encode()

    def recount(self) -> Totals:
        regions: dict[str, list[int]] = {}
        for region, amount in self._alive.values():
            regions.setdefault(region, []).append(amount)
        return {region: (len(a), sum(a), len(set(a))) for region, a in regions.items()}


def totals_in(kafka: Kafka, topic: str, partitions: int) -> Totals:
    """The last row of every region that was not deleted."""
    rows: Totals = {}
    ends = {partition: end for (_, partition), end in kafka.ends({topic: partitions}).items()}
    for record in kafka.read(topic, {}, ends):
        assert record.key is not None
        rows.pop(record.key.decode(), None)
        if record.value is not None:
            value = json.loads(record.value)
            rows[record.key.decode()] = (value["n"], value["total"], value["amounts"])
    return rows
