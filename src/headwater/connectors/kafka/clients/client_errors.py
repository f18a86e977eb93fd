"""What librdkafka's errors mean for a person: refused for good, or likely to pass."""

from __future__ import annotations

import time

from confluent_kafka import KafkaError, KafkaException

from headwater.errors import HeadwaterError, JobError, KafkaRefusedError, KafkaUnavailableError

__all__ = ["COORDINATOR_MOVES", "LastError", "is_refusal", "translated"]

_REFUSED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "Ask for the ACL READ on a topic that is read, WRITE on one that is "
    "written, or use another user.",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "'exactly-once' notes its progress in groups that start with the prefix of "
    "its transactions: ask for the ACL READ on them, and on the topic.",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "Ask for the ACLs WRITE and DESCRIBE on transactional ids that "
    "start with 'sink.transactional-id-prefix'.",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "Ask for the ACL IDEMPOTENT_WRITE on the cluster.",
    KafkaError._AUTHENTICATION: "Check user name, password and 'properties.sasl.*'.",
    KafkaError._SSL: "Check the certificates and 'properties.ssl.*'.",
    KafkaError.SASL_AUTHENTICATION_FAILED: "Check user name, password and 'properties.sasl.*'.",
}
_FOR_GOOD = {
    KafkaError.INVALID_TRANSACTION_TIMEOUT: "Lower 'properties.transaction.timeout.ms', or raise the broker's "
    "'transaction.max.timeout.ms'.",
    KafkaError.MSG_SIZE_TOO_LARGE: "Raise 'properties.max.request.size' and the topic's 'max.message.bytes'.",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "Create the topic, or correct the table's 'topic' option.",
    KafkaError._UNKNOWN_TOPIC: "Create the topic, or correct the table's 'topic' option.",
    KafkaError._INVALID_ARG: "Check the 'properties.*' options.",
    KafkaError._UNKNOWN_PARTITION: "The partitioner chose a partition that the topic does not have.",
    KafkaError.INVALID_TIMESTAMP: "The topic refuses the time that the row gives.",
}
# The coordinator of a group or a transaction is being elected, or reads its log: the same question has an answer soon.
COORDINATOR_MOVES = frozenset(
    {KafkaError.NOT_COORDINATOR, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.COORDINATOR_LOAD_IN_PROGRESS}
)
_NO_CONNECTION = frozenset({KafkaError._TRANSPORT, KafkaError._RESOLVE})


class LastError:
    """Listens to a client: what it complained about last explains a call that then runs into its time limit.
    `unreachable_seconds`: for how long every connection that was tried has failed."""

    def __init__(self) -> None:
        self.last: KafkaError | None = None
        self.unreachable_seconds = 0.0
        self._down_since: float | None = None

    def forget(self) -> None:
        """What was wrong earlier explains nothing now."""
        self.last, self.unreachable_seconds, self._down_since = None, 0.0, None

    def __call__(self, error: KafkaError) -> None:
        # 'All brokers down' follows every other error, and explains none.
        if self.last is None or error.code() != KafkaError._ALL_BROKERS_DOWN:
            self.last = error
        # It comes once, and not while any broker is still being connected to. A failure after it says that this has not
        # changed; without one, a connection may be under way.
        if self._down_since is None and error.code() == KafkaError._ALL_BROKERS_DOWN:
            self._down_since = time.monotonic()
        elif self._down_since is not None and error.code() in _NO_CONNECTION:
            self.unreachable_seconds = time.monotonic() - self._down_since


def is_refusal(error: KafkaError) -> bool:
    """Whether waiting is of no use."""
    return error.code() in _REFUSED


def translated(error: KafkaException, doing: str, last_error: LastError | None = None) -> HeadwaterError:
    """A failure of the client as one of ours; `doing` says at what. What may pass by itself is KafkaUnavailable."""
    cause: KafkaError = error.args[0]
    last = last_error.last if last_error is not None else None
    if last is not None and last.code() in _REFUSED and cause.code() == KafkaError._TIMED_OUT:
        cause = last
    detail = f"{cause.name()}: {cause.str()}"
    if cause.code() in _REFUSED:
        return KafkaRefusedError(f"The broker refused {doing}.", detail=detail, hint=_REFUSED[cause.code()])
    if cause.code() in _FOR_GOOD:
        return JobError(f"Kafka does not take {doing}.", detail=detail, hint=_FOR_GOOD[cause.code()])
    if last is not None and last is not cause:
        detail += f"\nThe client said before: {last.name()}: {last.str()}"
    hint = "Check that the brokers run and can be reached from all executors."
    return KafkaUnavailableError(f"The broker does not answer: {doing}.", detail=detail, hint=hint)
