"""The input topics: generated from a seed, two partitions side by side, and the exact result of each workload.

A topic is made of columns of numbers. The messages are those columns as JSON; the expected result is computed from the
columns directly and shares nothing with the engines that are measured.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from confluent_kafka import Producer

__all__ = [
    "GENERATORS",
    "GROUPS",
    "PARTITIONS",
    "Columns",
    "Message",
    "Messages",
    "Table",
    "expected",
    "fill",
    "log_table",
    "rows_of",
]

PARTITIONS = 2
GROUPS = 1_000
UPDATES = 20
CHUNK = 20_000
QUEUED = 200_000

Columns = dict[str, npt.NDArray[np.int64]]
Message = tuple[bytes | None, bytes | None]
Table = dict[str, tuple[int, ...]]
"""Key → numbers. A log is a table of one row, see `log_table`."""


@dataclass(frozen=True)
class Messages:
    """`columns(rows, partition)` is one partition's share of a topic of that many rows."""

    columns: Callable[[int, int], Columns]
    messages: Callable[[Columns], Iterable[Message]]

    def all_columns(self, rows: int) -> Columns:
        """Of all partitions, one after the other."""
        parts = [self.columns(rows, p) for p in range(PARTITIONS)]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@dataclass(frozen=True)
class Generator(Messages):
    """With the result of its workload, recounted from the columns."""

    table: Callable[[Columns], Table]


def fill(servers: str, topic: str, messages: Messages, rows: int) -> None:
    """Write generated messages into a topic that exists and is empty: one process per partition."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PARTITIONS, mp_context=spawn) as pool:
        jobs = [pool.submit(_fill_partition, servers, topic, messages, rows, p) for p in range(PARTITIONS)]
        for job in jobs:
            job.result()


def expected(workload: str, rows: int) -> Table:
    """The final table, recounted from the columns."""
    generator = GENERATORS[workload]
    return generator.table(generator.all_columns(rows))


def log_table(values: Iterable[bytes | None]) -> Table:
    """How many messages a log has, and a number that comes from all of them, in whatever order they are. Equal only for
    equal messages, and only in this process."""
    messages = total = 0
    for value in values:
        messages += 1
        total += hash(value)
    return {"all messages": (messages, total % 2**64)}


def _fill_partition(servers: str, topic: str, messages: Messages, rows: int, partition: int) -> None:
    failures: list[str] = []
    producer = Producer(
        {
            "bootstrap.servers": servers,
            "linger.ms": 20,
            "batch.size": 1_000_000,
            "queue.buffering.max.messages": 2 * QUEUED,
            "error_cb": lambda error: failures.append(str(error)),
        }
    )
    columns = messages.columns(rows, partition)
    count = len(next(iter(columns.values())))
    for start in range(0, count, CHUNK):
        part = {name: values[start : start + CHUNK] for name, values in columns.items()}
        batch = [{"key": key, "value": value} for key, value in messages.messages(part)]
        if producer.produce_batch(topic, batch, partition=partition) != len(batch):
            raise RuntimeError(f"Topic '{topic}' took only a part of its messages.")
        while len(producer) > QUEUED:
            producer.poll(0.01)
    if producer.flush(60) or failures:
        raise RuntimeError(f"Topic '{topic}' could not be filled: {failures or 'the broker is too slow'}")


def _random(workload: int, partition: int) -> np.random.Generator:
    return np.random.default_rng([workload, partition])


def _payments(rows: int, partition: int) -> Columns:
    random, count = _random(1, partition), rows // PARTITIONS
    return {
        "id": np.arange(partition, rows, PARTITIONS)[:count],
        "account": random.integers(0, GROUPS, count),
        "amount": random.integers(1, 10_000, count),
    }


def _payment_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"payment_id":%d,"account":"a%d","amount":%d,"paid_at":"2024-01-01 00:00:%02d"}'
    for id_, account, amount in rows_of(columns, "id", "account", "amount"):
        yield None, text % (id_, account, amount, id_ % 60)


def _payments_table(columns: Columns) -> Table:
    return _by_group("a", columns["account"], np.ones_like(columns["amount"]), columns["amount"])


def _copied_payments(columns: Columns) -> Table:
    """What the job `copy` writes, as both engines write JSON."""
    kept = (columns["amount"] >= 1_000) & (columns["account"] != 0)
    text = b'{"payment_id":%d,"account":"A%d","cents":%d,"kind":"%s","paid_at":"2024-01-01 00:00:%02d"}'
    rows = rows_of({name: values[kept] for name, values in columns.items()}, "id", "account", "amount")
    return log_table(
        text % (id_, account, amount * 100 + 1, b"large" if amount >= 5_000 else b"small", id_ % 60)
        for id_, account, amount in rows
    )


def _pageviews(rows: int, partition: int) -> Columns:
    """A user for every four views, each view from any region: nearly every view brings its region a new user."""
    random, count = _random(2, partition), rows // PARTITIONS
    return {
        "user": random.integers(0, max(1, rows // 4), count),
        "page": random.integers(0, 1_000, count),
        "second": np.arange(count) % 60,
        "region": random.integers(0, GROUPS, count),
    }


def _pageview_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"user_id":%d,"page_id":%d,"viewtime":"2024-01-01 00:00:%02d","user_region":"r%d"}'
    for row in rows_of(columns, "user", "page", "second", "region"):
        yield None, text % row


def _pageviews_table(columns: Columns) -> Table:
    users = int(columns["user"].max()) + 1
    views = np.bincount(columns["region"], minlength=GROUPS)
    visitors = np.bincount(np.unique(columns["region"] * users + columns["user"]) // users, minlength=GROUPS)
    return {f"r{i}": (int(views[i]), int(visitors[i])) for i in range(GROUPS) if views[i]}


def _filtered_pageviews_table(columns: Columns) -> Table:
    kept = (columns["page"] < 900) & (columns["region"] != 0)
    return _pageviews_table({name: values[kept] for name, values in columns.items()})


def _accounts(rows: int, partition: int) -> Columns:
    """Rounds in which every account changes once, in a new order. One change in ten moves it, one in a hundred ends it
    (until the next round)."""
    random = _random(3, partition)
    ids = np.arange(partition, rows // UPDATES, PARTITIONS)
    order = np.concatenate([random.permutation(ids) for _ in range(UPDATES)])
    moves = random.random(len(order)) < 0.1
    return {
        "round": np.repeat(np.arange(UPDATES), len(ids)),
        "id": order,
        "region": np.where(moves, random.integers(0, GROUPS, len(order)), order * 7919 % GROUPS),
        "balance": random.integers(0, 1_000_000, len(order)),
        "gone": (random.random(len(order)) < 0.01).astype(np.int64),
    }


def _account_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"id":%d,"region":"r%d","balance":%d,"changed_at":"2024-01-01 00:00:%02d"}'
    for id_, region, balance, second, gone in rows_of(columns, "id", "region", "balance", "round", "gone"):
        yield b'{"id":%d}' % id_, None if gone else text % (id_, region, balance, second)


def _accounts_table(columns: Columns) -> Table:
    last = (columns["round"] == UPDATES - 1) & (columns["gone"] == 0)
    region, balance = columns["region"][last], columns["balance"][last]
    return _by_group("r", region, np.ones_like(balance), balance)


def rows_of(columns: Columns, *names: str) -> Iterator[tuple[int, ...]]:
    """These columns, row by row."""
    return zip(*(columns[name].tolist() for name in names), strict=True)


def _by_group(prefix: str, group: npt.NDArray[np.int64], *amounts: npt.NDArray[np.int64]) -> Table:
    # Sums stay far below 2**53, so bincount's doubles are exact.
    first, second = (np.bincount(group, weights=amount, minlength=GROUPS).astype(np.int64) for amount in amounts)
    return {f"{prefix}{i}": (int(first[i]), int(second[i])) for i in range(GROUPS) if first[i]}


GENERATORS = {
    "totals": Generator(_payments, _payment_messages, _payments_table),
    "pageviews": Generator(_pageviews, _pageview_messages, _pageviews_table),
    "pageviews-where": Generator(_pageviews, _pageview_messages, _filtered_pageviews_table),
    "copy": Generator(_payments, _payment_messages, _copied_payments),
    "regions": Generator(_accounts, _account_messages, _accounts_table),
}
