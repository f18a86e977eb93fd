"""How far the splits of a consumer have been read, and what its messages and ends of partitions prove about that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from confluent_kafka import Message

from headwater.connectors.kafka.read.message_columns import Run
from headwater.connectors.kafka.read.splits import KafkaSplit

__all__ = ["OnDataLoss", "ReadProgress"]

OnDataLoss = Literal["fail", "continue"]
"""'scan.on-data-loss': whether messages that are gone fail the batch, or are passed over."""


class ReadProgress:
    """How far some splits of different partitions have been read: the next offset of each.

    Compaction and transactions leave offsets without messages, so a first message, or an end of the partition, that
    lies beyond the place is no error: it claims that nothing is in between. What an earlier assignment has left behind
    would claim the same, and messages would be lost. So a split is proven by a message at its very place, or by the
    same claim twice, with a new assignment in between. From then on order is enough: the client delivers the messages
    of an assignment without omissions."""

    def __init__(self, splits: Sequence[KafkaSplit], on_loss: OnDataLoss) -> None:
        self.continues = on_loss == "continue"
        self.places = {split: split.first for split in splits}
        self._by_partition = {split.place: split for split in splits}
        self._only = splits[0] if len(splits) == 1 else None
        self._ended: set[KafkaSplit] = set()
        self._proven: set[KafkaSplit] = set()
        self._claims: dict[KafkaSplit, int] = {}
        self._doubted: list[KafkaSplit] = []
        self._missing: dict[KafkaSplit, float] = {}
        self.looked_at = 0.0
        self.restarts = 0

    @property
    def left(self) -> int:
        return max(1, sum(max(0, split.end - place) for split, place in self.places.items()))

    @property
    def is_done(self) -> bool:
        return all(place >= split.end for split, place in self.places.items())

    @property
    def open(self) -> list[KafkaSplit]:
        return [split for split, place in self.places.items() if place < split.end]

    @property
    def first_open(self) -> KafkaSplit:
        return self.open[0]

    def of(self, message: Message) -> KafkaSplit | None:
        """None if it belongs to none of them: it was fetched for an assignment before this one."""
        return self._by_partition.get((str(message.topic()), int(message.partition() or 0)))

    def reached(self, split: KafkaSplit, place: int) -> None:
        self.places[split] = max(self.places[split], place)

    def ended(self, split: KafkaSplit, offset: int) -> None:
        """The partition ends there, for now."""
        if offset > self.places[split] and self._proves(split, offset):
            self.reached(split, offset)

    def doubted(self) -> list[KafkaSplit]:
        """Those that have to be assigned again since this was asked last."""
        doubted, self._doubted = self._doubted, []
        return doubted

    def missing_for(self, split: KafkaSplit, now: float, *, is_missing: bool) -> float:
        """For how many seconds all answers of brokers have said that the partition does not exist."""
        if not is_missing:
            self._missing.pop(split, None)
            return 0.0
        return now - self._missing.setdefault(split, now)

    def _proves(self, split: KafkaSplit, offset: int) -> bool:
        """Whether there is no message between the place and what comes first, at this offset."""
        if split in self._proven:
            return True
        if split in self._doubted:  # of the assignment that will be replaced
            return False
        claim = min(offset, split.end)  # what lies behind the split may have changed meanwhile
        if offset == self.places[split] or self._claims.get(split) == claim:
            self._proven.add(split)
            return True
        self._claims[split] = claim
        self._doubted.append(split)
        return False

    def finished(self) -> list[KafkaSplit]:
        """Those that have come to their end since this was asked last."""
        new = [s for s, place in self.places.items() if place >= s.end and s not in self._ended]
        self._ended.update(new)
        return new

    def taken(self, messages: list[Message]) -> list[Run]:
        """The messages that belong to the splits, each with those of its partition, in order."""
        if not messages:
            return []
        runs: dict[KafkaSplit, list[Message]] = {}
        # What is left of an assignment before comes before all else: the first message tells whether there is any.
        if self._only is not None and self.of(messages[0]) is self.of(messages[-1]) is self._only:
            runs[self._only] = messages
        else:
            for message in messages:
                if (split := self.of(message)) is not None:
                    runs.setdefault(split, []).append(message)
        return [run for split, found in runs.items() if (run := (split, self._inside(split, found)))[1]]

    def _inside(self, split: KafkaSplit, messages: list[Message]) -> list[Message]:
        """What was fetched again is left out too: after an error of the connection the client may go back."""
        first, last = int(messages[0].offset() or 0), int(messages[-1].offset() or 0)
        # Without gaps, which is the usual case, the count tells that nothing was repeated: no loop is needed.
        if first < self.places[split] or last - first != len(messages) - 1:
            messages = _ascending(messages, self.places[split])
        if not messages or not self._proves(split, int(messages[0].offset() or 0)):
            return []
        behind = int(messages[-1].offset() or 0) + 1
        self.reached(split, behind)
        return messages if behind <= split.end else [m for m in messages if int(m.offset() or 0) < split.end]


def _ascending(messages: list[Message], place: int) -> list[Message]:
    """From this offset on, each message once."""
    found = []
    for message in messages:
        offset = int(message.offset() or 0)
        if offset >= place:
            found.append(message)
            place = offset + 1
    return found
