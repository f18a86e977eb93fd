"""`kafka`: a topic as a log of rows. `upsert-kafka`: a topic as a table, keyed by the primary key."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from headwater.catalog.connector import Accepts, Connector, Emits, JobStart, MetadataKey
from headwater.connectors.kafka.clients.settings import untranslatable
from headwater.connectors.kafka.table.ignored import options_without_effect
from headwater.connectors.kafka.table.layout import format_prefix, value_side
from headwater.connectors.kafka.table.metadata import KAFKA_METADATA
from headwater.connectors.kafka.table.options import KAFKA_OPTIONS, PROPERTIES, UPSERT_KAFKA_OPTIONS
from headwater.connectors.kafka.table.rules import sink_problems, source_problems, table_problems
from headwater.formats.base import ChangelogFormat, all_formats
from headwater.options.base import Option
from headwater.options.parsing import under
from headwater.options.problems import Problem
from headwater.options.types import STRING

if TYPE_CHECKING:
    from headwater.catalog.tables import Table
    from headwater.connectors.runtime import LocalAggregation, RuntimeContext, Sink, Source

__all__ = ["KAFKA", "UPSERT_KAFKA"]


_TAKES = {"append": Accepts.APPEND, "upsert": Accepts.UPSERT, "retract": Accepts.ALL}


class _AnyKafka(Connector):
    metadata = KAFKA_METADATA
    accepts = Accepts.UPSERT

    def more_options(self, given: Mapping[str, str]) -> tuple[Option, ...]:
        """Those of the formats that are chosen. Of a format that does not exist any: it is what is reported."""
        declared = {option.key for option in self.options}
        chosen = [
            (key, given[key]) for key in ("format", "value.format", "key.format") if key in declared & given.keys()
        ]
        formats = all_formats()
        found: list[Option] = []
        for key, name in chosen:
            prefix = format_prefix(key, name)
            # Otherwise each of its options would be reported as unknown, and bury the one mistake: the name of the
            # format.
            any_option = Option(f"{prefix}*", STRING, "Of a format that is not known.", prefix=True)
            found += under(prefix, formats[name].options) if name in formats else [any_option]
        return tuple(found)

    def metadata_of(self, given: Mapping[str, str]) -> tuple[MetadataKey, ...]:
        found = all_formats().get(given.get("format", given.get("value.format", "")))
        more = found.metadata if isinstance(found, ChangelogFormat) else ()
        return (*self.metadata, *(MetadataKey(f"value.{m.key}", m.type, m.meaning) for m in more))

    def without_effect(self, given: Mapping[str, str]) -> Mapping[str, str]:
        return options_without_effect(given)

    def is_bounded(self, table: Table) -> bool:
        return bool(table.options["scan.bounded.mode"] != "unbounded")

    def until_now(self, table: Table) -> Mapping[str, str]:
        return {"scan.bounded.mode": "latest-offset"}

    def takes(self, table: Table) -> Accepts:
        if isinstance(value_side(table).format, ChangelogFormat):
            return Accepts.ALL
        written = table.options.string("sink.changelog") or ("upsert" if table.primary_key else "append")
        return _TAKES[written]

    def fallback(self, table: Table) -> str:
        refused = untranslatable(table.options.family(PROPERTIES))
        return (
            f"Spark's Kafka client, because of {', '.join(f'properties.{key}' for key in refused)}" if refused else ""
        )

    def reading(self, table: Table, columns: Sequence[str], fields: Mapping[str, Sequence[str]]) -> str:
        from headwater.connectors.kafka.read.payloads import decoding_described

        return f"{decoding_described(table, columns, fields)}, by {self.fallback(table) or 'librdkafka'}"

    def pre_aggregates(
        self,
        table: Table,
        columns: Sequence[str],
        fields: Mapping[str, Sequence[str]],
        local: LocalAggregation | None,
    ) -> bool:
        from headwater.connectors.kafka.read.payloads import tolerates_bad_records, with_fields
        from headwater.connectors.kafka.read.scan import TableScan

        scan = TableScan(with_fields(table, fields), tuple(columns), tolerates_bad_records(table), placed=local is None)
        if local is not None:
            return scan.local(local) is not None
        return scan.read_columns() is not None and not self.fallback(table)

    def topics(self, table: Table) -> tuple[str, ...]:
        return tuple(table.options.strings("topic"))

    def check_source(self, table: Table, start: JobStart, made: Collection[str]) -> None:
        from headwater.connectors.kafka.clients.preflight import check_source_topics

        check_source_topics(table, start, made)

    def check_sink(self, table: Table) -> None:
        from headwater.connectors.kafka.clients.preflight import check_sink_topics

        check_sink_topics(table)

    def source(self, table: Table, context: RuntimeContext) -> Source:
        # Imported late, as below: checking a script needs neither Spark nor a Kafka client.
        from headwater.connectors.kafka.read.source import KafkaSource

        return KafkaSource(table, context)

    def sink(self, table: Table, context: RuntimeContext) -> Sink:
        from headwater.connectors.kafka.write.sink import KafkaSink

        return KafkaSink(table, context)

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
