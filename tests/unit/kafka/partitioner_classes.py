"""Classes that tests name in 'sink.partitioner'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class ByLength:
    """By the length of the column `name`."""

    def partition(
        self, record: Mapping[str, Any], key: bytes | None, value: bytes | None, topic: str, partitions: int
    ) -> int:
        return len(record["name"]) % partitions


class NeedsArguments(ByLength):
    def __init__(self, number: int) -> None:
        self.number = number


class OutOfRange(ByLength):
    def partition(
        self, record: Mapping[str, Any], key: bytes | None, value: bytes | None, topic: str, partitions: int
    ) -> int:
        return partitions
