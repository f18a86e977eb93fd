"""Questions to the brokers, asked with librdkafka."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import (
    Consumer,
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
)
from confluent_kafka import TopicPartition as RdPartition
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec
from confluent_kafka.admin import NewTopic as RdTopic

from headwater.connectors.kafka.clients.admin import (
    TIMEOUT_SECONDS,
    Admin,
    Bounds,
    Isolation,
    Look,
    NewTopic,
    Offsets,
    TopicPartition,
)
from headwater.connectors.kafka.clients.broker_errors import UnknownTopicError, client_error
from headwater.connectors.kafka.clients.client_errors import LastError, is_refusal
from headwater.connectors.kafka.clients.requests import answered
from headwater.errors import HeadwaterError
from headwater.options.secrets import hidden_in

__all__ = ["RdKafkaAdmin"]

_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_EARLIEST: Any = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LEVELS = {"read_committed": IsolationLevel.READ_COMMITTED, "read_uncommitted": IsolationLevel.READ_UNCOMMITTED}
_Question = tuple[Any, Isolation]
_BEHIND_ALL = -1  # the answer about a time that is later than all messages
_STALE_PAUSES = (0.0, 0.1, 0.5)
_REQUEST_SECONDS = 8.0
# How long the leader of a partition is waited for before it is looked up again, and how long that may take.
_LEADER_SECONDS = 3.0
_LOOK_UP_SECONDS = 5.0


class _StaleLeaderError(Exception):
    """A question went to a broker that does not lead the partition, does so in a newer epoch, or does not answer."""


class RdKafkaAdmin(Admin):
    """Commits of group offsets are not waited for: what became of one is seen when the next one is sent.
    `connect_seconds`: how long connections may fail before a request does."""

    def __init__(
        self,
        spark: Any,
        properties: Mapping[str, str],
        settings: Mapping[str, Any],
        connect_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        super().__init__(spark, properties)
        self._connect_seconds = connect_seconds
        self._properties = properties
        self._settings = dict(settings)
        self._last_error = LastError()
        self._committing: tuple[str, Future[Any]] | None = None
        try:
            self._client: Any = AdminClient({**settings, "error_cb": self._last_error})  # type: ignore[dict-item]
        except KafkaException as error:
            raise self._translated(error, "connect") from None

    def close(self) -> None:
        """What was committed last shall arrive."""
        if self._committing is not None:
            with suppress(HeadwaterError):
                self._answer(self._committing[1], self._committing[0])

    def all_topics(self) -> list[str]:
        try:
            found = self._client.list_topics(timeout=TIMEOUT_SECONDS).topics
        except KafkaException as error:
            self._client.poll(0)
            raise self._translated(error, "all topics") from None
        # The name does not say it: users have topics that begin with '__', too. Only the description tells Kafka's own.
        described = self._described([name for name in found if name.startswith("__")])
        own = {name for name, topic in described.items() if topic.is_internal}
        return [name for name in found if name not in own]

    def partition_counts(self, topics: Collection[str]) -> dict[str, int]:
        return {name: len(topic.partitions) for name, topic in self._described(topics).items()}

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        return {name: str(topic.topic_id) for name, topic in self._described(topics).items()}

    def cluster_id(self) -> str:
        return str(self._cluster().cluster_id)

    def look(self, partitions: Collection[TopicPartition], isolation: Isolation, bounds: Bounds) -> Look:
        """All requests are under way at the same time."""
        wanted = list(partitions)
        questions: list[_Question] = [(_LATEST, isolation)]
        if bounds == "both":
            questions.append((_EARLIEST, "read_uncommitted"))
        described = self._describe(sorted({topic for topic, _ in wanted}))
        latest, *earlier = self._asked(wanted, questions)
        ids = {name: str(topic.topic_id) for name, topic in self._there(described).items()}
        return Look(latest, earlier[0] if earlier else {}, ids)

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        return self._asked(list(partitions), [(_EARLIEST, "read_uncommitted")])[0]

    def latest(self, partitions: Iterable[TopicPartition], isolation: Isolation = "read_uncommitted") -> Offsets:
        return self._asked(list(partitions), [(_LATEST, isolation)])[0]

    def at_time(self, partitions: Iterable[TopicPartition], millis: int) -> Offsets:
        found = self._asked(list(partitions), [(OffsetSpec.for_timestamp(millis), "read_uncommitted")])[0]
        missing = [tp for tp, offset in found.items() if offset == _BEHIND_ALL]
        return {**found, **(self.latest(missing) if missing else {})}

    def committed(self, group: str, partitions: Collection[TopicPartition]) -> Offsets:
        """A consumer asks that does not join. The admin request for this ends the whole process where a broker answers
        that it is not the coordinator, as one does that was just started (librdkafka issue 5040)."""
        own = {"group.id": group, "enable.auto.commit": False, "isolation.level": "read_uncommitted"}
        consumer = Consumer({**self._settings, **own, "error_cb": self._last_error})
        try:
            found = consumer.committed([RdPartition(*tp) for tp in partitions], timeout=TIMEOUT_SECONDS)
        except KafkaException as error:
            raise self._translated(self._refusal(group) or error, group) from None
        finally:
            consumer.close()
        return {(tp.topic, tp.partition): tp.offset for tp in found if tp.offset >= 0}

    def _refusal(self, group: str) -> KafkaException | None:
        """A consumer that may not use its group only runs into its time limit; this request says why."""
        try:
            self._client.describe_consumer_groups([group], request_timeout=_REQUEST_SECONDS)[group].result()
        except KafkaException as error:
            return error if is_refusal(error.args[0]) else None
        return None

    def commit(self, group: str, offsets: Offsets) -> None:
        """Raises what became of the commit before."""
        before, self._committing = self._committing, None
        if before is not None:
            self._answer(before[1], before[0])
        wanted = [RdPartition(topic, partition, offset) for (topic, partition), offset in offsets.items()]
        if not wanted:
            return
        asked = [ConsumerGroupTopicPartitions(group, wanted)]
        [answer] = self._client.alter_consumer_group_offsets(asked, request_timeout=_REQUEST_SECONDS).values()
        self._committing = group, answer

    def create(self, topics: Collection[NewTopic]) -> None:
        asked = [RdTopic(t.name, t.partitions, t.replicas, config=dict(t.config)) for t in topics]
        answers = self._client.create_topics(asked, request_timeout=_REQUEST_SECONDS)
        for name, answer in answers.items():
            self._answer(answer, name, tolerated=frozenset({KafkaError.TOPIC_ALREADY_EXISTS}))

    def topic_setting(self, topic: str, key: str) -> str | None:
        return self._setting(ConfigResource.Type.TOPIC, topic, key)

    def broker_setting(self, key: str) -> str | None:
        return self._setting(ConfigResource.Type.BROKER, str(self._cluster().nodes[0].id), key)

    def _cluster(self) -> Any:
        return self._answer(self._client.describe_cluster(request_timeout=_REQUEST_SECONDS), "the cluster")

    def _setting(self, kind: Any, name: str, key: str) -> str | None:
        asked = [ConfigResource(kind, name)]
        [answer] = self._client.describe_configs(asked, request_timeout=_REQUEST_SECONDS).values()
        entries = self._answer(answer, name, tolerated=_NOT_TO_BE_SEEN)
        entry = entries.get(key) if entries is not None else None
        return None if entry is None else str(entry.value)

    def _asked(self, partitions: list[TopicPartition], questions: Sequence[_Question]) -> list[Offsets]:
        """The answers to all questions, which are asked at the same time. The client remembers who leads a partition,
        and goes on asking that broker when it has stopped, for a quarter of an hour: where there is no answer, or
        another broker leads, the leaders are looked up, and the new ones asked."""
        for pause in _STALE_PAUSES:
            try:
                answers = [self._listed(partitions, *question, _LEADER_SECONDS) for question in questions]
                return [self._offsets(answer, _STALE) for answer in answers]
            except _StaleLeaderError:
                time.sleep(pause)
                self._look_for_leaders({topic for topic, _ in partitions})
        last = [self._listed(partitions, *question, _REQUEST_SECONDS) for question in questions]
        try:
            return [self._offsets(answer, frozenset()) for answer in last]
        except _StaleLeaderError:
            unanswered = KafkaException(KafkaError(KafkaError._TIMED_OUT))
            raise self._translated(unanswered, ", ".join(sorted({topic for topic, _ in partitions}))) from None

    def _look_for_leaders(self, topics: Collection[str]) -> None:
        """Without any broker the client only says that nobody leads; this request says why."""
        for topic in topics:
            try:
                self._client.list_topics(topic, timeout=_LOOK_UP_SECONDS)
            except KafkaException as error:
                self._client.poll(0)
                raise self._translated(error, topic) from None

    def _listed(
        self, partitions: Iterable[TopicPartition], spec: Any, isolation: Isolation, seconds: float
    ) -> dict[TopicPartition, Future[Any]]:
        level = _LEVELS[isolation]
        asked = {RdPartition(*tp): spec for tp in partitions}
        if not asked:
            return {}
        answers = self._client.list_offsets(asked, isolation_level=level, request_timeout=seconds)
        return {(tp.topic, tp.partition): answer for tp, answer in answers.items()}

    def _offsets(self, answers: Mapping[TopicPartition, Future[Any]], tolerated: frozenset[int]) -> Offsets:
        about = ", ".join(sorted({topic for topic, _ in answers}))
        found = {tp: self._answer(answer, about, tolerated) for tp, answer in answers.items()}
        # Of several leaders one may not answer: its partitions then have no error, but an offset that is none (-1001).
        # Taken for the end of a partition, it would say that all messages are gone.
        if any(answer is None or answer.offset < _BEHIND_ALL for answer in found.values()):
            raise _StaleLeaderError
        return {tp: int(answer.offset) for tp, answer in found.items()}

    def _describe(self, topics: Collection[str]) -> dict[str, Future[Any]]:
        if not topics:
            return {}
        asked = TopicCollection(list(topics))
        answers: dict[str, Future[Any]] = self._client.describe_topics(asked, request_timeout=_REQUEST_SECONDS)
        return answers

    def _described(self, topics: Collection[str]) -> dict[str, Any]:
        """Those that exist."""
        return self._there(self._describe(topics))

    def _there(self, answers: Mapping[str, Future[Any]]) -> dict[str, Any]:
        found = {}
        for name, answer in answers.items():
            try:
                found[name] = self._answer(answer, name)
            except UnknownTopicError:
                continue
        return found

    def _answer(self, future: Future[Any], about: str, tolerated: frozenset[int] = frozenset()) -> Any:
        """What a request gave; None if it failed with one of the `tolerated` codes."""
        try:
            return answered(self._client, future, self._last_error, TIMEOUT_SECONDS, self._connect_seconds)
        except KafkaException as error:
            cause: KafkaError = error.args[0]
            if cause.code() in tolerated:
                return None
            raise self._translated(error, about) from None

    def _translated(self, error: KafkaException, about: str) -> HeadwaterError:
        cause: KafkaError = error.args[0]
        last, self._last_error.last = self._last_error.last, None
        # A timeout names no cause; what the client complained about before it does.
        chain = [cause]
        if last is not None and last.code() != cause.code() and cause.code() in _VAGUE:
            chain.append(last)
        named = [(_NAMES.get(e.code(), e.name()), hidden_in(e.str(), self._properties)) for e in chain]
        return client_error(named, about, self._servers)


_STALE = frozenset(
    {
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError._NOENT,  # "No leaders found"
        KafkaError._TIMED_OUT,  # of a broker that has stopped, as of one that is slow
    }
)
_VAGUE = frozenset({KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN})
_NOT_TO_BE_SEEN = frozenset({KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED})
_NAMES: Mapping[int, str] = {
    # librdkafka's code → the name that `broker_errors` knows it by
    KafkaError._AUTHENTICATION: "SaslAuthenticationException",
    KafkaError.SASL_AUTHENTICATION_FAILED: "SaslAuthenticationException",
    KafkaError.UNSUPPORTED_SASL_MECHANISM: "UnsupportedSaslMechanismException",
    KafkaError._SSL: "SslAuthenticationException",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "TopicAuthorizationException",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "GroupAuthorizationException",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "TransactionalIdAuthorizationException",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "ClusterAuthorizationException",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "UnknownTopicOrPartitionException",
    KafkaError._UNKNOWN_TOPIC: "UnknownTopicOrPartitionException",
    KafkaError._UNKNOWN_PARTITION: "UnknownTopicOrPartitionException",
    KafkaError.TOPIC_EXCEPTION: "InvalidTopicException",
    KafkaError._TIMED_OUT: "TimeoutException",
    KafkaError.REQUEST_TIMED_OUT: "TimeoutException",
    KafkaError._TRANSPORT: "DisconnectException",
    KafkaError._ALL_BROKERS_DOWN: "DisconnectException",
    KafkaError._RESOLVE: "DisconnectException",
    KafkaError.COORDINATOR_NOT_AVAILABLE: "CoordinatorNotAvailableException",
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS: "CoordinatorLoadInProgressException",
    KafkaError.NOT_COORDINATOR: "NotCoordinatorException",
    KafkaError.LEADER_NOT_AVAILABLE: "LeaderNotAvailableException",
    KafkaError.NOT_LEADER_FOR_PARTITION: "NotLeaderOrFollowerException",
    KafkaError.NOT_ENOUGH_REPLICAS: "NotEnoughReplicasException",
    KafkaError._INVALID_ARG: "ConfigException",
}
