"""Settings of the producer: those of the table, Java's behaviour, and what a guarantee needs."""

from __future__ import annotations

import pytest

from headwater.connectors.kafka.write.settings import transactional, writer_settings

SERVERS = {"bootstrap.servers": "127.0.0.1:9092"}


def test_defaults_give_way_to_the_tables_properties() -> None:
    defaults = writer_settings(SERVERS, "at-least-once")
    assert (defaults["reconnect.backoff.ms"], defaults["retry.backoff.ms"]) == (20, 5)
    assert defaults["message.max.bytes"] == 1_048_576
    given = {"reconnect.backoff.ms": "7", "retry.backoff.ms": "8", "max.request.size": "9000"}
    own = writer_settings({**SERVERS, **given}, "at-least-once")
    assert (own["reconnect.backoff.ms"], own["retry.backoff.ms"], own["message.max.bytes"]) == ("7", "8", "9000")


@pytest.mark.parametrize(
    ("properties", "guarantee", "idempotent"),
    [
        ({}, "at-least-once", True),
        ({}, "exactly-once", True),
        ({}, "none", False),
        ({"acks": "all"}, "at-least-once", True),
        ({"acks": "1"}, "at-least-once", False),
        ({"acks": "0"}, "at-least-once", False),
        ({"retries": "0"}, "at-least-once", False),
        ({"max.in.flight.requests.per.connection": "6"}, "at-least-once", False),
        ({"max.in.flight.requests.per.connection": "5"}, "at-least-once", True),
        ({"enable.idempotence": "false"}, "at-least-once", False),
    ],
)
def test_idempotence_is_given_up_where_java_gives_it_up(
    properties: dict[str, str], guarantee: str, idempotent: bool
) -> None:
    settings = writer_settings({**SERVERS, **properties}, guarantee)
    assert str(settings["enable.idempotence"]).lower() == str(idempotent).lower()
    own = properties.get("max.in.flight.requests.per.connection", 1)
    assert settings["max.in.flight.requests.per.connection"] == (1 if idempotent else own)


def test_none_does_not_wait_for_replicas() -> None:
    assert writer_settings({**SERVERS, "acks": "all"}, "none")["acks"] == "1"


def test_a_message_is_given_up_before_its_transaction() -> None:
    settings = writer_settings(SERVERS, "exactly-once")
    assert transactional(settings, 5_000)["message.timeout.ms"] == 5_000
    assert transactional(settings, 300_000)["message.timeout.ms"] == settings["message.timeout.ms"]
    assert transactional(settings, 300_000)["transaction.timeout.ms"] == 300_000
