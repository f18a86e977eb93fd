"""All formats, by identifier."""

from __future__ import annotations

from collections.abc import Mapping

from headwater.formats.avro import AvroFormat
from headwater.formats.base import Format
from headwater.formats.csv import CsvFormat
from headwater.formats.json import JsonFormat
from headwater.formats.raw import RawFormat

__all__ = ["FORMATS"]

_ALL: tuple[Format, ...] = (JsonFormat(), CsvFormat(), AvroFormat(), RawFormat())

FORMATS: Mapping[str, Format] = {f.identifier: f for f in _ALL}
