"""How large topics are, estimated from a sample of their messages.

librdkafka has no function for Kafka's DescribeLogDirs (2.16 knows the request by name only), so nobody can be asked.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from headwater.cli.kafka import Target, consumer_of
from headwater.cli.style import size

__all__ = ["estimated_sizes"]

_Place = tuple[str, int]
_MESSAGES = 50  # of a partition
_PARTITIONS = 2  # of a topic
_SECONDS = 3.0
_FETCH_BYTES = 65_536  # a partition's answer; a larger message still comes, alone


def estimated_sizes(target: Target, ranges: Mapping[_Place, tuple[int, int]]) -> dict[str, str]:
    """By topic: '0 B' without messages, '~ 1.2 KB' by a sample, a dash where none came in time."""
    lengths = {place: end - first for place, (first, end) in ranges.items()}
    totals: dict[str, int] = {}
    for (topic, _), number in lengths.items():
        totals[topic] = totals.get(topic, 0) + number
    sampled = _sampled(target, {place: ranges[place] for place in _largest(lengths)})
    return {topic: _estimate(number, sampled.get(topic, [])) for topic, number in totals.items()}


def _estimate(messages: int, sample: list[int]) -> str:
    if not messages:
        return size(0)
    return f"~ {size(round(messages * sum(sample) / len(sample)))}" if sample else "–"


def _largest(lengths: Mapping[_Place, int]) -> list[_Place]:
    chosen: dict[str, list[_Place]] = {}
    # The largest partitions weigh most in the estimate.
    for place in sorted((p for p, number in lengths.items() if number), key=lambda p: -lengths[p]):
        mine = chosen.setdefault(place[0], [])
        if len(mine) < _PARTITIONS:
            mine.append(place)
    return [place for places in chosen.values() for place in places]


def _sampled(target: Target, ranges: Mapping[_Place, tuple[int, int]]) -> dict[str, list[int]]:
    """Bytes of messages, by topic."""
    from confluent_kafka import TopicPartition

    if not ranges:
        return {}
    consumer = consumer_of(target, {"fetch.message.max.bytes": _FETCH_BYTES})
    left, found = set(ranges), dict[str, list[int]]()
    try:
        starts = {place: max(first, end - _MESSAGES) for place, (first, end) in ranges.items()}
        consumer.assign([TopicPartition(*place, offset) for place, offset in starts.items()])
        deadline = time.monotonic() + _SECONDS
        while left and time.monotonic() < deadline:
            for message in consumer.consume(1000, 0.1):
                place = (message.topic(), message.partition())
                if message.error() is None:
                    found.setdefault(place[0], []).append(_bytes(message))
                # an error is the end of the partition, or nothing that a sample needs to know
                if message.error() is not None or message.offset() + 1 >= ranges[place][1]:
                    left.discard(place)
    finally:
        consumer.close()
    return found


def _bytes(message: Any) -> int:
    headers = message.headers() or []
    parts = [message.key(), message.value(), *(part for header in headers for part in header)]
    return sum(len(part) for part in parts if part is not None)
