"""From a table in a plan to what reads or writes it while a job runs."""

from __future__ import annotations

from collections.abc import Callable

from headwater.catalog.tables import Table
from headwater.connectors.blackhole_sink import BlackholeSink
from headwater.connectors.datagen_source import DatagenSource
from headwater.connectors.io import IoContext, Sink, Source
from headwater.connectors.kafka.sink import KafkaSink
from headwater.connectors.kafka.source import KafkaSource
from headwater.connectors.print_sink import PrintSink
from headwater.connectors.values_source import ValuesSource
from headwater.plan.nodes import Scan, Values, Write

__all__ = ["open_sink", "open_source"]

_SOURCES: dict[str, Callable[[Table, IoContext], Source]] = {
    "kafka": KafkaSource,
    "upsert-kafka": KafkaSource,
    "datagen": DatagenSource,
}
_SINKS: dict[str, Callable[[Table, IoContext], Sink]] = {
    "kafka": KafkaSink,
    "upsert-kafka": KafkaSink,
    "print": PrintSink,
    "blackhole": BlackholeSink,
}


def open_source(node: Scan | Values, context: IoContext) -> Source:
    if isinstance(node, Values):
        return ValuesSource(node, context)
    return _SOURCES[node.table.connector.identifier](node.table, context.about(node.table))


def open_sink(node: Write, context: IoContext) -> Sink:
    return _SINKS[node.table.connector.identifier](node.table, context.about(node.table))
