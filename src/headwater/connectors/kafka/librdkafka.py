"""`properties.*` are settings of Kafka's Java client. This is what they are called by librdkafka, which writes
transactions: the same name, another name, nothing (they are a reader's business), or a reason to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from headwater.connectors.kafka.stores import key_store, trust_store
from headwater.errors import ValidationError

__all__ = ["producer_settings", "untranslatable"]

_DEFAULTS: Mapping[str, Any] = {
    "partitioner": "murmur2_random",  # where Java clients put a key
    "enable.idempotence": True,
    "linger.ms": 5,
    "batch.num.messages": 100_000,
    "queue.buffering.max.messages": 1_000_000,
    "queue.buffering.max.kbytes": 128 << 10,
    "message.timeout.ms": 120_000,
    "retry.backoff.ms": 20,  # two transactions in a row may have to wait for each other: not for long
    "delivery.report.only.error": True,
    "log_level": 0,  # what matters arrives as an error
}
_SAME = frozenset(
    {
        "acks",
        "batch.size",
        "bootstrap.servers",
        "client.dns.lookup",
        "client.id",
        "client.rack",
        "compression.type",
        "connections.max.idle.ms",
        "enable.idempotence",
        "linger.ms",
        "max.in.flight.requests.per.connection",
        "metadata.max.age.ms",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "request.timeout.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "sasl.mechanism",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "transaction.timeout.ms",
    }
)
_RENAMED = {
    "delivery.timeout.ms": "message.timeout.ms",
    "max.request.size": "message.max.bytes",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
}
_ELSEWHERE = frozenset(
    {
        "allow.auto.create.topics",
        "auto.commit.interval.ms",
        "auto.offset.reset",
        "check.crcs",
        "commit.offsets.on.checkpoint",
        "default.api.timeout.ms",
        "enable.auto.commit",
        "exclude.internal.topics",
        "group.id",
        "group.instance.id",
        "heartbeat.interval.ms",
        "isolation.level",
        "max.block.ms",
        "max.partition.fetch.bytes",
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
    settings = {key: value for key, value in properties.items() if key in _SAME}
    settings |= {_RENAMED[key]: value for key, value in properties.items() if key in _RENAMED}
    if "buffer.memory" in properties:
        settings["queue.buffering.max.kbytes"] = str(max(1, int(properties["buffer.memory"]) >> 10))
    return {**_DEFAULTS, **settings, **_login(properties), **_tls(properties)}


def _is_known(key: str) -> bool:
    known = key in _SAME or key in _RENAMED or key in _ELSEWHERE or key.startswith(("fetch.", "metrics.", "metric."))
    return known or key in _SECURITY or _STORES.fullmatch(key) is not None


_SECURITY = frozenset(
    {"buffer.memory", "sasl.jaas.config", "ssl.key.password", "ssl.endpoint.identification.algorithm"}
)


def _login(properties: Mapping[str, str]) -> dict[str, str]:
    jaas = properties.get("sasl.jaas.config")
    found = _jaas(jaas) if jaas is not None else None
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
        settings["ssl.endpoint.identification.algorithm"] = algorithm or "none"
    return {**settings, **trust_store(properties), **key_store(properties)}
