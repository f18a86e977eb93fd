"""One line of comma-separated values per message, as Flink's `csv` format reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import Decoder, DecodeRequest, FormatField
from headwater.formats.csv.decode import csv_decoder
from headwater.formats.csv.dialect import CsvDialect, unescape_java
from headwater.formats.csv.encode import csv_encoder
from headwater.options.base import Option
from headwater.options.types import BOOL, STRING
from headwater.sql.types import SqlType

__all__ = ["CsvFormat"]

_SINGLE = ("field-delimiter", "array-element-delimiter", "quote-character", "escape-character")


class CsvFormat:
    identifier = "csv"
    summary = "One line of comma-separated values per message."
    insert_only = True
    decodes_null = False
    options: tuple[Option, ...] = (
        Option("field-delimiter", STRING, "Character between two columns; '\\t' is a tab.", ","),
        Option("disable-quote-character", BOOL, "Whether there are no quotes, in reading and in writing.", False),
        Option("quote-character", STRING, 'Character around a value. Default: ".'),
        Option("allow-comments", BOOL, "Whether a line that starts with # is skipped when reading.", False),
        Option(
            "ignore-parse-errors",
            BOOL,
            "Whether a column that cannot be parsed is NULL, and a line that cannot be parsed is skipped.",
            False,
        ),
        Option("array-element-delimiter", STRING, "Character between the elements of an ARRAY or ROW.", ";"),
        Option("escape-character", STRING, "Escape character. Default: none."),
        Option("null-literal", STRING, "String that represents NULL. Default: none; NULL is written as nothing."),
        Option(
            "write-bigdecimal-in-scientific-notation",
            BOOL,
            "Whether 100 in a DECIMAL is written as 1E+2 instead of 100.00.",
            True,
        ),
        Option("trim-spaces", BOOL, "Whether blanks around an unquoted value are removed when reading.", False),
        Option(
            "ignore-trailing-unmappable", BOOL, "Whether additional columns at the end of a line are ignored.", False
        ),
        Option("allow-trailing-comma", BOOL, "Whether a delimiter after the last column is allowed.", True),
        Option("fail-on-missing-columns", BOOL, "Whether missing columns at the end of a line are an error.", False),
        Option("empty-string-as-null", BOOL, "Whether an empty value is NULL instead of an empty string.", False),
    )

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = [problem for f in fields for problem in _type_problems(f)]
        if not fields:
            problems.append("A line needs at least one column.")
        if options["disable-quote-character"] and options["quote-character"] is not None:
            problems.append("Format cannot define a quote character and disabled quote character at the same time.")
        for key in _SINGLE:
            given = options[key]
            value = unescape_java(given) if given is not None and key == "field-delimiter" else given
            if value is not None and len(value) != 1:
                problems.append(f"Option 'csv.{key}' must be a string with single character, but was: {given}")
        return problems

    def decoder(self, request: DecodeRequest) -> Decoder:
        return csv_decoder(request, CsvDialect.of(request.options))

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        return csv_encoder(fields, columns, CsvDialect.of(options))


def _type_problems(field: FormatField) -> list[str]:
    kind = field.type
    if kind.name not in {"ARRAY", "ROW"}:
        return _scalar_problems(kind, field.name)
    inner = [kind.element] if kind.element is not None else [f.type for f in kind.fields]
    nested = [t for t in inner if t.is_nested]
    if nested:
        text = f"Only simple types are supported in the second level nesting of fields '{field.name}' but was: "
        return [f"{text}{nested[0]}"]
    return [problem for t in inner for problem in _scalar_problems(t, field.name)]


def _scalar_problems(kind: SqlType, name: str) -> list[str]:
    if kind.name == "TIME" and (kind.precision or 0) > 3:
        text = f"Csv does not support TIME type with precision: {kind.precision}, it only supports precision 0 ~ 3"
        return [f"{text} (field '{name}')."]
    if kind.is_nested or kind.name == "NULL" or kind.name.startswith("INTERVAL"):
        return [f"Unsupported type '{kind}' for field '{name}'."]
    return []
