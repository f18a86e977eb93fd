"""A librdkafka consumer inside a Python worker: the messages of its splits, ends of partitions, and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import TopicMetadata

from headwater.connectors.kafka.clients.client_errors import LastError, is_refusal, translated
from headwater.connectors.kafka.read.message_columns import Run
from headwater.connectors.kafka.read.splits import KafkaSplit
from headwater.errors import DataLossError, HeadwaterError

__all__ = ["OnDataLoss", "SplitConsumer", "borrowed_consumer", "give_back_consumer"]

AT_ONCE = 16_384
OnDataLoss = Literal["fail", "continue"]
"""'scan.on-data-loss': whether messages that are gone fail the batch, or are passed over."""

# `consume` returns only when it has the full number or its time is over: a longer time would hold back the last
# messages.
POLL_SECONDS = 0.01
SILENCE_SECONDS = 30.0
QUIET_SECONDS = 1.0
# Brokers learn of a new topic one after the other: one that does not know it yet must not be taken for proof that the
# topic is gone.
GONE_SECONDS = 5.0
GONE_LOOK_SECONDS = 0.25
LOOK_UP_SECONDS = 1.0
MOST_RESTARTS = 20


class SplitConsumer:
    """A consumer that outlives the task, so that the next one finds it connected."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._last_error = LastError()
        self._consumer = Consumer({**settings, "error_cb": self._last_error})
        self._asked: set[str] = set()  # topics that the client was asked to look up

    def gathered(self, splits: Sequence[KafkaSplit], on_loss: OnDataLoss, most_bytes: int) -> list[Run] | None:
        """All messages of some splits, fetched together; None if they are too large to be kept."""
        found: dict[KafkaSplit, list[Message]] = {split: [] for split in splits}
        size = 0
        for received in self.received(splits, on_loss):
            for split, messages in received:
                found[split] += messages
                size += sum(map(len, messages))
            # Unassigned at once: what the client has queued must not reach the next user of this consumer.
            if size > most_bytes:
                self._consumer.unassign()
                return None
        return [(split, messages) for split, messages in found.items() if messages]

    def received(self, splits: Sequence[KafkaSplit], on_loss: OnDataLoss) -> Iterator[list[Run]]:
        """1. Ask for no more than there can be. 2. Leave out what lies behind a split. 3. Its end is reached with its
        last offset, with a message behind it, or when the broker says that nothing is left before it. 4. What claims
        that offsets are empty where the reading begins is fetched once more before it is believed."""
        self._last_error.last = None
        reading = _Reading(splits, on_loss)
        self._look_up({split.topic for split in splits})
        # Assigned, not subscribed: positions come from the intent, and no group decides about partitions.
        self._consumer.assign([TopicPartition(s.topic, s.partition, s.first) for s in splits])
        heard = time.monotonic()
        while not reading.is_done:
            received = self._consume(min(AT_ONCE, reading.left), splits[0])  # 1
            # The client reads ahead of what was asked, across the end of a split. Events are rare among messages: this
            # test is several times faster than a loop.
            mixed = any(map(Message.error, received))
            runs = self._in_order(received, reading) if mixed else reading.taken(received)  # 2, 3
            heard = time.monotonic() if received else heard
            self._endure(time.monotonic() - heard, reading)
            for split in reading.doubted():  # 4
                self._restart(split, reading)
            finished = reading.finished()
            if finished and not reading.is_done:  # what lies behind would be fetched in vain
                self._consumer.incremental_unassign([TopicPartition(s.topic, s.partition) for s in finished])
            if runs:
                yield runs
                heard = time.monotonic()  # nobody listened meanwhile
        self._consumer.unassign()

    def _in_order(self, received: list[Message], reading: _Reading) -> list[Run]:
        """Messages and events as they came: what an event means depends on the messages before it."""
        runs: list[Run] = []
        messages: list[Message] = []
        for one in received:
            if one.error() is None:
                messages.append(one)
            else:
                runs += reading.taken(messages)
                messages = []
                self._hear(one, reading)
        return runs + reading.taken(messages)

    def _look_up(self, topics: set[str]) -> None:
        """Left to itself, the client looks up a topic that is new to it by a timer that ticks once a second: the first
        batch of a job would wait for that. What is wrong, or slow, shows when the topic is read."""
        for topic in topics - self._asked:
            with suppress(KafkaException):
                self._consumer.list_topics(topic, timeout=LOOK_UP_SECONDS)
        self._asked |= topics

    def _endure(self, silence: float, reading: _Reading) -> None:
        """Nothing was heard for so many seconds. The client waits long for a topic that does not exist (any more)."""
        if silence > SILENCE_SECONDS:
            raise self._failure(KafkaError(KafkaError._TIMED_OUT, "no message arrived"), reading.first_open)
        if reading.continues and silence > QUIET_SECONDS:
            self._look_for_gone(reading)

    def _look_for_gone(self, reading: _Reading) -> None:
        """Splits whose partitions no broker has known for a while are passed over."""
        now = time.monotonic()
        if now - reading.looked_at < GONE_LOOK_SECONDS:
            return
        reading.looked_at = now
        for name in {split.topic for split in reading.open}:
            try:
                topic = self._consumer.list_topics(name, timeout=SILENCE_SECONDS).topics.get(name)
            except KafkaException as error:
                raise self._failure(error.args[0], reading.first_open) from error
            for split in [split for split in reading.open if split.topic == name]:
                if reading.missing_for(split, now, _is_missing(topic, split)) >= GONE_SECONDS:
                    reading.reached(split, split.end)

    def _consume(self, count: int, about: KafkaSplit) -> list[Message]:
        try:
            received: list[Message] = self._consumer.consume(count, POLL_SECONDS)
        except KafkaException as error:
            raise self._failure(error.args[0], about) from error
        last = self._last_error.last
        # A refused login is reported beside the messages, and retried by the client for good: nobody else would give
        # up.
        if not received and last is not None and is_refusal(last) and last.code() not in _NOT_OURS:
            raise self._failure(last, about)
        return received

    def _hear(self, event: Message, reading: _Reading) -> None:
        """What is no message tells of a partition's end, or of an error."""
        problem = event.error()
        if problem is None or problem.code() in _NOT_OURS:
            return
        split = reading.of(event)
        if split is None:
            # Of a partition that was read before, or of no partition at all: that is about whatever is still open.
            if event.topic() is not None or reading.is_done:
                return
            split = reading.first_open
        if problem.code() == KafkaError._PARTITION_EOF:
            reading.ended(split, int(event.offset() or 0))
        elif problem.code() in _LOST:
            self._check_loss(split, reading, problem)
        # One broker's word, or an old one: `_endure` finds out whether the topic is gone.
        elif not (reading.continues and problem.code() in _GONE):
            raise self._failure(problem, split)

    def _check_loss(self, split: KafkaSplit, reading: _Reading, problem: KafkaError) -> None:
        """The error does not say which assignment it is about, so the broker is asked what it still has. Messages that
        are gone fail the reading, or it goes on behind them; if none is, it goes on where it is."""
        place = reading.places[split]
        if place >= split.end:
            return
        partition = TopicPartition(split.topic, split.partition)
        try:
            low, high = self._consumer.get_watermark_offsets(partition, timeout=SILENCE_SECONDS)
        except KafkaException as error:
            raise self._failure(error.args[0], split) from error
        if not low <= place <= high:
            if not reading.continues:
                raise self._failure(problem, split)
            # Below the first offset messages were deleted; a topic that ends before the place is another one.
            reading.reached(split, min(low, split.end) if place < low else split.end)
        # After such an error the client has stopped fetching the partition; only a new assignment starts it again.
        if reading.places[split] < split.end:
            self._restart(split, reading)

    def _restart(self, split: KafkaSplit, reading: _Reading) -> None:
        """A new assignment: the client drops what it has queued of the partition."""
        reading.restarts += 1
        if reading.restarts > MOST_RESTARTS * len(reading.places):
            raise self._failure(KafkaError(KafkaError._INCONSISTENT, "the partition cannot be read in order"), split)
        partition, place = TopicPartition(split.topic, split.partition), reading.places[split]
        self._consumer.incremental_unassign([partition])
        self._consumer.incremental_assign([TopicPartition(split.topic, split.partition, place)])

    def _failure(self, error: KafkaError, split: KafkaSplit) -> HeadwaterError:
        where = f"topic '{split.topic}', partition {split.partition}"
        if error.code() in _LOST:
            return DataLossError(
                f"Messages that are needed are no longer there: {where}, offsets {split.first} to {split.end - 1}.",
                detail=error.str(),
                hint="Retention has removed them, or the topic is a new one. Set 'scan.on-data-loss' = 'continue' to "
                "go on with what is left, or start with a new checkpoint.",
            )
        return translated(KafkaException(error), f"messages from {where}", self._last_error)

    def close(self) -> None:
        self._consumer.close()


# The client asks for the coordinator of its group, which it never uses, and may not be allowed to.
_NOT_OURS = frozenset({KafkaError.GROUP_AUTHORIZATION_FAILED})
# With 'auto.offset.reset' = 'error' librdkafka reports a lost position under the second code.
_LOST = frozenset({KafkaError.OFFSET_OUT_OF_RANGE, KafkaError._AUTO_OFFSET_RESET})
_GONE = frozenset({KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC, KafkaError._UNKNOWN_PARTITION})


class _Reading:
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

    def missing_for(self, split: KafkaSplit, now: float, is_missing: bool) -> float:
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


def _is_missing(topic: TopicMetadata | None, split: KafkaSplit) -> bool:
    """Whether this answer says that the partition does not exist. One with another error says nothing."""
    if topic is None:
        return False
    if topic.error is not None:
        return topic.error.code() in _GONE
    # Partitions are never removed: a topic that has others was deleted and created again.
    return bool(topic.partitions) and split.partition not in topic.partitions


_idle: dict[frozenset[tuple[str, Any]], list[SplitConsumer]] = {}
_idle_lock = threading.Lock()


def borrowed_consumer(settings: Mapping[str, Any]) -> SplitConsumer:
    with _idle_lock:
        waiting = _idle.get(frozenset(settings.items()))
        if waiting:
            return waiting.pop()
    return SplitConsumer(settings)


def give_back_consumer(settings: Mapping[str, Any], client: SplitConsumer) -> None:
    with _idle_lock:
        _idle.setdefault(frozenset(settings.items()), []).append(client)
