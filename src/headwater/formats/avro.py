"""Avro records without a header, with the schema that Flink derives from the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from headwater.formats.avro_columns import avro_reader
from headwater.formats.avro_json import avro_json_decoder, avro_json_encoder
from headwater.formats.avro_schema import AvroSchema, in_column_type
from headwater.formats.base import Decoder, FormatField
from headwater.formats.sqltext import field, once, options_map, text
from headwater.options.base import Option
from headwater.options.types import BOOL, STRING, enum

__all__ = ["NOT_YET", "AvroFormat"]

_ENCODINGS = ("binary", "json")

NOT_YET = {
    "codec": "'avro.codec' is for files. The compression of messages is 'properties.compression.type'.",
}


class AvroFormat:
    identifier = "avro"
    summary = "One Avro record per message, with a schema derived from the table."
    insert_only = True
    decodes_null = False
    options: tuple[Option, ...] = (
        Option("encoding", enum(_ENCODINGS), "Avro's binary or its JSON encoding.", "binary", choices=_ENCODINGS),
        Option("codec", STRING, "Compression of Avro files."),
        Option(
            "timestamp_mapping.legacy",
            BOOL,
            "Whether a TIMESTAMP is stored as Avro's timestamp-millis, as Flink always did; if not, it is "
            "local-timestamp-millis, and TIMESTAMP_LTZ can be stored too, as timestamp-millis.",
            True,
        ),
    )

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = [NOT_YET["codec"]] if options["codec"] is not None else []
        return problems + AvroSchema(bool(options["timestamp_mapping.legacy"])).problems(fields)

    def decoder(
        self,
        payload: str,
        alias: str,
        fields: Sequence[FormatField],
        wanted: Sequence[str],
        options: Mapping[str, Any],
    ) -> Decoder:
        schema = AvroSchema(bool(options["timestamp_mapping.legacy"]))
        by_name = {f.name: f for f in fields}
        if options["encoding"] == "json":
            return avro_json_decoder(payload, alias, [by_name[w] for w in wanted])
        reader = {
            "mode": "PERMISSIVE",
            "datetimeRebaseMode": "CORRECTED",
            "avroSchema": dumps(_wrapped(schema.record([by_name[w] for w in wanted]))),
        }
        return Decoder(
            parsed=once(
                f"from_avro({payload}, {text(dumps(_wrapped(schema.record(fields))))}, {options_map(reader)}).row"
            ),
            columns=tuple(in_column_type(field(alias, w), by_name[w].type) for w in wanted),
            reader=avro_reader(fields, [by_name[w] for w in wanted]),
            error=f"IF({alias} IS NULL, 'Failed to deserialize Avro record: it is not what the table says.', NULL)",
        )

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        if options["encoding"] == "json":
            return avro_json_encoder(fields, columns)
        schema = AvroSchema(bool(options["timestamp_mapping.legacy"]))
        pairs = ", ".join(f"{text(f.name)}, {column}" for f, column in zip(fields, columns, strict=True))
        return f"to_avro(named_struct({pairs}), {text(dumps(schema.record(fields)))})"


def _wrapped(record: dict[str, Any]) -> dict[str, Any]:
    """A record around the record, which takes no bytes. Spark answers a message that cannot be read with a record of
    NULLs; with this one around, the record that is meant is NULL then."""
    return {"type": "record", "name": "message", "fields": [{"name": "row", "type": record}]}
