"""What can be asked of a broker before Spark starts: does it answer, and are the topics there?"""

from __future__ import annotations

from collections.abc import Collection

from headwater.catalog.connector import JobStart
from headwater.catalog.tables import Table
from headwater.connectors.kafka.clients.admin import Admin
from headwater.connectors.kafka.clients.rdkafka_admin import RdKafkaAdmin
from headwater.connectors.kafka.clients.requests import CONNECT_SECONDS
from headwater.connectors.kafka.clients.settings import admin_settings
from headwater.connectors.kafka.table.options import PROPERTIES
from headwater.errors import ValidationError

__all__ = ["check_sink_topics", "check_source_topics"]


def check_source_topics(table: Table, start: JobStart, made: Collection[str]) -> None:
    """A new job must find its topics, except those that are `made` by other jobs of the script; one that continues
    knows from its checkpoint what to do without them."""
    admin = _admin(table)
    if admin is None:
        return
    topics = [topic for topic in table.options.strings("topic") if topic not in made]
    dead_letters = table.options.string("scan.dead-letter.topic")
    if start == "new":
        admin.partitions(topics)
        if dead_letters:
            admin.partitions([dead_letters], "scan.dead-letter.topic")
    else:
        admin.partition_counts(topics)


def check_sink_topics(table: Table) -> None:
    admin = _admin(table)
    if admin is None:
        return
    topics = table.options.strings("topic")
    if table.options.flag("sink.topic.create"):
        admin.partition_counts(topics)
    else:
        admin.partitions(topics)


def _admin(table: Table) -> Admin | None:
    """None where only the JVM's client understands the properties: it comes with Spark."""
    properties = table.options.family(PROPERTIES)
    try:
        settings = admin_settings(properties)
    except ValidationError:
        return None
    return RdKafkaAdmin(None, properties, settings, CONNECT_SECONDS)
