"""Avro records without a header, with the schema that Flink derives from the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import dumps
from typing import Any

from headwater.formats.avro.columns import avro_reader
from headwater.formats.avro.json_encoding import avro_json_decoder, avro_json_encoder
from headwater.formats.avro.schema import AvroSchema, does_not_fit, in_column_type
from headwater.formats.base import Decoder, DecodeRequest, FormatField
from headwater.options.base import Option
from headwater.options.types import BOOL, STRING, enum
from headwater.sql.spark_text import field_of, once, string_literal, string_map

__all__ = ["AvroFormat"]

_FAILED = "Failed to deserialize Avro record"
_BROKEN = f"'{_FAILED}: it is not what the table says.'"
_ENCODINGS = ("binary", "json")

NOT_YET = {
    "codec": "'avro.codec' is for files. The compression of messages is 'properties.compression.type'.",
}


class AvroFormat:
    identifier = "avro"
    summary = "One Avro record per message, with a schema derived from the table."
    insert_only = True
    decodes_null = False
    not_yet = NOT_YET
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
        return problems + AvroSchema(legacy=bool(options["timestamp_mapping.legacy"])).problems(fields)

    def decoder(self, request: DecodeRequest) -> Decoder:
        schema = AvroSchema(legacy=bool(request.options["timestamp_mapping.legacy"]))
        wanted = request.wanted_fields
        if request.options["encoding"] == "json":
            return avro_json_decoder(request.payload, request.alias, wanted)
        reader = {
            "mode": "PERMISSIVE",
            # Avro counts days in the proleptic Gregorian calendar; by default Spark may shift those before 1582.
            "datetimeRebaseMode": "CORRECTED",
            "avroSchema": dumps(_wrapped(schema.record(wanted))),
        }
        written = string_literal(dumps(_wrapped(schema.record(request.fields))))
        return Decoder(
            parsed=once(f"from_avro({request.payload}, {written}, {string_map(reader)}).row"),
            columns=tuple(in_column_type(field_of(request.alias, f.name), f.type) for f in wanted),
            reader=avro_reader(request.fields, wanted),
            error=_error(request.alias, wanted),
        )

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        if options["encoding"] == "json":
            return avro_json_encoder(fields, columns)
        schema = AvroSchema(legacy=bool(options["timestamp_mapping.legacy"]))
        pairs = ", ".join(f"{string_literal(f.name)}, {column}" for f, column in zip(fields, columns, strict=True))
        return f"to_avro(named_struct({pairs}), {string_literal(dumps(schema.record(fields)))})"


def _error(alias: str, fields: Sequence[FormatField]) -> str:
    """SQL of what is wrong with a message, NULL if nothing is."""
    cases = [f"WHEN {alias} IS NULL THEN {_BROKEN}"]
    for f in fields:
        if (check := does_not_fit(field_of(alias, f.name), f.type)) is not None:
            problem = (
                f"Failed to deserialize Avro record: a number of column '{f.name}' does not fit {f.type.as_nullable()}."
            )
            cases.append(f"WHEN {check} THEN {string_literal(problem)}")
    return f"CASE {' '.join(cases)} END"


def _wrapped(record: dict[str, Any]) -> dict[str, Any]:
    """A record around the record, which takes no bytes. Spark answers a message that cannot be read with a record of
    NULLs; with this one around, the record that is meant is NULL then."""
    return {"type": "record", "name": "message", "fields": [{"name": "row", "type": record}]}
