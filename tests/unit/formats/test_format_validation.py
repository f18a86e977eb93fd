"""What a format says about fields and options it cannot take. No Spark is needed for that."""

from __future__ import annotations

import pytest

from headwater.formats.base import ChangelogFormat, FormatField, all_formats
from headwater.formats.csv.dialect import unescape_java
from headwater.options.parsing import read_options
from headwater.sql.parser import parse_type
from headwater.sql.spark_text import string_literal


def _problems(format_name: str, columns: str, options: dict[str, str]) -> list[str]:
    chosen = all_formats()[format_name]
    fields = [FormatField(f.name, f.type) for f in parse_type(f"ROW<{columns}>").fields] if columns else []
    resolved, wrong = read_options(chosen.options, options)
    return [p.text for p in wrong] + chosen.validate(fields, resolved.values)


@pytest.mark.parametrize(
    ("format_name", "columns", "options", "problem"),
    [
        (
            "json",
            "a INT",
            {"fail-on-missing-field": "true", "ignore-parse-errors": "true"},
            "fail-on-missing-field and ignore-parse-errors shouldn't both be true.",
        ),
        ("json", "a INT", {"timestamp-format.standard": "x"}, "'x' is not one of SQL, ISO-8601."),
        ("json", "a INT", {"map-null-key.mode": "x"}, "'x' is not one of FAIL, DROP, LITERAL."),
        (
            "json",
            "m MAP<INT, STRING>",
            {},
            "JSON format doesn't support non-string as key type of map. The type is: MAP<INT, STRING> (field 'm').",
        ),
        ("json", "r ROW<s MULTISET<INT>>", {}, "JSON format doesn't support non-string as key type of map."),
        (
            "csv",
            "a INT",
            {"disable-quote-character": "true", "quote-character": "'"},
            "Format cannot define a quote character and disabled quote character at the same time.",
        ),
        (
            "csv",
            "a INT",
            {"escape-character": "ab"},
            "Option 'csv.escape-character' must be a string with single character, but was: ab",
        ),
        ("csv", "a INT", {"quote-character": ""}, "'csv.quote-character' must be a string with single character"),
        (
            "csv",
            "t TIME(5)",
            {},
            "Csv does not support TIME type with precision: 5, it only supports precision 0 ~ 3 (field 't').",
        ),
        ("csv", "m MAP<STRING, INT>", {}, "Unsupported type 'MAP<STRING, INT>' for field 'm'."),
        (
            "csv",
            "r ROW<a ARRAY<INT>>",
            {},
            "Only simple types are supported in the second level nesting of fields 'r' but was: ARRAY<INT>",
        ),
        ("csv", "", {}, "A line needs at least one column."),
        (
            "avro",
            "ts TIMESTAMP(6)",
            {},
            "Avro does not support TIMESTAMP type with precision: 6, it only supports precision less than 3 (field",
        ),
        ("avro", "ts TIMESTAMP_LTZ(3)", {}, "Unsupported to derive Schema for type: TIMESTAMP_LTZ(3) (field 'ts')."),
        ("avro", "r ROW<t TIME(6)>", {}, "Avro does not support TIME type with precision: 6"),
        (
            "avro",
            "m MAP<INT, INT>",
            {},
            "Avro format doesn't support non-string as key type of map. The key type is: INT",
        ),
        ("avro", "`a b` INT", {}, "Field 'a b' cannot have that name in Avro"),
        ("avro", "a INT", {"codec": "snappy"}, "'avro.codec' is for files."),
        (
            "raw",
            "a INT, b INT",
            {},
            (
                "The 'raw' format only supports single physical column. However the defined schema contains multiple "
                "physical columns: [`a` INT, `b` INT]"
            ),
        ),
        ("raw", "d DATE", {}, "The 'raw' format doesn't supports 'DATE' as column type (column 'd')."),
        ("raw", "a STRING", {"charset": "Klingon"}, "Unsupported 'raw.charset' name: Klingon."),
        ("raw", "a STRING", {"endianness": "middle"}, "'middle' is not one of big-endian, little-endian."),
        ("raw", "a INT", {"line-delimiter": ","}, "'raw.line-delimiter' is for strings."),
        ("raw", "a STRING", {"line-delimiter": ""}, "'raw.line-delimiter' is empty."),
    ],
)
def test_problems(format_name: str, columns: str, options: dict[str, str], problem: str) -> None:
    assert any(problem in found for found in _problems(format_name, columns, options))


@pytest.mark.parametrize(
    ("format_name", "columns", "options"),
    [
        ("json", "a INT, m MAP<STRING, ARRAY<ROW<x TIMESTAMP(6)>>>", {"ignore-parse-errors": "true"}),
        ("csv", "a INT, r ROW<x INT, y STRING>, l ARRAY<BYTES>", {"field-delimiter": "\\t", "null-literal": ""}),
        ("avro", "a INT, ts TIMESTAMP(3), m MULTISET<STRING>", {}),
        ("avro", "ts TIMESTAMP_LTZ(3)", {"timestamp_mapping.legacy": "false"}),
        ("raw", "a BIGINT", {"endianness": "LITTLE-endian"}),
        ("raw", "a STRING", {"charset": "utf-16"}),
    ],
)
def test_no_problems(format_name: str, columns: str, options: dict[str, str]) -> None:
    assert _problems(format_name, columns, options) == []


def test_formats_take_rows_or_changes_and_say_what_they_do_with_nothing() -> None:
    formats = all_formats()
    rows = {name for name, f in formats.items() if f.insert_only}
    assert rows == {"json", "csv", "avro", "avro-confluent", "raw"}
    changes = {"debezium-json", "debezium-avro-confluent", "canal-json", "maxwell-json", "ogg-json"}
    assert formats.keys() - rows == changes
    assert all(isinstance(formats[name], ChangelogFormat) for name in formats.keys() - rows)
    assert [name for name, f in formats.items() if f.decodes_null] == ["raw"]


@pytest.mark.parametrize(
    ("written", "meant"), [("\\t", "\t"), ("\\u0001", "\u0001"), (",", ","), ("\\\\", "\\"), ("\\x", "x")]
)
def test_delimiters_with_backslashes(written: str, meant: str) -> None:
    assert unescape_java(written) == meant


def test_texts_cannot_leave_their_quotes() -> None:
    assert string_literal("it's ${x} \\ \n") == "'it\\'s \\u0024{x} \\\\ \\n'"
