"""One column, its bytes as they are: Flink's `raw` format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import Decoder, DecodeRequest, FormatField
from headwater.formats.csv.dialect import unescape_java
from headwater.formats.raw.columns import raw_reader
from headwater.formats.raw.lines import RawLines
from headwater.options.base import Option
from headwater.options.types import STRING, enum
from headwater.sql.spark_text import string_literal
from headwater.sql.types import SqlType

__all__ = ["RawFormat"]

_SIZES = {"BOOLEAN": 1, "TINYINT": 1, "SMALLINT": 2, "INT": 4, "BIGINT": 8, "FLOAT": 4, "DOUBLE": 8}
_ENDIANNESS = ("big-endian", "little-endian")
# What Spark can encode and decode, under the names Java knows too.
_CHARSETS = ("UTF-8", "US-ASCII", "ISO-8859-1", "UTF-16", "UTF-16BE", "UTF-16LE", "UTF-32")


class RawFormat:
    identifier = "raw"
    summary = "The bytes of one column as they are. A NULL is no message: in upsert-kafka it deletes the key."
    insert_only = True
    decodes_null = True
    options: tuple[Option, ...] = (
        Option("charset", STRING, f"Character set of strings: {', '.join(_CHARSETS)}.", "UTF-8"),
        Option("endianness", enum(_ENDIANNESS), "Byte order of numbers.", "big-endian", choices=_ENDIANNESS),
        Option(
            "line-delimiter",
            STRING,
            "Delimiter between the rows of a message, which is then read as several rows; written after a row. "
            "'\\n' is a line end. Only for strings.",
        ),
    )

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = []
        if options["line-delimiter"] is not None and not all(f.type.is_string for f in fields):
            problems.append("'raw.line-delimiter' is for strings.")
        if options["line-delimiter"] == "":
            problems.append("'raw.line-delimiter' is empty.")
        if _charset(options) not in _CHARSETS:
            problems.append(
                f"Unsupported 'raw.charset' name: {options['charset']}. It can be one of {', '.join(_CHARSETS)}."
            )
        if len(fields) != 1:
            columns = ", ".join(f"`{f.name}` {f.type}" for f in fields)
            text_ = "The 'raw' format only supports single physical column. However the defined schema contains "
            problems.append(f"{text_}{'multiple physical columns' if fields else 'none'}: [{columns}]")
        problems += [
            f"The 'raw' format doesn't supports '{f.type}' as column type (column '{f.name}')."
            for f in fields
            if f.type.name not in _SIZES and not f.type.is_string and not f.type.is_binary
        ]
        return problems

    def decoder(self, request: DecodeRequest) -> Decoder:
        payload, alias, options, column = request.payload, request.alias, request.options, request.fields[0]
        kind = column.type.name
        size = _SIZES.get(kind)
        columns = (_decoded(alias, column, options),) * len(request.wanted)
        if options["line-delimiter"] is not None:
            return Decoder(payload, columns, rows=RawLines(_charset(options), _delimiter(options)))
        reader = raw_reader(column, len(request.wanted), _charset(options), options["endianness"])
        if size is None:
            return Decoder(payload, columns, reader=reader)
        wrong = string_literal(f"Size of data received for deserializing {kind} type is not {size}.")
        return Decoder(payload, columns, error=f"IF(octet_length({alias}) <> {size}, {wrong}, NULL)", reader=reader)

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        if options["line-delimiter"] is None:
            return _encoded(columns[0], fields[0], options)
        return _encoded(f"concat({columns[0]}, {string_literal(_delimiter(options))})", fields[0], options)


def _delimiter(options: Mapping[str, Any]) -> str:
    return unescape_java(str(options["line-delimiter"]))


def _charset(options: Mapping[str, Any]) -> str:
    name = str(options["charset"]).upper()
    return {"UTF8": "UTF-8", "ASCII": "US-ASCII", "LATIN1": "ISO-8859-1", "ISO8859-1": "ISO-8859-1"}.get(name, name)


def _decoded(data: str, wanted: FormatField, options: Mapping[str, Any]) -> str:
    kind, little = wanted.type, options["endianness"] == "little-endian"
    if kind.is_binary:
        return data
    if kind.is_string:
        return _decoded_text(data, _charset(options))
    size = _SIZES[kind.name]
    if kind.name == "BOOLEAN":
        return f"{data} <> X'00'"
    # Spark SQL has no function for it, but Avro stores them so: the bytes of the number, little end first.
    if kind.name in {"FLOAT", "DOUBLE"}:
        bytes_ = data if little else _reversed(data, size)
        return f"from_avro({bytes_}, {_avro_type(kind)}, map('mode', 'PERMISSIVE'))"
    data = f"IF(octet_length({data}) = {size}, {data}, NULL)"
    digits = f"hex({_reversed(data, size) if little else data})"
    # `conv` gives an unsigned number, which for 64 bits may not fit into a BIGINT: in two halves.
    if size == 8:
        high, low = (_unsigned(f"substring({digits}, {start}, 8)") for start in (1, 9))
        return f"{_signed(high, 4)} * {1 << 32} + {low}"
    return f"CAST({_signed(_unsigned(digits), size)} AS {kind.name})"


def _unsigned(digits: str) -> str:
    return f"CAST(conv({digits}, 16, 10) AS BIGINT)"


def _signed(unsigned: str, size: int) -> str:
    return f"({unsigned} - IF({unsigned} < {1 << (8 * size - 1)}, 0, {1 << (8 * size)}))"


def _avro_type(kind: SqlType) -> str:
    return string_literal(f'"{kind.name.lower()}"')


def _encoded(value: str, wanted: FormatField, options: Mapping[str, Any]) -> str:
    kind, little = wanted.type, options["endianness"] == "little-endian"
    if kind.is_binary:
        return value
    if kind.is_string:
        return _encoded_text(value, _charset(options))
    size = _SIZES[kind.name]
    if kind.name == "BOOLEAN":
        return f"CASE {value} WHEN true THEN X'01' WHEN false THEN X'00' END"
    if kind.name in {"FLOAT", "DOUBLE"}:
        avro = f"to_avro({value}, {_avro_type(kind)})"
        return f"IF({value} IS NULL, NULL, {avro if little else _reversed(avro, size)})"
    big = f"unhex(right(lpad(hex(CAST({value} AS BIGINT)), 16, '0'), {2 * size}))"
    return _reversed(big, size) if little else big


def _reversed(data: str, size: int) -> str:
    return f"concat({', '.join(f'substring({data}, {i}, 1)' for i in range(size, 0, -1))})" if size > 1 else data


def _encoded_text(value: str, charset: str) -> str:
    return f"CAST({value} AS BINARY)" if charset == "UTF-8" else f"encode({value}, {string_literal(charset)})"


def _decoded_text(data: str, charset: str) -> str:
    text = f"make_valid_utf8(CAST({data} AS STRING))"  # `decode` would copy what is valid, too
    return text if charset == "UTF-8" else f"decode({data}, {string_literal(charset)})"
