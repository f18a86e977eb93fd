"""The Kafka writer alone, without Spark: large and small batches from Arrow columns, with each guarantee.

    python benchmarks/kafka_writer.py [--messages 1000000] [--runs 5]

A batch counts as written when the broker has all of it, and with exactly-once when its transaction is committed. The
guarantees take turns, so that a machine that is busy for a while is busy for all of them.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from statistics import median

import pyarrow as pa

from headwater.broker import Broker
from headwater.connectors.kafka.write.settings import transactional, writer_settings
from headwater.connectors.kafka.write.transactions import Transactions, open_writers, write_once
from headwater.connectors.kafka.write.writer import open_producers, write_all
from headwater.connectors.runtime import BatchId
from headwater.testing.kafka import Kafka

TOPIC, PARTITIONS = "written", 4
SMALL, SMALL_RUNS = 1_000, 40
ROWS_OF_SPARK = 4_096  # in one of its Arrow batches
PAUSE_SECONDS = 0.05

Batches = list[pa.RecordBatch]
Write = Callable[[Batches], None]


def main() -> None:
    options = _options()
    large = _messages(options.messages)
    small = [[_messages(SMALL)[0]] for _ in range(SMALL_RUNS)]
    with (
        tempfile.TemporaryDirectory(prefix="headwater-bench-") as directory,
        Broker.start(Path(directory), port=0, die_with_parent=True) as broker,
    ):
        client = Kafka(broker.bootstrap_servers)
        client.create({TOPIC: PARTITIONS})
        ways = _ways(broker.bootstrap_servers)
        for name, seconds in _timed(ways, [large] * options.runs, 0.0).items():
            print(f"{name:14} {options.messages:>9,} messages: {options.messages / seconds:>9,.0f} /s")
        for name, seconds in _timed(ways, small, PAUSE_SECONDS).items():
            print(f"{name:14} {SMALL:>9,} messages: {seconds * 1000:>9.1f} ms")
        open_producers.close_idle()
        open_writers.close_idle()
        client.close()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    return parser.parse_args()


def _messages(number: int) -> Batches:
    values = [
        b'{"id": %d, "who": "user-%d", "amount": 12.5, "note": "some text"}' % (i, i % 1000) for i in range(number)
    ]
    return pa.table({"value": pa.array(values, pa.binary())}).to_batches(ROWS_OF_SPARK)


def _ways(servers: str) -> Mapping[str, Write]:
    settings = {
        g: writer_settings({"bootstrap.servers": servers}, g) for g in ("none", "at-least-once", "exactly-once")
    }
    job = Transactions("bench", "checkpoint", TOPIC, transactional(settings["exactly-once"], 300_000))
    numbers = count(1)
    return {
        "none": lambda batches: _discard(write_all(settings["none"], TOPIC, batches)),
        "at-least-once": lambda batches: _discard(write_all(settings["at-least-once"], TOPIC, batches)),
        "exactly-once": lambda batches: _discard(write_once(job, 0, BatchId(next(numbers), "digest"), batches)),
    }


def _discard(_: int) -> None:
    return


def _timed(ways: Mapping[str, Write], batches: list[Batches], pause: float) -> dict[str, float]:
    """The median time of each way, after a run of each that is not counted."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for one in [batches[0], *batches]:
        for name, write in ways.items():
            began = time.perf_counter()
            write(one)
            found[name].append(time.perf_counter() - began)
            time.sleep(pause)
    return {name: median(seconds[1:]) for name, seconds in found.items()}


if __name__ == "__main__":
    main()
