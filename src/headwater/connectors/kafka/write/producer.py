"""A producer of librdkafka with *events* instead of callbacks: nothing in C ever calls into Python.

Only failed deliveries are reported ('delivery.report.only.error'): a message that arrives costs nothing here, and one
that does not is found by `flush`. The same producer writes with and without transactions.

librdkafka (2.10 to 2.16) gives up for good the brokers that an answer about metadata does not name, and a broker that
is shutting down names none, not even itself. Such a client has lost its brokers: it never connects again, and some of
its calls never return (librdkafka issue 5511). `_raise_if_lost` notices, `commit_with_transaction` does not wait for
such a call, and whoever uses the producer opens a new one.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from headwater.connectors.kafka.clients.client_errors import LastError, is_refusal
from headwater.connectors.kafka.write.committed_offsets import Committed
from headwater.connectors.kafka.write.librdkafka import (
    PRODUCER,
    Partition,
    checked,
    kafka_error,
    library,
    new_client,
    reported,
)

__all__ = ["Producer"]

_EVENTS = 0x1 | 0x8  # RD_KAFKA_EVENT_DR, RD_KAFKA_EVENT_ERROR
_DELIVERY, _ERROR = 0x1, 0x8
_PURGE_ALL = 0x1 | 0x2  # RD_KAFKA_PURGE_F_QUEUE, RD_KAFKA_PURGE_F_INFLIGHT
_TEXT = 512
_SERVE_MILLIS = 100
_ANSWER_MILLIS = 500
_LOOK_MILLIS = 1_000
# Not at once: a broker that is just starting may break off a handshake, too.
_REFUSED_SECONDS = 2.0
# How long a client goes without an answer before a new one is asked; and then how long it may take to reconnect, which
# it tries every second.
_SILENT_SECONDS = 5.0
_RECONNECT_MILLIS = 5_000
_LATE_SECONDS = 2.0


class Producer:
    """One client. Not for several threads at a time. `last_error` is what it complained about last."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._lib = library()
        self._settings = settings
        self.last_error = LastError()
        self._silent_since: float | None = None
        self._under_way: Future[KafkaError | None] | None = None  # a call that may not have returned
        self._failure: KafkaException | None = None
        self._topics: dict[str, int] = {}
        # Reports of success would be one event per message, which Python would have to take from the queue.
        self.handle = new_client(PRODUCER, {**settings, "delivery.report.only.error": True}, _EVENTS)
        # Everything arrives in the main queue, which only `serve` takes from: without that, delivery reports would pile
        # up and messages would count as under way for good.
        self._events = self._lib.rd_kafka_queue_get_main(self.handle)

    def connect(self, topic: str, seconds: float) -> None:
        """Returns when a broker answers.

        The first answer comes from a bootstrap server, whose connection the client then gives up for one to the same
        broker by its id. Without a second question, opening a transaction would find no broker and wait half a second.
        """
        handle = self.topic(topic, seconds)
        self._ask_partitions(handle, seconds)

    def topic(self, name: str, seconds: float) -> int:
        """The handle of a topic whose partitions are known: before that, messages for one of them never leave."""
        if name not in self._topics:
            handle = self._lib.rd_kafka_topic_new(self.handle, name.encode(), None)
            try:
                self._ask_partitions(handle, seconds)
            except KafkaException:
                self._lib.rd_kafka_topic_destroy(handle)
                raise
            self._topics[name] = handle
        return self._topics[name]

    def _ask_partitions(self, topic: int, seconds: float) -> None:
        self.last_error.forget()
        self._silent_since = None
        began = time.monotonic()
        while True:
            answer = ctypes.c_void_p()
            # In short calls: librdkafka answers a refused login only as an event, which nobody would hear while a long
            # call waits.
            code = self._lib.rd_kafka_metadata(self.handle, 0, topic, ctypes.byref(answer), _ANSWER_MILLIS)
            self.serve(0)
            if not code:
                self._lib.rd_kafka_metadata_destroy(answer)
                return
            last, passed = self.last_error.last, time.monotonic() - began
            # Not at once: while brokers restart, one of them may refuse what another accepts a moment later.
            if last is not None and is_refusal(last) and passed > _REFUSED_SECONDS:
                raise KafkaException(last)
            if passed > seconds:
                raise reported(code)
            self._raise_if_lost()

    @property
    def waiting(self) -> int:
        """How many messages have neither arrived nor failed yet."""
        return int(self._lib.rd_kafka_outq_len(self.handle))

    def serve(self, seconds: float) -> None:
        """Take all events that are there; wait for the first of them so long."""
        millis = int(seconds * 1000)
        while (event := self._lib.rd_kafka_queue_poll(self._events, millis)) is not None:
            kind = self._lib.rd_kafka_event_type(event)
            if kind == _DELIVERY:
                self._note_failures(event)
            elif kind == _ERROR:
                code, text = self._lib.rd_kafka_event_error(event), self._lib.rd_kafka_event_error_string(event)
                self.last_error(self._underlying(code, text))
            self._lib.rd_kafka_event_destroy(event)
            millis = 0

    def _note_failures(self, event: int) -> None:
        while (message := self._lib.rd_kafka_event_message_next(event)) is not None:
            # Reading the structure through ctypes field by field costs as much as sending the message did.
            code = ctypes.c_int.from_address(message).value  # the first member of rd_kafka_message_t
            # The first failure is the cause; those behind it fail because it did.
            if code and self._failure is None:
                # Not `rd_kafka_message_errstr`: of a producer's message, that is its value.
                text = self._lib.rd_kafka_message_produce_errstr(message)
                self._failure = KafkaException(self._underlying(code, text))

    def _underlying(self, code: int, text: bytes | None) -> KafkaError:
        """What was fatal to the client is the cause of all that it reports after it: an event only says that there was
        something fatal, and messages that it drops then only say that they were dropped."""
        buffer = ctypes.create_string_buffer(_TEXT)
        if fatal := self._lib.rd_kafka_fatal_error(self.handle, buffer, _TEXT):
            code, text = fatal, buffer.value
        error: KafkaError = reported(code, text).args[0]
        return error

    def refused(self, code: int) -> KafkaException:
        """Why a message was not even taken: an earlier message that failed, if there is one, is the cause."""
        self.serve(0)
        return self._failure or KafkaException(self._underlying(code, None))

    def flush(self, seconds: float) -> None:
        """Returns when all messages are with the broker, as 'acks' defines it; raises if one of them is not."""
        # In short calls, because a flush of the library reports nothing until it ends, not even a refused login.
        began = looked = time.monotonic()
        self._silent_since = None
        while self._lib.rd_kafka_flush(self.handle, _SERVE_MILLIS):
            self.serve(0)
            now = time.monotonic()
            if now - began > seconds and (left := self.waiting):
                self.purge()
                raise reported(KafkaError._TIMED_OUT, f"{left} messages were not taken".encode())
            if now - looked > _LOOK_MILLIS / 1000:
                self._look_for_brokers()
                looked = time.monotonic()
        self.serve(0)
        self.raise_failure()

    def _look_for_brokers(self) -> None:
        """When all brokers were away, the client may wait for one without looking for it: it connects on demand, and
        where a partition has no leader nobody demands anything. A question for metadata does. Raises if the client has
        lost its brokers."""
        answered = self._answers(_ANSWER_MILLIS)
        self.serve(0)
        if answered:
            self._silent_since = None
        else:
            self._raise_if_lost()

    def _raise_if_lost(self) -> None:
        """After a question that was not answered."""
        now = time.monotonic()
        self._silent_since = self._silent_since or now
        if now - self._silent_since < _SILENT_SECONDS:
            return
        # The second question is for a client that would have connected by itself: the broker may have just come back.
        if self._new_client_answers() and not self._answers(_RECONNECT_MILLIS):
            raise reported(KafkaError._TRANSPORT, b"the client has lost its brokers, which answer to a new client")

    def _answers(self, millis: int) -> bool:
        """Whether a broker answers to this client in time."""
        answer = ctypes.c_void_p()
        topic = next(iter(self._topics.values()), None)
        if self._lib.rd_kafka_metadata(self.handle, 0, topic, ctypes.byref(answer), millis):
            return False
        self._lib.rd_kafka_metadata_destroy(answer)
        return True

    def _new_client_answers(self) -> bool:
        new = Producer({name: value for name, value in self._settings.items() if name != "transactional.id"})
        try:
            return new._answers(_LOOK_MILLIS)
        finally:
            new.close()

    def _resumed(self, call: Callable[[int, int], int | None], seconds: float) -> None:
        """A transactional call. One that runs into its time limit goes on in the background and is resumed by the same
        call, so it gets little time at once."""
        began = time.monotonic()
        self._silent_since = None
        while True:
            try:
                checked(call(self.handle, _LOOK_MILLIS))
                return
            except KafkaException as error:
                if error.args[0].code() != KafkaError._TIMED_OUT or time.monotonic() - began > seconds:
                    raise
            self._look_for_brokers()

    def raise_failure(self) -> None:
        """Raise for a message that failed, if there is one; what failed belongs to the call that sent it."""
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def purge(self) -> None:
        """Forget all messages that wait."""
        self._lib.rd_kafka_purge(self.handle, _PURGE_ALL)
        # A purge only marks messages; flushing makes the client report them, so that none is under way any more.
        self._lib.rd_kafka_flush(self.handle, 0)
        self.serve(0)
        self._failure = None

    def init_transactions(self, seconds: float) -> None:
        self._resumed(self._lib.rd_kafka_init_transactions, seconds)

    def begin_transaction(self) -> None:
        checked(self._lib.rd_kafka_begin_transaction(self.handle))

    def commit_transaction(self, seconds: float) -> None:
        self._resumed(self._lib.rd_kafka_commit_transaction, seconds)

    def abort_transaction(self, seconds: float) -> None:
        self._resumed(self._lib.rd_kafka_abort_transaction, seconds)

    def commit_with_transaction(self, group: str, topic: str, committed: Committed, seconds: float) -> None:
        """Make an offset of a group part of the current transaction. After a time-out the call may still be under way:
        the producer can then only be closed."""
        outcome: Future[KafkaError | None] = Future()

        def call() -> None:
            try:
                outcome.set_result(self._send_offset(group, topic, committed, seconds))
            except BaseException as error:  # noqa: BLE001 - raised by whoever waits for the outcome
                outcome.set_exception(error)

        # In a thread that can be left behind: librdkafka has a time limit for the answer to this request, but none for
        # finding the broker that it is for. A daemon, so that a worker process ends without it.
        threading.Thread(target=call, daemon=True).start()
        self._under_way = outcome
        wait([outcome], seconds + _LATE_SECONDS)
        if not outcome.done():
            raise reported(KafkaError._TIMED_OUT, b"the transaction did not start in time")
        self._under_way = None
        # The error is a value, raised here alone: an exception that is kept in the outcome would keep the frames that
        # it passed, and with them all that the task has read.
        if (failure := outcome.result()) is not None:
            raise KafkaException(failure)

    def _send_offset(self, group: str, topic: str, committed: Committed, seconds: float) -> KafkaError | None:
        offsets = self._lib.rd_kafka_topic_partition_list_new(1)
        members = self._lib.rd_kafka_consumer_group_metadata_new(group.encode())
        entry = Partition.from_address(self._lib.rd_kafka_topic_partition_list_add(offsets, topic.encode(), 0))
        text = ctypes.create_string_buffer(committed.metadata.encode())
        # Without the zero byte that ctypes adds to the buffer: it would become part of what is committed.
        entry.offset = committed.offset
        entry.metadata, entry.metadata_size = ctypes.addressof(text), len(text) - 1
        try:
            send = self._lib.rd_kafka_send_offsets_to_transaction
            return kafka_error(send(self.handle, offsets, members, int(seconds * 1000)))
        finally:
            entry.metadata, entry.metadata_size = None, 0  # Python's memory: the library must not free it
            self._lib.rd_kafka_topic_partition_list_destroy(offsets)
            self._lib.rd_kafka_consumer_group_metadata_destroy(members)

    def close(self) -> None:
        """Give up what waits, and end the client's threads: at once, or when the call that is under way returns. If it
        never does, an idle client is left until the process ends; librdkafka has no way to end it."""
        if self._under_way is None:
            self._destroy()
        else:
            self._under_way.add_done_callback(lambda _: self._destroy())

    def _destroy(self) -> None:
        if self.handle:
            # In this order: librdkafka wants topics and queues destroyed before the client that they belong to.
            for topic in self._topics.values():
                self._lib.rd_kafka_topic_destroy(topic)
            self._topics = {}
            self.purge()
            self._lib.rd_kafka_queue_destroy(self._events)
            self._lib.rd_kafka_destroy(self.handle)
            self.handle = 0
