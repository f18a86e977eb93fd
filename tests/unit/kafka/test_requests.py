"""When a request is given up: no connection is possible, or nothing has arrived in time."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from headwater.connectors.kafka.clients.client_errors import LastError
from headwater.connectors.kafka.clients.requests import answered
from headwater.connectors.kafka.clients.settings import admin_settings

REFUSED = "127.0.0.1:1"
LONG = 60.0


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and says nothing, as in a handshake that takes long."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def failure(servers: str, seconds: float, connect_seconds: float) -> KafkaError:
    last_error = LastError()
    settings = {**admin_settings({"bootstrap.servers": servers}), "error_cb": last_error}
    client: Any = AdminClient(settings)
    with pytest.raises(KafkaException) as raised:
        answered(client, client.describe_cluster(request_timeout=LONG), last_error, seconds, connect_seconds)
    error: KafkaError = raised.value.args[0]
    return error


@pytest.mark.parametrize(
    ("servers", "code"),
    [(REFUSED, KafkaError._TRANSPORT), ("nowhere.invalid:9092", KafkaError._RESOLVE)],
)
def test_connections_that_fail_are_the_error(servers: str, code: int) -> None:
    assert failure(servers, LONG, 0.1).code() == code


def test_connections_that_fail_may_be_waited_for() -> None:
    assert failure(REFUSED, 0.5, LONG).code() == KafkaError._TIMED_OUT


def test_a_broker_that_is_slow_is_waited_for(silent: str) -> None:
    assert failure(silent, 0.5, 0.1).code() == KafkaError._TIMED_OUT
    assert failure(f"{REFUSED},{silent}", 0.5, 0.1).code() == KafkaError._TIMED_OUT


def test_a_connection_under_way_is_not_a_failed_one() -> None:
    last_error = LastError()
    last_error(KafkaError(KafkaError._TRANSPORT))
    last_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert last_error.unreachable_seconds == 0.0
    last_error(KafkaError(KafkaError._TRANSPORT))
    assert last_error.unreachable_seconds > 0.0
    last_error.forget()
    last_error(KafkaError(KafkaError._TRANSPORT))
    assert last_error.unreachable_seconds == 0.0
