"""What consumer groups have committed, asked without joining them."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException

from headwater.connectors.kafka.clients.admin import Isolation
from headwater.connectors.kafka.clients.client_errors import COORDINATOR_MOVES, LastError, translated
from headwater.connectors.kafka.write.librdkafka import (
    CONSUMER,
    Partition,
    PartitionList,
    library,
    new_client,
    reported,
)
from headwater.protocol.batch_ids import BatchId

__all__ = ["NOTHING_COMMITTED", "Committed", "committed_offset"]

_PAUSE_SECONDS = 0.1
_ERROR = 0x8  # RD_KAFKA_EVENT_ERROR
_NO_CONSUMER_CLOSE = 0x8  # RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE: there is no group to leave


@dataclass(frozen=True)
class Committed:
    """The newest offset a consumer group has committed, and the string that was committed with it."""

    offset: int
    metadata: str

    @property
    def id(self) -> BatchId:
        """As the batch that a writer has committed."""
        return BatchId(self.offset, self.metadata)


NOTHING_COMMITTED = Committed(-1, "")


def committed_offset(
    settings: Mapping[str, Any], group: str, topics: Sequence[str], seconds: float, isolation: Isolation
) -> Committed:
    """The newest offset of a group in partition 0 of these topics. With 'read_committed' the answer waits for
    transactions that are under way; without, it is as of now.

    A consumer asks, which knows how to look for the coordinator of its group. The admin request that would list all
    topics of any group is not safe: the whole process ends where a broker answers that it is not the coordinator, as
    one does that was just started (librdkafka issue 5040).
    """
    asking = _Asking({**settings, "group.id": group, "isolation.level": isolation})
    try:
        return asking.newest(topics, seconds)
    except KafkaException as error:
        raise translated(error, f"a question about group '{group}'", asking.errors()) from error
    finally:
        asking.close()


class _Asking:
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._lib = library()
        self._handle = new_client(CONSUMER, settings, _ERROR)

    def newest(self, topics: Sequence[str], seconds: float) -> Committed:
        """librdkafka waits for a coordinator, but answers at once what one says that was just elected or has moved."""
        deadline = time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            try:
                return self._ask(topics, left)
            except KafkaException as error:
                if error.args[0].code() not in COORDINATOR_MOVES or left < _PAUSE_SECONDS:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _ask(self, topics: Sequence[str], seconds: float) -> Committed:
        offsets = self._lib.rd_kafka_topic_partition_list_new(len(topics))
        try:
            for topic in topics:
                self._lib.rd_kafka_topic_partition_list_add(offsets, topic.encode(), 0)
            code = self._lib.rd_kafka_committed(self._handle, offsets, int(seconds * 1000))
            if code:
                raise reported(code)
            found = PartitionList.from_address(offsets)
            entries = [found.elements[i] for i in range(found.count)]
            return max(map(_read, entries), key=lambda one: one.offset, default=NOTHING_COMMITTED)
        finally:
            self._lib.rd_kafka_topic_partition_list_destroy(offsets)

    def errors(self) -> LastError:
        """The last thing the client complained about."""
        last, events = LastError(), self._lib.rd_kafka_queue_get_main(self._handle)
        while (event := self._lib.rd_kafka_queue_poll(events, 0)) is not None:
            if self._lib.rd_kafka_event_type(event) == _ERROR:
                code, text = self._lib.rd_kafka_event_error(event), self._lib.rd_kafka_event_error_string(event)
                last(reported(code, text).args[0])
            self._lib.rd_kafka_event_destroy(event)
        self._lib.rd_kafka_queue_destroy(events)
        return last

    def close(self) -> None:
        self._lib.rd_kafka_destroy_flags(self._handle, _NO_CONSUMER_CLOSE)


def _read(entry: Partition) -> Committed:
    if entry.err:
        raise reported(entry.err)
    text = ctypes.string_at(entry.metadata, entry.metadata_size) if entry.metadata else b""
    # For a group that has committed nothing librdkafka answers -1001, its constant for an invalid offset.
    return Committed(max(entry.offset, NOTHING_COMMITTED.offset), text.decode(errors="replace"))
