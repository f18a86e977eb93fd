"""Topics with updates and with event time, generated from seeds, and the tables of their recount.

Event time advances by the position in the partition, so that both partitions are equally far; rows arrive up to
`DISORDER` milliseconds out of order, which the watermarks of the jobs allow for. It spans the same `SPAN` however many
rows there are. A table of the recount has the columns of the topic, with `seq` as the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from generate import PARTITIONS, Columns, Message, Messages, rows_of
from scripts import Topic

__all__ = ["TOPICS", "moment"]

SPAN = 20 * 60 * 1_000
DISORDER = 3_000
KEYS = 10_000
GROUP_MEMBERS = 100
CURRENCIES = 1_000
ROUNDS = 4

_DAY = "2024-01-01"
_MIDNIGHT = int(datetime.fromisoformat(f"{_DAY}T00:00:00+00:00").timestamp() * 1_000)


def moment(milliseconds: int) -> bytes:
    """A time of the generated day, as SQL writes it."""
    seconds, rest = divmod(milliseconds, 1_000)
    return b"2024-01-01 %02d:%02d:%02d.%03d" % (seconds // 3_600, seconds // 60 % 60, seconds % 60, rest)


def _times(random: np.random.Generator, count: int) -> npt.NDArray[np.int64]:
    """Event times of a partition: ascending but for the disorder, never before midnight."""
    ideal = np.arange(count) * SPAN // max(count, 1)
    return np.maximum(ideal - random.integers(0, DISORDER, count), 0)


def _updated(random: np.random.Generator, partition: int, keys: int) -> npt.NDArray[np.int64]:
    """Every key of the partition once, and a fifth of them once more, anywhere after that."""
    ids = random.permutation(np.arange(partition, keys, PARTITIONS))
    again = random.permutation(ids)[: len(ids) // 5]
    later = random.random(len(again)) * len(ids) + len(ids)
    order = np.argsort(np.concatenate([np.arange(len(ids)) * 2.0, later]), kind="stable")
    # An update may come before its first row here: which of the two is the first one does not matter.
    return np.concatenate([ids, again])[order]


def _customers(rows: int, partition: int) -> Columns:
    random = np.random.default_rng([11, partition])
    ids = _updated(random, partition, int(rows / 1.2))
    return {
        "id": ids,
        "region": random.integers(0, 1_000, len(ids)),
        "discount": random.integers(0, 50, len(ids)),
    }


def _customer_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"id":%d,"name":"customer %d","region":"r%d","discount":%d}'
    for id_, region, discount in rows_of(columns, "id", "region", "discount"):
        yield b'{"id":%d}' % id_, text % (id_, id_, region, discount)


def _orders(rows: int, partition: int) -> Columns:
    """An order of any customer; one message in fifty deletes its order."""
    random, keys = np.random.default_rng([12, partition]), int(rows / 1.2)
    ids = _updated(random, partition, keys)
    return {
        "id": ids,
        "customer": random.integers(0, keys, len(ids)),
        "amount": random.integers(1, 10_000, len(ids)),
        "gone": (random.random(len(ids)) < 0.02).astype(np.int64),
    }


def _order_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"id":%d,"customer":%d,"amount":%d}'
    for id_, customer, amount, gone in rows_of(columns, "id", "customer", "amount", "gone"):
        yield b'{"id":%d}' % id_, None if gone else text % (id_, customer, amount)


def _players(rows: int, partition: int) -> Columns:
    """Rounds in which every player gets a new score, in a new order; one in fifty leaves until the next round."""
    random = np.random.default_rng([13, partition])
    ids = np.arange(partition, rows // ROUNDS, PARTITIONS)
    order = np.concatenate([random.permutation(ids) for _ in range(ROUNDS)])
    return {
        "id": order,
        "team": order // PARTITIONS // GROUP_MEMBERS,
        "score": random.integers(0, 1_000_000, len(order)),
        "gone": (random.random(len(order)) < 0.02).astype(np.int64),
    }


def _player_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"team":"t%d","id":%d,"score":%d,"nick":"player %d"}'
    for id_, team, score, gone in rows_of(columns, "id", "team", "score", "gone"):
        yield b'{"team":"t%d","id":%d}' % (team, id_), None if gone else text % (team, id_, score, id_)


def _clicks(rows: int, partition: int) -> Columns:
    random, count = np.random.default_rng([14, partition]), rows // PARTITIONS
    return {
        "account": random.integers(0, KEYS, count),
        "amount": random.integers(1, 1_000, count),
        "ts": _times(random, count),
    }


def _click_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"account":"a%d","amount":%d,"ts":"%s"}'
    for account, amount, ts in rows_of(columns, "account", "amount", "ts"):
        yield None, text % (account, amount, moment(ts))


def _sales(rows: int, partition: int) -> Columns:
    random, count = np.random.default_rng([15, partition]), rows // PARTITIONS
    return {
        "id": np.arange(partition, rows, PARTITIONS)[:count],
        "currency": random.integers(0, CURRENCIES, count),
        "amount": random.integers(1, 10_000, count),
        "ts": _times(random, count),
    }


def _sale_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"id":%d,"currency":"c%d","amount":%d,"ts":"%s"}'
    for id_, currency, amount, ts in rows_of(columns, "id", "currency", "amount", "ts"):
        yield None, text % (id_, currency, amount, moment(ts))


def _rates(rows: int, partition: int) -> Columns:
    """Versions of a currency in the order of their times, no two at the same one: the currencies take turns."""
    random, count = np.random.default_rng([16, partition]), rows // PARTITIONS
    turn = np.arange(count) % (CURRENCIES // PARTITIONS)
    return {
        "currency": turn * PARTITIONS + partition,
        "rate": random.integers(100, 200, count),
        "ts": np.arange(count) * SPAN // max(count, 1),
    }


def _rate_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"currency":"c%d","rate":%d,"ts":"%s"}'
    for currency, rate, ts in rows_of(columns, "currency", "rate", "ts"):
        yield b'{"currency":"c%d"}' % currency, text % (currency, rate, moment(ts))


def _readings(rows: int, partition: int) -> Columns:
    """Two readings of every id, in the same partition; what arrives first is not always the earlier one."""
    random, count = np.random.default_rng([17, partition]), rows // PARTITIONS
    ids = np.arange(count) // 2
    second = np.arange(count) % 2
    ids = ids[np.argsort(ids + second * random.integers(1, 5_000, count), kind="stable")]
    # One reading in a millisecond, so that there is one earliest; the ranks of jittered positions are out of order.
    times = np.argsort(np.argsort(np.arange(count) + random.integers(0, DISORDER, count), kind="stable"))
    return {"id": ids * PARTITIONS + partition, "value": random.integers(0, 1_000_000, count), "ts": times}


def _reading_messages(columns: Columns) -> Iterator[Message]:
    text = b'{"id":%d,"reading":%d,"unit":"unit %d","ts":"%s"}'
    for id_, value, ts in rows_of(columns, "id", "value", "ts"):
        yield None, text % (id_, value, value % 7, moment(ts))


def _topic(name: str, generated: Messages, share: float) -> Topic:
    """Its recount table has the generated columns; times as TIMESTAMP."""
    return Topic(generated, share, _loader(name, generated))


def _loader(name: str, generated: Messages) -> Callable[[duckdb.DuckDBPyConnection, int], None]:
    def load(database: duckdb.DuckDBPyConnection, rows: int) -> None:
        columns = generated.all_columns(rows)
        arrays = {column: pa.array(values) for column, values in columns.items()}
        if "ts" in arrays:
            arrays["ts"] = pa.array(columns["ts"] + _MIDNIGHT).cast(pa.timestamp("ms"))
        arrays["seq"] = pa.array(np.arange(len(next(iter(columns.values())))))
        database.register("loaded", pa.table(arrays))
        database.execute(f"CREATE TABLE {name} AS FROM loaded")
        database.unregister("loaded")

    return load


TOPICS = {
    "customers": _topic("customers", Messages(_customers, _customer_messages), 0.3),
    "orders": _topic("orders", Messages(_orders, _order_messages), 0.3),
    "players": _topic("players", Messages(_players, _player_messages), 1.0),
    "clicks": _topic("clicks", Messages(_clicks, _click_messages), 1.0),
    "sales": _topic("sales", Messages(_sales, _sale_messages), 0.9),
    "rates": _topic("rates", Messages(_rates, _rate_messages), 0.1),
    "readings": _topic("readings", Messages(_readings, _reading_messages), 1.0),
}
"""With 4 million rows, customers and orders have 1 million keys each."""
