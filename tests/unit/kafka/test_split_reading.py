"""What a consumer delivers belongs to the splits that are read, or to none of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from headwater.connectors.kafka.read import consumer as module
from headwater.connectors.kafka.read.consumer import SplitConsumer
from headwater.connectors.kafka.read.progress import OnDataLoss, ReadProgress
from headwater.connectors.kafka.read.splits import KafkaSplit
from headwater.errors import DataLossError, KafkaUnavailableError

SPLIT = KafkaSplit("t", 1, 10, 13)


def _message(topic: str, partition: int, offset: int, error: int | None = None) -> Message:
    problem = None if error is None else KafkaError(error)
    return Message(topic=topic, partition=partition, offset=offset, value=b"x", error=problem)


def test_messages_of_an_assignment_before_are_not_taken() -> None:
    reading = ReadProgress([SPLIT], "fail")
    stale = [_message("t", 0, 12), _message("other", 1, 11)]

    assert reading.taken(stale) == []
    assert reading.places == {SPLIT: 10}

    mine = [_message("t", 1, offset) for offset in (10, 11)]
    assert reading.taken([*stale, *mine]) == [(SPLIT, mine)]
    assert reading.places == {SPLIT: 12}


EOF = KafkaError._PARTITION_EOF
LOST = KafkaError._AUTO_OFFSET_RESET


@dataclass
class Metadata:
    """What a broker says of a topic."""

    partitions: Sequence[int] = (0, 1)
    error: KafkaError | None = None


@dataclass
class Client:
    """A log of one partition, and what an earlier assignment has left in the client's queue."""

    log: Sequence[int]
    end: int
    left_behind: list[Message] = field(default_factory=list)
    first: int = 0
    answers: Sequence[Metadata] = (Metadata(),)
    silent: bool = False
    assigned: int = 0
    _queue: list[Message] = field(default_factory=list)

    def assign(self, partitions: list[TopicPartition]) -> None:
        [partition] = partitions
        self.assigned += 1
        self._queue = [*self.left_behind]
        if self.silent:
            return
        if not self.first <= partition.offset <= self.end:
            self._queue.append(_message("t", 1, -1, LOST))
            return
        self._queue += [_message("t", 1, offset) for offset in self.log if offset >= partition.offset]
        self._queue.append(_message("t", 1, self.end, EOF))

    def unassign(self) -> None:
        self._queue = []

    incremental_assign = assign

    def incremental_unassign(self, _: list[TopicPartition]) -> None:
        self._queue = []

    def consume(self, count: int, _: float) -> list[Message]:
        taken, self._queue = self._queue[:count], self._queue[count:]
        # What was left behind is delivered once, however often partitions are assigned.
        self.left_behind = [m for m in self.left_behind if m not in taken]
        return taken

    def get_watermark_offsets(self, _: TopicPartition, timeout: float) -> tuple[int, int]:
        return self.first, self.end

    def list_topics(self, name: str, timeout: float) -> Client:
        return self

    @property
    def topics(self) -> dict[str, Metadata]:
        answer, *later = self.answers
        self.answers = later or [answer]
        return {"t": answer}

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "QUIET_SECONDS", 0.01)
    monkeypatch.setattr(module, "GONE_SECONDS", 0.2)
    monkeypatch.setattr(module, "GONE_LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "SILENCE_SECONDS", 1.0)


def _read(client: Client, split: KafkaSplit, on_loss: OnDataLoss = "fail") -> list[int]:
    def received() -> Iterator[int]:
        for runs in consumer.received([split], on_loss):
            for _, messages in runs:
                yield from (message.offset() or 0 for message in messages)

    consumer = SplitConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    real, consumer._consumer = consumer._consumer, client  # type: ignore[assignment]
    real.close()
    return list(received())


WHOLE = KafkaSplit("t", 1, 100, 120)
LEFT_BEHIND = {
    "its end": [_message("t", 1, 115, EOF)],
    "an end beyond the split": [_message("t", 1, 150, EOF)],
    "messages inside": [_message("t", 1, offset) for offset in range(110, 116)],
    "messages before and inside, with a gap": [_message("t", 1, offset) for offset in (97, 98, 99, 110, 111)],
    "messages at its end": [_message("t", 1, offset) for offset in range(118, 123)],
    "messages behind it": [_message("t", 1, offset) for offset in range(130, 140)],
    "messages and the end": [*(_message("t", 1, offset) for offset in range(140, 150)), _message("t", 1, 150, EOF)],
    "the same messages": [_message("t", 1, offset) for offset in range(100, 110)],
    "a lost position": [_message("t", 1, -1, LOST)],
    "the end of another partition": [_message("t", 0, 150, EOF)],
}


@pytest.mark.parametrize("on_loss", ["fail", "continue"])
@pytest.mark.parametrize("left_behind", LEFT_BEHIND.values(), ids=LEFT_BEHIND.keys())
def test_what_an_assignment_before_left_behind_costs_no_message(
    left_behind: list[Message], on_loss: OnDataLoss
) -> None:
    log = range(50, 150)
    assert _read(Client(log, 150, list(left_behind)), WHOLE, on_loss) == list(range(100, 120))


@pytest.mark.parametrize(
    "log",
    [[], [99, 120], [110], [100, 119], [101, 110], [100, 105, 106, 119, 130], range(90, 150)],
)
def test_offsets_without_messages_are_passed_over(log: Sequence[int]) -> None:
    assert _read(Client(log, 150), WHOLE) == [offset for offset in log if 100 <= offset < 120]


def test_a_gap_is_looked_at_twice_only_where_the_reading_begins() -> None:
    client = Client([100, 105, 118, 119], 120)
    _read(client, WHOLE)
    assert client.assigned == 1
    client = Client([103, 104, 110], 120)
    _read(client, WHOLE)
    assert client.assigned == 2


def test_messages_that_are_fetched_again_come_once() -> None:
    reading = ReadProgress([WHOLE], "fail")
    repeated = [_message("t", 1, offset) for offset in (100, 101, 103, 101, 103, 104)]
    [(_, found)] = reading.taken(repeated)
    assert [message.offset() for message in found] == [100, 101, 103, 104]
    assert reading.places == {WHOLE: 105}


def test_messages_that_are_gone_fail_or_are_passed_over() -> None:
    with pytest.raises(DataLossError):
        _read(Client(range(110, 150), 150, first=110), WHOLE)
    assert _read(Client(range(110, 150), 150, first=110), WHOLE, "continue") == list(range(110, 120))
    assert _read(Client(range(130, 150), 150, first=130), WHOLE, "continue") == []
    assert _read(Client(range(50), 50), WHOLE, "continue") == []  # of a topic that was created again


def test_a_position_that_is_lost_for_ever_although_it_is_there_fails() -> None:
    class Confused(Client):
        def assign(self, partitions: list[TopicPartition]) -> None:
            self._queue = [_message("t", 1, -1, LOST)]

        incremental_assign = assign

    with pytest.raises(KafkaUnavailableError, match="partition 1"):
        _read(Confused(range(150), 150), WHOLE, "continue")


UNKNOWN = Metadata((), KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
NOT_YET = {
    "no broker leads it": [Metadata((), KafkaError(KafkaError.LEADER_NOT_AVAILABLE))],
    "no partitions": [Metadata(())],
    "now and then": [UNKNOWN, UNKNOWN, Metadata()],
}


@pytest.mark.parametrize("answers", NOT_YET.values(), ids=NOT_YET.keys())
def test_a_topic_that_is_not_known_yet_is_not_gone(answers: list[Metadata]) -> None:
    class Forgetful(Client):
        @property
        def topics(self) -> dict[str, Metadata]:
            self.answers = [*self.answers[1:], self.answers[0]]
            return {"t": self.answers[-1]}

    unknown = [_message("t", 1, -1, KafkaError.UNKNOWN_TOPIC_OR_PART)]
    with pytest.raises(KafkaUnavailableError, match="no message arrived"):
        _read(Forgetful([], 0, unknown, answers=answers, silent=True), WHOLE, "continue")


@pytest.mark.parametrize("answer", [UNKNOWN, Metadata((0,))])
def test_a_partition_that_no_broker_knows_for_a_while_is_gone(answer: Metadata) -> None:
    assert _read(Client([], 0, answers=[answer], silent=True), WHOLE, "continue") == []
