"""A librdkafka consumer inside a Python worker: the messages of its splits, ends of partitions, and errors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

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
GONE_SECONDS = 1.0
LOOK_UP_SECONDS = 1.0


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
        last offset, with a message behind it, or when the broker says that nothing is left before it."""
        self._last_error.last = None
        reading = _Reading(splits, on_loss)
        self._look_up({split.topic for split in splits})
        # Assigned, not subscribed: positions come from the intent, and no group decides about partitions.
        self._consumer.assign([TopicPartition(s.topic, s.partition, s.first) for s in splits])
        heard = time.monotonic()
        while not reading.is_done:
            received = self._consume(min(AT_ONCE, reading.left), splits[0])  # 1
            messages = received
            # Events are rare among messages: this test is several times faster than a loop.
            if any(map(Message.error, received)):
                messages = [m for m in received if m.error() is None]
            # The client reads ahead of what was asked, across the end of a split.
            runs = reading.taken(messages)  # 2, 3
            if len(messages) < len(received):
                for event in received:
                    self._hear(event, reading)
            heard = time.monotonic() if received else heard
            self._endure(time.monotonic() - heard, reading)
            finished = reading.finished()
            if finished and not reading.is_done:  # what lies behind would be fetched in vain
                self._consumer.incremental_unassign([TopicPartition(s.topic, s.partition) for s in finished])
            if runs:
                yield runs
        self._consumer.unassign()

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
        if reading.continues and silence > GONE_SECONDS:
            split = reading.first_open
            try:
                topic = self._consumer.list_topics(split.topic, timeout=SILENCE_SECONDS).topics[split.topic]
            except KafkaException as error:
                raise self._failure(error.args[0], split) from error
            if split.partition not in topic.partitions:
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
            reading.reached(split, int(event.offset() or 0))
        elif reading.continues and problem.code() in _LOST:
            self._pass_over(split, reading)
        elif reading.continues and problem.code() in _GONE:
            reading.reached(split, split.end)
        else:
            raise self._failure(problem, split)

    def _pass_over(self, split: KafkaSplit, reading: _Reading) -> None:
        """Go on at the first message that is left; if that, or all of the topic, lies elsewhere, there is none."""
        partition = TopicPartition(split.topic, split.partition)
        try:
            low, _ = self._consumer.get_watermark_offsets(partition, timeout=SILENCE_SECONDS)
        except KafkaException as error:
            raise self._failure(error.args[0], split) from error
        place = low if reading.places[split] < low < split.end else split.end
        reading.reached(split, place)
        # After such an error the client has stopped fetching the partition; only a new assignment starts it again.
        if place < split.end:
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
    """How far some splits of different partitions have been read: the next offset of each."""

    def __init__(self, splits: Sequence[KafkaSplit], on_loss: OnDataLoss) -> None:
        self.continues = on_loss == "continue"
        self.places = {split: split.first for split in splits}
        self._by_partition = {split.place: split for split in splits}
        self._only = splits[0] if len(splits) == 1 else None
        self._ended: set[KafkaSplit] = set()

    @property
    def left(self) -> int:
        return max(1, sum(max(0, split.end - place) for split, place in self.places.items()))

    @property
    def is_done(self) -> bool:
        return all(place >= split.end for split, place in self.places.items())

    @property
    def first_open(self) -> KafkaSplit:
        return next(split for split, place in self.places.items() if place < split.end)

    def of(self, message: Message) -> KafkaSplit | None:
        """None if it belongs to none of them: it was fetched for an assignment before this one."""
        return self._by_partition.get((str(message.topic()), int(message.partition() or 0)))

    def reached(self, split: KafkaSplit, place: int) -> None:
        self.places[split] = max(self.places[split], place)

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
        place, behind = self.places[split], int(messages[-1].offset() or 0) + 1
        if behind > split.end or int(messages[0].offset() or 0) < place:
            messages = [m for m in messages if place <= int(m.offset() or 0) < split.end]
        self.reached(split, behind)
        return messages


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
