"""`properties.*` are settings of Kafka's Java client. This is what they are called by librdkafka, which reads and
writes topics: the same name, another name, nothing (they are the other side's business), or a reason to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headwater.errors import ValidationError
from headwater.key_stores import key_store, trust_store

__all__ = ["admin_settings", "consumer_settings", "login", "producer_settings", "untranslatable"]

_DEFAULTS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # where Java clients put a key
    "enable.idempotence": True,
    # Idempotence alone does not keep messages. A broker takes a batch of any sequence number from a producer that it
    # has no state of, as in a topic that was just created: if the first batch fails there ('not leader') and the second
    # one, already under way, does not, librdkafka takes the first one for delivered, and it is lost (KAFKA-15591).
    "max.in.flight.requests.per.connection": 1,
    "linger.ms": 5,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 128 << 10,
    "message.timeout.ms": 120_000,
    # A transaction may have to wait until the one before it is completed: not for long.
    "retry.backoff.ms": 20,
    "delivery.report.only.error": True,
    "log_level": 0,  # what matters arrives as an error
}
_READER_DEFAULTS: Mapping[str, Any] = {
    # The client insists on a group; it neither joins it nor commits to it.
    "group.id": "headwater",
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,  # the last offsets of a range may hold nothing
    "auto.offset.reset": "error",
    "isolation.level": "read_uncommitted",  # Java's default, not librdkafka's
    "fetch.wait.max.ms": 10,
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 8 << 10,  # what lies beyond the range is fetched in vain
    "log_level": 0,
}
_SAME = {  # in both directions
    name: name
    for name in (
        "bootstrap.servers",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "connections.max.idle.ms",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.mechanism",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
    )
} | {"receive.buffer.bytes": "socket.receive.buffer.bytes", "send.buffer.bytes": "socket.send.buffer.bytes"}
_WRITING = {
    **_SAME,
    "acks": "acks",
    "batch.size": "batch.size",
    "compression.type": "compression.type",
    "delivery.timeout.ms": "message.timeout.ms",
    "enable.idempotence": "enable.idempotence",
    "linger.ms": "linger.ms",
    "max.request.size": "message.max.bytes",
    "request.timeout.ms": "request.timeout.ms",
    "retries": "retries",
    "transaction.timeout.ms": "transaction.timeout.ms",
}
_READING = {
    **_SAME,
    "check.crcs": "check.crcs",
    "fetch.max.bytes": "fetch.max.bytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "fetch.min.bytes": "fetch.min.bytes",
    "isolation.level": "isolation.level",
    "max.partition.fetch.bytes": "fetch.message.max.bytes",
}
# Understood, but not handed to a client: the driver acts on them, or they are about membership in a group, which no
# client here joins.
_ELSEWHERE = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "commit.offsets.on.checkpoint",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "exclude.internal.topics",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "max.block.ms",
        "max.in.flight.requests.per.connection",  # an upper limit: one is within it
        "max.poll.interval.ms",
        "max.poll.records",
        "partition.assignment.strategy",
        "session.timeout.ms",
        "socket.connection.setup.timeout.max.ms",
    }
)
_REFUSED = {
    "transactional.id": "use 'sink.transactional-id-prefix'",
    "partitioner.class": "use 'sink.partitioner'",
    "interceptor.classes": "it names Java classes",
}
_STORES = re.compile(r"ssl\.(truststore|keystore)\.(location|password|type|certificates|certificate\.chain|key)")
_MODULES = re.compile(r"(?:Plain|Scram)LoginModule\b")
_JAAS_VALUE = r'\b{}\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]+))'


def untranslatable(properties: Mapping[str, str]) -> dict[str, str]:
    """Property → why it cannot be used where librdkafka writes, as the end of a sentence. Opens no file."""
    problems = {key: _REFUSED[key] for key in properties if key in _REFUSED}
    for key in properties:
        if not _is_known(key) and key not in problems:
            problems[key] = "it has no counterpart in librdkafka"
    jaas = properties.get("sasl.jaas.config")
    if jaas is not None and (not _MODULES.search(jaas) or _jaas(jaas) is None):
        problems["sasl.jaas.config"] = "only PlainLoginModule and ScramLoginModule with username and password are known"
    protocol = properties.get("ssl.endpoint.identification.algorithm", "")
    if protocol.lower() not in {"", "https", "none"}:
        problems["ssl.endpoint.identification.algorithm"] = "it must be 'https' or empty"
    return problems


def producer_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """All settings of a librdkafka producer for these properties; stores are read and checked."""
    for key, reason in untranslatable(properties).items():
        raise ValidationError(f"'properties.{key}' cannot be used by this sink: {reason}.")
    settings = {_WRITING[key]: value for key, value in properties.items() if key in _WRITING}
    if "buffer.memory" in properties:
        settings["queue.buffering.max.kbytes"] = str(max(1, int(properties["buffer.memory"]) >> 10))
    return {**_DEFAULTS, **settings, **_login(properties), **_tls(properties)}


def consumer_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """All settings of a librdkafka consumer that assigns partitions to itself; stores are read and checked."""
    for key, reason in untranslatable(properties).items():
        raise ValidationError(f"'properties.{key}' cannot be used by librdkafka: {reason}.")
    settings = {_READING[key]: value for key, value in properties.items() if key in _READING}
    return {**_READER_DEFAULTS, **settings, **_login(properties), **_tls(properties)}


def admin_settings(properties: Mapping[str, str]) -> dict[str, Any]:
    """All settings of a librdkafka client that only asks questions; stores are read and checked."""
    for key, reason in untranslatable(properties).items():
        raise ValidationError(f"'properties.{key}' cannot be used by librdkafka: {reason}.")
    settings = {_SAME[key]: value for key, value in properties.items() if key in _SAME}
    return {"client.id": "headwater-admin", "log_level": 0, **settings, **_login(properties), **_tls(properties)}


def _is_known(key: str) -> bool:
    # One set of properties serves a table's reader and its writer, so each ignores what is for the other.
    known = key in _WRITING or key in _READING or key in _ELSEWHERE or key.startswith(("metrics.", "metric."))
    return known or key in _SECURITY or _STORES.fullmatch(key) is not None


_SECURITY = frozenset(
    {"buffer.memory", "sasl.jaas.config", "ssl.key.password", "ssl.endpoint.identification.algorithm"}
)


def login(properties: Mapping[str, str]) -> tuple[str, str] | None:
    """User and password, if there are such."""
    jaas = properties.get("sasl.jaas.config")
    return _jaas(jaas) if jaas is not None else None


def _login(properties: Mapping[str, str]) -> dict[str, str]:
    found = login(properties)
    return {"sasl.username": found[0], "sasl.password": found[1]} if found is not None else {}


def _jaas(line: str) -> tuple[str, str] | None:
    """User and password of a JAAS line."""
    values = []
    for name in ("username", "password"):
        match = re.search(_JAAS_VALUE.format(name), line)
        if match is None:
            return None
        values.append(re.sub(r"\\(.)", r"\1", match[1]) if match[1] is not None else match[2])
    return values[0], values[1]


def _tls(properties: Mapping[str, str]) -> dict[str, str]:
    settings = {}
    algorithm = properties.get("ssl.endpoint.identification.algorithm")
    if algorithm is not None:
        # Java turns the check of host names off by an empty value, librdkafka by 'none'.
        settings["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    return {**settings, **trust_store(properties), **key_store(properties)}
