"""`kafka`: a topic as a log of rows. `upsert-kafka`: a topic as a table, keyed by the primary key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from headwater.connectors.base import Accepts, Connector, Emits, MetadataKey
from headwater.connectors.kafka.layout import format_prefix, value_side
from headwater.connectors.kafka.metadata import KAFKA_METADATA
from headwater.connectors.kafka.options import KAFKA_OPTIONS, UPSERT_KAFKA_OPTIONS
from headwater.connectors.kafka.rules import sink_problems, source_problems, table_problems
from headwater.formats.base import ChangelogFormat, all_formats
from headwater.options.base import Option
from headwater.options.problems import Problem
from headwater.options.reading import under

if TYPE_CHECKING:
    from headwater.catalog.tables import Table

__all__ = ["KAFKA", "UPSERT_KAFKA"]


_TAKES = {"append": Accepts.APPEND, "upsert": Accepts.UPSERT, "retract": Accepts.ALL}


class _AnyKafka(Connector):
    metadata = KAFKA_METADATA
    accepts = Accepts.UPSERT

    def more_options(self, given: Mapping[str, str]) -> tuple[Option, ...]:
        """Those of the formats that are chosen."""
        declared = {option.key for option in self.options}
        chosen = [
            (key, given[key]) for key in ("format", "value.format", "key.format") if key in declared & given.keys()
        ]
        formats = all_formats()
        return tuple(
            option
            for key, name in chosen
            if name in formats
            for option in under(format_prefix(key, name), formats[name].options)
        )

    def metadata_of(self, given: Mapping[str, str]) -> tuple[MetadataKey, ...]:
        found = all_formats().get(given.get("format", given.get("value.format", "")))
        more = found.metadata if isinstance(found, ChangelogFormat) else ()
        return (*self.metadata, *(MetadataKey(f"value.{m.key}", m.type, m.meaning) for m in more))

    def takes(self, table: Table) -> Accepts:
        if isinstance(value_side(table).format, ChangelogFormat):
            return Accepts.ALL
        written = table.options.string("sink.changelog") or ("upsert" if table.primary_key else "append")
        return _TAKES[written]

    def validate(self, table: Table) -> list[Problem]:
        return table_problems(table)

    def validate_source(self, table: Table) -> list[Problem]:
        return source_problems(table)

    def validate_sink(self, table: Table) -> list[Problem]:
        return sink_problems(table)


_FLUSH = "Sink buffer flush is only supported in upsert-kafka."


class KafkaConnector(_AnyKafka):
    identifier = "kafka"
    summary = "A topic as a log of rows; with a PRIMARY KEY it can be written by updating queries."
    options = KAFKA_OPTIONS
    emits = Emits.APPEND
    not_here: ClassVar[Mapping[str, str]] = {"sink.buffer-flush.max-rows": _FLUSH, "sink.buffer-flush.interval": _FLUSH}

    def gives(self, table: Table) -> Emits:
        return Emits.APPEND if value_side(table).format.insert_only else Emits.CHANGES


class UpsertKafkaConnector(_AnyKafka):
    identifier = "upsert-kafka"
    summary = "A topic as a table: the newest message of a key is its row, a null value deletes it."
    options = UPSERT_KAFKA_OPTIONS
    emits = Emits.UPSERT
    not_here: ClassVar[Mapping[str, str]] = {
        "format": "An upsert-kafka table has 'key.format' and 'value.format'.",
        "key.fields": "The key of an upsert-kafka table is its PRIMARY KEY.",
        "sink.semantic": "Use 'sink.delivery-guarantee'.",
    }


KAFKA = KafkaConnector()
UPSERT_KAFKA = UpsertKafkaConnector()
