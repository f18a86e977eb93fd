"""Whether any broker of a table answers, asked beside a batch that takes long."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from headwater.connectors.kafka.clients.client_errors import LastError
from headwater.connectors.kafka.clients.settings import admin_settings
from headwater.errors import ValidationError
from headwater.options.secrets import hidden_in

__all__ = ["unanswered"]

_SECONDS = 3.0


def unanswered(table: str, properties: Mapping[str, str]) -> str:
    """A sentence if no broker answers in time; '' if one does, or where only a client of the JVM could ask."""
    try:
        settings = admin_settings(properties)
    except ValidationError:
        return ""
    last = LastError()
    # A client of its own: those of the job are not for two threads, and one that waits for a dead connection may be
    # slow to notice that the broker is back.
    client = AdminClient({**settings, "error_cb": last})  # type: ignore[dict-item]
    try:
        client.list_topics(timeout=_SECONDS)
    except KafkaException as error:
        client.poll(0)
        reason = (last.last or error.args[0]).str()
        servers = properties.get("bootstrap.servers", "")
        return f"The broker of table '{table}' at {servers} does not answer: {hidden_in(reason, properties)}."
    return ""
