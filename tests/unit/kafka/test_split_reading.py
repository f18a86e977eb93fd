"""What a consumer delivers belongs to the splits that are read, or to none of them."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message

from headwater.connectors.kafka.read.consumer import SplitConsumer, _Reading
from headwater.connectors.kafka.read.splits import KafkaSplit

SPLIT = KafkaSplit("t", 1, 10, 13)


def _message(topic: str, partition: int, offset: int, error: int | None = None) -> Message:
    problem = None if error is None else KafkaError(error)
    return Message(topic=topic, partition=partition, offset=offset, value=b"x", error=problem)


def test_messages_of_an_assignment_before_are_not_taken() -> None:
    reading = _Reading([SPLIT], "fail")
    stale = [_message("t", 0, 12), _message("other", 1, 11)]

    assert reading.taken(stale) == []
    assert reading.places == {SPLIT: 10}

    mine = [_message("t", 1, offset) for offset in (10, 11)]
    assert reading.taken([*stale, *mine]) == [(SPLIT, mine)]
    assert reading.places == {SPLIT: 12}


def test_the_end_of_another_partition_is_not_that_of_this_one() -> None:
    reading, consumer = _Reading([SPLIT], "fail"), SplitConsumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    try:
        consumer._hear(_message("t", 0, 13, KafkaError._PARTITION_EOF), reading)
        assert not reading.is_done

        consumer._hear(_message("t", 1, 13, KafkaError._PARTITION_EOF), reading)
        assert reading.is_done
    finally:
        consumer.close()
