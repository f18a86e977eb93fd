"""Waiting for the answer to a request of librdkafka's admin client, no longer than it can still come."""

from __future__ import annotations

import time
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from headwater.connectors.kafka.clients.client_errors import LastError, is_refusal

__all__ = ["CONNECT_SECONDS", "answered"]

CONNECT_SECONDS = 2.0
"""How long connections may fail before a command gives up: a wrong address is the usual cause, and a broker that is
only slow, in a TLS handshake or a login, lets them wait instead."""

_POLL_SECONDS = 0.05


def answered(client: Any, future: Future[Any], last_error: LastError, seconds: float, connect_seconds: float) -> Any:
    """What the request gave, within `seconds`, or a KafkaException. `last_error` listens to the client: a refused
    login, and connections that have failed for `connect_seconds`, are known before the request has waited in vain."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            # In short waits: what goes wrong with a connection is an event of the client, which only `poll` hands out.
            return future.result(_POLL_SECONDS)
        except KafkaException:
            client.poll(0)
            raise
        except NotYet:
            client.poll(0)
            last = last_error.last
            if last is not None and (is_refusal(last) or last_error.unreachable_seconds >= connect_seconds):
                raise KafkaException(last) from None
            if time.monotonic() > deadline:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
