"""What a soak sends, at a steady rate, and what the results must be in the end.

events     a log of payments; `totals` adds them up, `copies` copies them
accounts   changes of accounts by key: one in ten moves to another region, one in a hundred is deleted; `regions`
           aggregates them

Keys come from fixed ranges, so that the state of all jobs stops growing soon. A broker that is away for a while delays
rows, and loses and doubles none: the producer is idempotent.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict

from confluent_kafka import KafkaError, Message, Producer
from generate import PARTITIONS, Table

__all__ = ["RATE", "SCRIPT", "SOURCES", "TABLES", "TOPICS", "Load"]

TOPICS = ("events", "accounts", "totals", "regions", "copies")
TABLES = {"totals": "json table", "regions": "json table", "copies": "log"}
"""The tables that jobs write, each into the topic of its name, and how the topic is read back."""

SOURCES = {"totals": "events", "regions": "accounts", "copies": "events"}
"""Which topic each of them is computed from."""

RATE = 1_000
TICK_SECONDS = 0.01
KEYS = 1_000
ACCOUNTS = 20_000
REGIONS = 200
BALANCES = 500

_KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json'"
_UPSERT_KAFKA = (
    "'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '${kafka}', "
    "'key.format' = 'json', 'value.format' = 'json'"
)

SCRIPT = f"""\
CREATE TABLE events (id BIGINT, account STRING, amount BIGINT)
WITH ('topic' = 'events', {_KAFKA}, 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE accounts (id BIGINT, region STRING, balance BIGINT, PRIMARY KEY (id) NOT ENFORCED)
WITH ('topic' = 'accounts', {_UPSERT_KAFKA});
CREATE TABLE totals (account STRING, n BIGINT, amount BIGINT, PRIMARY KEY (account) NOT ENFORCED)
WITH ('topic' = 'totals', {_UPSERT_KAFKA});
CREATE TABLE regions (region STRING, n BIGINT, balance BIGINT, balances BIGINT, PRIMARY KEY (region) NOT ENFORCED)
WITH ('topic' = 'regions', {_UPSERT_KAFKA});
CREATE TABLE copies (id BIGINT, account STRING, amount BIGINT)
WITH ('topic' = 'copies', {_KAFKA}, 'sink.delivery-guarantee' = 'exactly-once');

INSERT INTO totals SELECT account, COUNT(*), SUM(amount) FROM events GROUP BY account;
INSERT INTO regions SELECT region, COUNT(*), SUM(balance), COUNT(DISTINCT balance) FROM accounts GROUP BY region;
INSERT INTO copies SELECT id, UPPER(account), amount * 2 FROM events;
"""


class Load(threading.Thread):
    """RATE rows a second into each of the two topics, until `finish`."""

    def __init__(self, servers: str) -> None:
        super().__init__(daemon=True)
        self.sent = {"events": 0, "accounts": 0}
        settings = {"enable.idempotence": True, "linger.ms": 5, "message.timeout.ms": 300_000, "log_level": 0}
        settings["max.in.flight.requests.per.connection"] = 1  # see `producer_settings`
        self._producer = Producer({"bootstrap.servers": servers, **settings})
        self._failures: list[str] = []
        self._enough = threading.Event()
        self._random = random.Random(3)
        self._totals: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        self._alive: dict[int, tuple[str, int]] = {}
        self._copied = 0

    def run(self) -> None:
        begin = time.monotonic()
        while not self._enough.is_set():
            due = int((time.monotonic() - begin) * RATE)
            while self.sent["events"] < due:
                self._event()
                self._change()
            self._producer.poll(0)
            self._enough.wait(TICK_SECONDS)

    def finish(self) -> None:
        """Returns when the broker has everything."""
        self._enough.set()
        self.join()
        if self._producer.flush(300) or self._failures:
            raise RuntimeError(f"The broker did not take all rows. {' '.join(self._failures[:1])}")

    def expected(self) -> dict[str, Table]:
        """The tables, recounted from what was sent."""
        regions: dict[str, list[int]] = defaultdict(list)
        for region, balance in self._alive.values():
            regions[region].append(balance)
        return {
            "totals": {account: (n, amount) for account, (n, amount) in self._totals.items()},
            "regions": {region: (len(b), sum(b), len(set(b))) for region, b in regions.items()},
            "copies": {"all messages": (self.sent["events"], self._copied % 2**64)},
        }

    def _event(self) -> None:
        number = self.sent["events"]
        account, amount = f"a{self._random.randrange(KEYS)}", self._random.randrange(1, 10_000)
        total = self._totals[account]
        total[0] += 1
        total[1] += amount
        self._copied += hash(b'{"id":%d,"account":"%s","amount":%d}' % (number, account.upper().encode(), amount * 2))
        text = f'{{"id":{number},"account":"{account}","amount":{amount}}}'
        self._send("events", None, text.encode(), number % PARTITIONS)

    def _change(self) -> None:
        id_ = self._random.randrange(ACCOUNTS)
        region = self._random.randrange(REGIONS) if self._random.random() < 0.1 else id_ % REGIONS
        value = None
        if self._random.random() < 0.01:
            self._alive.pop(id_, None)
        else:
            balance = self._random.randrange(BALANCES)
            self._alive[id_] = (f"r{region}", balance)
            value = b'{"id":%d,"region":"r%d","balance":%d}' % (id_, region, balance)
        self._send("accounts", b'{"id":%d}' % id_, value, id_ % PARTITIONS)

    def _send(self, topic: str, key: bytes | None, value: bytes | None, partition: int) -> None:
        while True:
            try:
                self._producer.produce(topic, value, key, partition=partition, on_delivery=self._delivered)
                break
            except BufferError:
                self._producer.poll(0.1)
        self.sent[topic] += 1

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        if error is not None:
            self._failures.append(str(error))
