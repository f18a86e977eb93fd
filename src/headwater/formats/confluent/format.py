"""avro-confluent: a byte 0, the number of a schema in a registry, and an Avro record of that schema."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from headwater.error_markers import UNKNOWN_SCHEMA
from headwater.errors import ValidationError
from headwater.formats.avro.schema import AvroSchema
from headwater.formats.base import Decoder, DecodeRequest, FormatField, RegisteredFormat, SchemaLocation
from headwater.formats.confluent.columns import RecordLayout, layout_of, registered_reader
from headwater.formats.confluent.options import (
    OPTIONS,
    PROPERTIES,
    registers,
    registry_settings,
    settings_problems,
)
from headwater.formats.confluent.reading import ReadColumn, RecordReading, SchemaMismatch, read_record
from headwater.formats.confluent.records import decode_value, encode_value
from headwater.formats.confluent.schemas import ReaderKey, Schemas, schemas_of
from headwater.formats.confluent.types import AvroType, Emitter, SchemaProblem, as_record, parse_schema, unwrapped
from headwater.formats.confluent.writing import derived_schema, write_record
from headwater.formats.strings import valid_text
from headwater.sql.spark_text import field_of, once, quote_name, string_literal, string_map

__all__ = ["AvroConfluentFormat", "RegisteredAvro"]


class RegisteredAvro(RegisteredFormat):
    """What both formats have in common. `whole` is the record of a message: of the table's columns, or around them."""

    identifier: str

    def whole(self, fields: Sequence[FormatField]) -> tuple[Sequence[FormatField], bool]:
        """The fields of a message, and whether its record is nullable in the schema that is derived."""
        return fields, False

    def located(
        self, options: Mapping[str, Any], properties: Mapping[str, str], location: SchemaLocation
    ) -> dict[str, Any]:
        return {**options, PROPERTIES: dict(properties), "location": location}

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = settings_problems(options) + _Types(legacy=False).problems(fields)
        if problems or options["schema"] is None:
            return problems
        message, _ = self.whole(fields)
        try:
            write_record(message, _given([f.name for f in message], options), ["NULL"] * len(message))
        except SchemaProblem as problem:
            return [f"The option 'schema' is no Avro schema. {problem}"]
        except SchemaMismatch as mismatch:
            return [self._unlike(str(mismatch))]
        return []

    def _unlike(self, mismatch: str) -> str:
        return f"Schema provided for '{self.identifier}' format does not match the table schema: {mismatch}"

    def sink_problems(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        if options["subject"] or options["subject-naming"] == "record" or len(_location(options).topics) == 1:
            return []
        return [
            f"Option '{self.identifier}.subject' is required for serialization, because the table has several topics."
        ]

    def before_reading(self, options: Mapping[str, Any]) -> None:
        self._schemas(options).look(_reader(options), self._subject_read(options))

    def before_writing(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> None:
        self._header(fields, options)

    def known(self, options: Mapping[str, Any]) -> tuple[object, ...]:
        used = self._schemas(options).used(_reader(options))
        # A schema that could not be used before and can now makes another plan, although its id was known.
        return tuple((schema_id, isinstance(schema, str)) for schema_id, schema in used.items())

    def learn(self, options: Mapping[str, Any], headers: Sequence[bytes]) -> None:
        ids = [int.from_bytes(header[1:], "big") for header in headers if len(header) == self.HEADER and header[0] == 0]
        self._schemas(options).learn(_reader(options), ids)

    def record_decoder(self, request: DecodeRequest) -> Decoder:
        """The fields of a message, of the table's only the wanted ones."""
        options = request.options
        names = [f.name for f in self.whole(request.fields)[0]]
        message, _ = self.whole(request.wanted_fields)
        given = _given(names, options) if options["schema"] is not None else None
        columns = _columns(message, given)
        # Schemas are part of the plan, not of the data: Spark's from_avro needs them as literals. A new one makes a
        # new plan.
        branches = _Branches(request.payload, request.alias)
        for schema_id, known in self._schemas(options).used(_reader(options)).items():
            if isinstance(known, str):
                branches.refuse(schema_id, known)
                continue
            writer = as_record(known, names)
            try:
                branches.add(schema_id, writer, read_record(writer, columns), layout_of(writer, columns))
            except SchemaMismatch as mismatch:
                branches.refuse(schema_id, f"Schema {schema_id} does not fit the table. {mismatch}")
        return branches.decoder(message)

    def record_encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        """`fields` are the table's, `columns` the values of the fields of a message."""
        message, _ = self.whole(fields)
        written = as_record(parse_schema(self._written(fields, options)), [f.name for f in message])
        schema, value = write_record(message, written, columns)
        return f"concat(X'{self._header(fields, options).hex()}', to_avro({value}, {string_literal(schema)}))"

    def decoded(self, data: bytes, options: Mapping[str, Any]) -> Any:
        """One message as JSON, as the schema says that it was written with. Raises ValueError if it has none."""
        if len(data) < self.HEADER or data[0] != 0:
            raise ValueError("no schema id")
        schemas, reader, schema_id = self._schemas(options), _reader(options), int.from_bytes(data[1:5], "big")
        if schema_id not in schemas.used(reader):
            schemas.learn(reader, [schema_id])
        writer = schemas.used(reader)[schema_id]
        if isinstance(writer, str):
            raise ValueError(writer)
        return decode_value(writer, data[self.HEADER :])

    def encoded(self, fields: Sequence[FormatField], options: Mapping[str, Any], value: Any) -> bytes:
        """The same backwards, with the schema that the table is written with."""
        return self._header(fields, options) + encode_value(parse_schema(self._written(fields, options)), value)

    def _header(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> bytes:
        schema, subject = self._written(fields, options), self._subject_written(fields, options)
        schemas = self._schemas(options)
        ask = schemas.registered if registers(options) else schemas.looked_up
        found = ask(subject, schema)
        if found is None:
            raise ValidationError(
                f"The schema to write is not registered under the subject '{subject}'.",
                detail=f"'auto-register' is 'false'. Schema: {schema}",
                hint="Register it, set 'schema' to one that is registered, or let it be registered: "
                f"'{self.identifier}.auto-register' = 'true'.",
            )
        return b"\0" + found.to_bytes(4, "big")

    def _written(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> str:
        if options["schema"] is not None:
            return str(options["schema"])
        message, nullable = self.whole(fields)
        return json.dumps(derived_schema(message, nullable=nullable), separators=(",", ":"))

    def _subject_written(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> str:
        return _subject(options, parse_schema(self._written(fields, options)))

    def _subject_read(self, options: Mapping[str, Any]) -> str:
        """Where versions may be looked for; '' if nobody knows."""
        named = options["subject"] or options["schema"] is not None or options["subject-naming"] == "topic"
        alone = options["subject"] or options["subject-naming"] == "record" or len(_location(options).topics) == 1
        if not (named and alone):
            return ""
        return _subject(options, parse_schema(options["schema"]) if options["schema"] is not None else None)

    def _schemas(self, options: Mapping[str, Any]) -> Schemas:
        return schemas_of(registry_settings(options))


class AvroConfluentFormat(RegisteredAvro):
    identifier = "avro-confluent"
    summary = "One Avro record per message, with its schema in a schema registry."
    options = OPTIONS
    insert_only = True
    decodes_null = False

    def decoder(self, request: DecodeRequest) -> Decoder:
        return self.record_decoder(request)

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        return self.record_encoder(fields, columns, options)


class _Types(AvroSchema):
    """Which columns there are in Avro: those of `avro`, and timestamps of up to 6 digits."""

    PRECISION = 6


class _Branches:
    """A decoder with a branch for every schema. First there is a record per schema, all NULL but the right one; then
    the columns are made of that."""

    def __init__(self, payload: str, alias: str) -> None:
        self._payload, self._alias = payload, alias
        self._head, self._records = f"{alias}_header", f"{alias}_records"
        self._reads: list[str] = []
        self._readings: list[tuple[int, RecordReading]] = []
        self._layouts: dict[int, RecordLayout] = {}
        self._refused: dict[int, str] = {}

    def add(self, schema_id: int, writer: AvroType, reading: RecordReading, layout: RecordLayout | None) -> None:
        # CORRECTED: Avro's days are those of the proleptic Gregorian calendar; Spark's default would shift dates
        # before 1582.
        reader = {"mode": "PERMISSIVE", "datetimeRebaseMode": "CORRECTED", "avroSchema": _wrapped(reading.schema)}
        body = f"substring({self._payload}, {RegisteredFormat.HEADER + 1})"
        read = f"from_avro({body}, {string_literal(_wrapped(Emitter().type(writer)))}, {string_map(reader)}).row"
        self._reads.append(f"'{_name(schema_id)}', IF({self._is(schema_id)}, {read}, NULL)")
        self._readings.append((schema_id, reading))
        if layout is not None:
            self._layouts[schema_id] = layout

    def refuse(self, schema_id: int, why: str) -> None:
        self._refused[schema_id] = why

    def decoder(self, fields: Sequence[FormatField]) -> Decoder:
        before = [(self._head, once(f"substring({self._payload}, 1, {RegisteredFormat.HEADER})"))]
        if self._reads:
            before.append((self._records, once(f"named_struct({', '.join(self._reads)})")))
        return Decoder(
            parsed=once(f"CASE {' '.join(self._cases(fields))} END"),
            columns=tuple(valid_text(field_of(self._alias, f.name), f.type) for f in fields),
            error=self._error(),
            before=tuple(before),
            reader=registered_reader(fields, self._layouts),
        )

    def _cases(self, fields: Sequence[FormatField]) -> list[str]:
        shape = ", ".join(f"{quote_name(f.name)}: {f.type.spark()}" for f in fields)
        cases = [f"WHEN {self._head} IS NULL OR NOT ({self._whole()}) THEN CAST(NULL AS STRUCT<{shape}>)"]
        for schema_id, reading in self._readings:
            row = self._row(schema_id)
            parts = (f"{sql} AS {quote_name(f.name)}" for f, sql in zip(fields, reading.columns(row), strict=True))
            cases.append(f"WHEN {self._is(schema_id)} THEN IF({row} IS NULL, NULL, struct({', '.join(parts)}))")
        if self._refused:
            cases.append(f"WHEN {self._head} IN ({', '.join(map(_literal, self._refused))}) THEN NULL")
        # An unknown id fails the attempt; the driver then asks the registry, plans again, and repeats the batch.
        return [*cases, f"ELSE raise_error(concat('{UNKNOWN_SCHEMA} ', {self._id()}))"]

    def _error(self) -> str:
        size = f"octet_length({self._payload})"
        first = f"hex(substring({self._payload}, 1, 1))"
        cases = [
            f"WHEN {size} = 0 THEN 'The message is empty: it has no schema id.'",
            f"WHEN {first} <> '00' THEN concat('It is no message with a schema id: its first byte is ', {first}, '.')",
            f"WHEN {size} < {RegisteredFormat.HEADER} THEN 'The message is cut off within its schema id.'",
        ]
        cases += [f"WHEN {self._is(i)} THEN {string_literal(why)}" for i, why in self._refused.items()]
        broken = f"concat('What follows the header is no record of schema ', {self._id()}, '.')"
        cases.append(f"WHEN {self._alias} IS NULL THEN {broken}")
        for schema_id, reading in self._readings:
            for label, wrong in reading.broken(self._row(schema_id)):
                fact = string_literal(
                    f"Field '{label}' has no value that the column can have, in a record of schema {schema_id}."
                )
                cases.append(f"WHEN {self._is(schema_id)} AND {wrong} THEN {fact}")
        return f"CASE {' '.join(cases)} END"

    def _whole(self) -> str:
        return f"octet_length({self._head}) = {RegisteredFormat.HEADER} AND substring({self._head}, 1, 1) = X'00'"

    def _is(self, schema_id: int) -> str:
        return f"{self._head} = {_literal(schema_id)}"

    def _row(self, schema_id: int) -> str:
        return f"{self._records}.{_name(schema_id)}"

    def _id(self) -> str:
        return f"conv(hex(substring({self._head}, 2)), 16, 10)"


def _name(schema_id: int) -> str:
    return f"schema_{schema_id}"


def _literal(schema_id: int) -> str:
    return f"X'00{schema_id:08x}'"


def _wrapped(schema: Any) -> str:
    """A record around the record, which takes no bytes: for a message that cannot be read, Spark answers with a record
    of NULLs, and that is then the outer one."""
    around = {"type": "record", "name": "headwater_message", "fields": [{"name": "row", "type": schema}]}
    return json.dumps(around)


def _given(names: Sequence[str], options: Mapping[str, Any]) -> AvroType:
    """The option 'schema'."""
    return as_record(parse_schema(options["schema"]), names)


def _columns(message: Sequence[FormatField], given: AvroType | None) -> list[ReadColumn]:
    record = unwrapped(given)[0] if given is not None else None
    return [ReadColumn(f.name, f.type, record.field(f.name) if record is not None else None) for f in message]


def _subject(options: Mapping[str, Any], schema: AvroType | None) -> str:
    if options["subject"]:
        return str(options["subject"])
    record = (unwrapped(schema)[0].name or unwrapped(schema)[0].kind) if schema is not None else ""
    topic = next(iter(_location(options).topics), "")
    names = {"topic": f"{topic}-{_location(options).side}", "record": record, "topic-record": f"{topic}-{record}"}
    return names[str(options["subject-naming"])]


def _location(options: Mapping[str, Any]) -> SchemaLocation:
    location: SchemaLocation = options["location"]
    return location


def _reader(options: Mapping[str, Any]) -> ReaderKey:
    return _location(options).topics, f"{_location(options).side} {options['subject'] or ''}"
