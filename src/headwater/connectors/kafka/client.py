"""`properties.*` of a table as options of Spark's Kafka reader and writer, with defaults that were measured.

Small fetches and polls are what makes Spark's reader slow by default; see docs/decisions for the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["reader_options", "writer_options"]

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
# Spark sets these itself, or our offsets take their place.
_NOT_FOR_SPARK = frozenset({"group.id", "auto.offset.reset", "enable.auto.commit", "auto.commit.interval.ms"})


def reader_options(properties: Mapping[str, str], job: str) -> dict[str, str]:
    own = {k: v for k, v in properties.items() if k not in _NOT_FOR_SPARK}
    # One group id for all batches lets Spark's executors keep their consumers, and what they prefetched, between
    # batches. They assign partitions themselves and never join or commit as that group.
    group = properties.get("group.id") or f"headwater-{job}"
    return {f"kafka.{k}": v for k, v in {**_READER, **own, "group.id": group}.items()}


def writer_options(properties: Mapping[str, str]) -> dict[str, str]:
    own = {k: v for k, v in properties.items() if k not in _NOT_FOR_SPARK}
    return {f"kafka.{k}": v for k, v in {**_WRITER, **own}.items()}
