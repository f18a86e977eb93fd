"""`properties.*` and the delivery guarantee → settings of a librdkafka producer that behaves as Java's would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import KafkaException

from headwater.connectors.kafka.clients.settings import producer_settings
from headwater.connectors.kafka.write.producer import Producer
from headwater.errors import ValidationError
from headwater.options.secrets import hidden_in

__all__ = ["acknowledgements", "transactional", "usable_settings", "writer_settings"]

_DEFAULTS = {
    # Opening a producer must be quick: librdkafka waits half of the first before it connects to a broker it has just
    # heard of, and the second before it asks again whether the transaction before is finished.
    "reconnect.backoff.ms": 20,
    "retry.backoff.ms": 5,
    "reconnect.backoff.max.ms": 1_000,  # as in Java
    # librdkafka (2.10 to 2.16) otherwise gives up the brokers it knows when none of them answers, and starts over; its
    # transactions then wait forever for a coordinator among those it gave up.
    "metadata.recovery.strategy": "none",
    # How long it believes in a topic that brokers do not know: a sink has seen them all when it started.
    "topic.metadata.propagation.max.ms": 10_000,
    "message.max.bytes": 1_048_576,  # as in Java; librdkafka's own is a little less
}
_JAVA_NAMES = {"message.max.bytes": "max.request.size"}
_MOST_IN_FLIGHT = 5
_ANY_MILLIS = 900_000


def usable_settings(properties: Mapping[str, str], guarantee: str) -> dict[str, Any]:
    """The settings; ValidationError if librdkafka cannot do as the properties say."""
    settings = writer_settings(properties, guarantee)
    once = {**transactional(settings, _ANY_MILLIS), "transactional.id": "checked"}
    try:
        Producer(once if guarantee == "exactly-once" else settings).close()  # asks no broker anything
    except KafkaException as error:
        text = hidden_in(error.args[0].str(), properties)
        raise ValidationError("'properties.*' cannot be used by librdkafka.", detail=text) from None
    return settings


def writer_settings(properties: Mapping[str, str], guarantee: str) -> dict[str, Any]:
    """All settings; stores of certificates are read and checked."""
    defaults = {k: v for k, v in _DEFAULTS.items() if _JAVA_NAMES.get(k, k) not in properties}
    settings = {**producer_settings(properties), **defaults, **acknowledgements(guarantee)}
    if "enable.idempotence" not in properties and _excludes_idempotence(properties):
        settings["enable.idempotence"] = False
    # Without idempotence nothing keeps a retry from putting older messages behind newer ones: whoever allows several
    # requests at a time accepts that.
    if not _is_true(settings["enable.idempotence"]) and "max.in.flight.requests.per.connection" in properties:
        settings["max.in.flight.requests.per.connection"] = properties["max.in.flight.requests.per.connection"]
    return settings


def acknowledgements(guarantee: str) -> dict[str, str]:
    """'none' does not wait for replicas. In the words that both clients have."""
    return {"acks": "1", "enable.idempotence": "false"} if guarantee == "none" else {}


def transactional(settings: Mapping[str, Any], longest_millis: int) -> dict[str, Any]:
    """The same for transactions of at most so long. A message must be given up before its transaction is."""
    patience = min(int(settings["message.timeout.ms"]), longest_millis)
    return {**settings, "message.timeout.ms": patience, "transaction.timeout.ms": longest_millis}


def _excludes_idempotence(properties: Mapping[str, str]) -> bool:
    """Java gives up idempotence silently for these; librdkafka would refuse to start."""
    in_flight = int(properties.get("max.in.flight.requests.per.connection", _MOST_IN_FLIGHT))
    return properties.get("acks") in ("0", "1") or properties.get("retries") == "0" or in_flight > _MOST_IN_FLIGHT


def _is_true(value: object) -> bool:
    return str(value).lower() == "true"
