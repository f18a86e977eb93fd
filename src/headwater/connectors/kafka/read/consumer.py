"""A librdkafka consumer inside a Python worker: the messages of its splits, ends of partitions, and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import TopicMetadata

from headwater.connectors.kafka.clients.client_errors import LastError, is_refusal, translated
from headwater.connectors.kafka.read.message_columns import Run
from headwater.connectors.kafka.read.progress import OnDataLoss, ReadProgress
from headwater.connectors.kafka.read.splits import KafkaSplit
from headwater.errors import DataLossError, HeadwaterError

__all__ = ["SplitConsumer", "borrowed_consumer", "give_back_consumer"]

AT_ONCE = 16_384

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
        reading = ReadProgress(splits, on_loss)
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

    def _in_order(self, received: list[Message], reading: ReadProgress) -> list[Run]:
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

    def _endure(self, silence: float, reading: ReadProgress) -> None:
        """Nothing was heard for so many seconds. The client waits long for a topic that does not exist (any more)."""
        if silence > SILENCE_SECONDS:
            raise self._failure(KafkaError(KafkaError._TIMED_OUT, "no message arrived"), reading.first_open)
        if reading.continues and silence > QUIET_SECONDS:
            self._look_for_gone(reading)

    def _look_for_gone(self, reading: ReadProgress) -> None:
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
                if reading.missing_for(split, now, is_missing=_is_missing(topic, split)) >= GONE_SECONDS:
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

    def _hear(self, event: Message, reading: ReadProgress) -> None:
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

    def _check_loss(self, split: KafkaSplit, reading: ReadProgress, problem: KafkaError) -> None:
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

    def _restart(self, split: KafkaSplit, reading: ReadProgress) -> None:
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
