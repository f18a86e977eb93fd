"""`properties.*` of a table as options of Spark's Kafka reader and writer, with defaults that were measured.

Small fetches and polls are what makes Spark's reader slow by default; see docs/decisions for the numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession

from headwater.options.secrets import is_secret

__all__ = [
    "NOT_FOR_CLIENTS",
    "commits_offsets",
    "has_secrets",
    "reader_options",
    "spark_connector",
    "writer_options",
]

_READER = {
    "max.poll.records": "10000",
    "fetch.max.wait.ms": "10",
    "max.partition.fetch.bytes": str(8 << 20),
    "receive.buffer.bytes": str(1 << 20),
}
_WRITER = {
    "linger.ms": "20",
    "batch.size": str(256 << 10),
    "buffer.memory": str(128 << 20),
    "send.buffer.bytes": str(1 << 20),
}
_OLDER = "spark.sql.sources.useV1SourceList"
# Kafka's name and Flink's for the same thing.
_COMMITS = ("enable.auto.commit", "commit.offsets.on.checkpoint")
# Ours to act on: positions are kept in checkpoints, and the source commits them to groups.
NOT_FOR_CLIENTS = frozenset({"group.id", "auto.offset.reset", "auto.commit.interval.ms", *_COMMITS})


def commits_offsets(properties: Mapping[str, str]) -> bool:
    """Whether the offsets of finished batches are committed for 'group.id': unless it is switched off."""
    return all(properties.get(key, "true").lower() != "false" for key in _COMMITS)


def reader_options(properties: Mapping[str, str], job: str) -> dict[str, str]:
    own = {k: v for k, v in properties.items() if k not in NOT_FOR_CLIENTS}
    # One group id for all batches lets Spark's executors keep their consumers, and what they prefetched, between
    # batches. They assign partitions themselves and never join or commit as that group. Spark refuses two consumers of
    # one id with different settings, and would print those; so the id depends on them.
    settings = {**_READER, **own}
    digest = hashlib.sha256(repr(sorted(settings.items())).encode()).hexdigest()[:12]
    return {f"kafka.{k}": v for k, v in {**settings, "group.id": f"headwater-{job}-{digest}"}.items()}


def writer_options(properties: Mapping[str, str]) -> dict[str, str]:
    own = {k: v for k, v in properties.items() if k not in NOT_FOR_CLIENTS}
    return {f"kafka.{k}": v for k, v in {**_WRITER, **own}.items()}


@contextmanager
def spark_connector(session: SparkSession, properties: Mapping[str, str]) -> Iterator[None]:
    """Which of Spark's two Kafka connectors is used inside. The newer one reads rows without turning each into objects
    and back, and tells how many it wrote; but it shows all options on Spark's web page; the older one masks them."""
    before = session.conf.get(_OLDER)
    session.conf.set(_OLDER, "kafka" if has_secrets(properties) else "")
    try:
        yield
    finally:
        session.conf.set(_OLDER, before or "")


def has_secrets(properties: Mapping[str, str]) -> bool:
    return any(is_secret(key) for key in properties)
