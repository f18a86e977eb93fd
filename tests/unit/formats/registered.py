"""Tables whose schemas are in the registry, with Confluent's own client as the other side."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from confluent_kafka.schema_registry import Schema, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from golden_changes import Changes, read
from golden_rows import Golden, decode, encode, literal
from pyspark.sql import SparkSession

from headwater.formats.base import (
    ChangelogFormat,
    FormatField,
    RegisteredFormat,
    RowChange,
    SchemaLocation,
    all_formats,
)
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type


def record(*fields: Any, name: str = "shop.Item") -> str:
    """A schema of fields given as (name, type) or (name, type, default)."""
    members = [{"name": f[0], "type": f[1], **({"default": f[2]} if len(f) > 2 else {})} for f in fields]
    return json.dumps({"type": "record", "name": name, "fields": members})


@dataclass(frozen=True)
class Registered:
    """One table: its columns, its format, and a topic of its own."""

    spark: SparkSession
    url: str
    columns: str
    format_name: str = "avro-confluent"
    given: dict[str, str] = field(default_factory=dict)
    topic: str = field(default_factory=lambda: f"t-{uuid.uuid4().hex[:8]}")

    @property
    def format(self) -> RegisteredFormat:
        found = all_formats()[self.format_name]
        assert isinstance(found, RegisteredFormat)
        return found

    @property
    def fields(self) -> tuple[FormatField, ...]:
        return tuple(FormatField(f.name, f.type) for f in parse_type(f"ROW<{self.columns}>").fields)

    @property
    def options(self) -> dict[str, Any]:
        values = parse_options(all_formats()[self.format_name].options, {"url": self.url, **self.given}, "table").values
        return self.format.located(values, {}, SchemaLocation((self.topic,), "value"))

    def read_as(self, columns: str, **given: str) -> Registered:
        """The same topic, declared otherwise; '-' in options is written as '_'."""
        return replace(self, columns=columns, given={k.replace("_", "-"): v for k, v in given.items()})

    def problems(self) -> list[str]:
        return all_formats()[self.format_name].validate(self.fields, self.options)

    def written(self, rows: list[Any]) -> list[bytes]:
        assert self.problems() == []
        return [m for m in encode(self.spark, self._golden(), rows) if m is not None]

    def changes(self, *pairs: tuple[list[Any] | None, list[Any] | None]) -> list[bytes]:
        """Messages about rows before and after."""
        assert isinstance(self.format, ChangelogFormat)
        found = []
        for pair in pairs:
            rows = [row and [literal(v, f.type) for v, f in zip(row, self.fields, strict=True)] for row in pair]
            sql = self.format.change_encoder(RowChange(self.fields, rows[0], rows[1]), self.options)
            found.append(bytes(self.spark.sql(f"SELECT {sql} AS m").collect()[0].m))
        return found

    def read(self, messages: list[bytes]) -> list[Any]:
        """Rows per message, or its error. Schemas that are met for the first time are asked for, as a job does."""
        assert self.problems() == []
        self.format.before_reading(self.options)
        self.format.learn(self.options, [message[:5] for message in messages])
        if isinstance(self.format, ChangelogFormat):
            return read(self.spark, Changes(self.format_name, "own", self.fields, self.options), messages)
        return decode(self.spark, self._golden(), messages)

    def _golden(self) -> Golden:
        return Golden(self.format_name, "own", self.fields, self.options, [], [], [], [])

    # The other side.

    @cached_property
    def client(self) -> SchemaRegistryClient:
        return SchemaRegistryClient({"url": self.url})

    @property
    def context(self) -> SerializationContext:
        return SerializationContext(self.topic, MessageField.VALUE)

    def produced(self, schema: str, *values: Any) -> list[bytes]:
        """Messages as another program writes them."""
        write = AvroSerializer(self.client, Schema(schema, "AVRO"))
        return [write(value, self.context) for value in values]

    def consumed(self, message: bytes) -> Any:
        """A message as another program reads it."""
        return self._deserializer(message, self.context)

    @cached_property
    def _deserializer(self) -> AvroDeserializer:
        return AvroDeserializer(self.client)

    def latest(self) -> Any:
        """The newest schema of the topic's values."""
        return json.loads(str(self.client.get_latest_version(f"{self.topic}-value").schema.schema_str))


MakeRegistered = Callable[..., Registered]
"""Makes a table with a topic of its own from its columns, its format and options, whose '-' are written as '_'."""
