"""All formats, by identifier."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.formats.avro import AvroFormat
from headwater.formats.base import Format
from headwater.formats.canal_json import CanalJsonFormat
from headwater.formats.confluent.debezium import DebeziumAvroFormat
from headwater.formats.confluent.format import AvroConfluentFormat
from headwater.formats.csv import CsvFormat
from headwater.formats.debezium_json import DebeziumJsonFormat
from headwater.formats.json import JsonFormat
from headwater.formats.maxwell_json import MaxwellJsonFormat
from headwater.formats.ogg_json import OggJsonFormat
from headwater.formats.raw import RawFormat

__all__ = ["FORMATS"]

_ALL: tuple[Format, ...] = (
    JsonFormat(),
    CsvFormat(),
    AvroFormat(),
    AvroConfluentFormat(),
    RawFormat(),
    DebeziumJsonFormat(),
    DebeziumAvroFormat(),
    CanalJsonFormat(),
    MaxwellJsonFormat(),
    OggJsonFormat(),
)

FORMATS: Mapping[str, Format] = {f.identifier: f for f in _ALL}
