"""Declarations are consistent, and docs/functions.md is what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.sql.expressions import Scope, compile_expression
from headwater.sql.functions import REGISTRY
from headwater.sql.functions.docs import functions_page
from headwater.sql.functions.registry import Function
from headwater.sql.functions.signatures import parse_signature
from headwater.sql.functions.special_calls import SPECIAL_CALLS
from headwater.sql.parser import parse_expression

PAGE = Path(__file__).parents[3] / "docs" / "functions.md"
FLINK = """
    UPPER LOWER TRIM LTRIM RTRIM SUBSTRING SUBSTR POSITION CHAR_LENGTH LENGTH CONCAT CONCAT_WS REPLACE REGEXP
    REGEXP_REPLACE REGEXP_EXTRACT SPLIT_INDEX LPAD RPAD INITCAP REVERSE REPEAT LEFT RIGHT INSTR LOCATE OVERLAY ASCII CHR
    MD5 SHA1 SHA224 SHA256 SHA384 SHA512 SHA2 TO_BASE64 FROM_BASE64 HEX ENCODE DECODE UUID PARSE_URL STR_TO_MAP
    TRANSLATE STARTSWITH ENDSWITH ABS MOD POWER SQRT LN LOG LOG10 LOG2 EXP ROUND TRUNCATE SIGN SIN COS TAN COT ASIN ACOS
    ATAN ATAN2 SINH COSH TANH DEGREES RADIANS PI E RAND RAND_INTEGER BIN CEIL FLOOR COALESCE NULLIF IF IFNULL GREATEST
    LEAST CAST TRY_CAST EXTRACT TIMESTAMPADD TIMESTAMPDIFF DATE_FORMAT TO_TIMESTAMP TO_TIMESTAMP_LTZ TO_DATE
    FROM_UNIXTIME UNIX_TIMESTAMP CURRENT_TIMESTAMP NOW LOCALTIMESTAMP CURRENT_DATE PROCTIME JSON_VALUE JSON_QUERY
    JSON_EXISTS JSON_STRING JSON_OBJECT JSON_ARRAY ARRAY_CONTAINS ARRAY_DISTINCT ARRAY_CONCAT ELEMENT CARDINALITY
    MAP_KEYS MAP_VALUES TYPEOF
"""
ALL = [function for group in REGISTRY.functions.values() for function in group]


def test_docs_are_up_to_date() -> None:
    hint = "run: python -m headwater.sql.functions.docs docs/functions.md"
    assert PAGE.read_text(encoding="utf-8") == functions_page(), hint


@pytest.mark.parametrize("function", ALL, ids=lambda function: function.signature.text)
def test_declaration(function: Function) -> None:
    assert function.name == function.name.upper()
    assert function.meaning[0].isupper() or not function.meaning[0].isalpha()
    assert not function.meaning.endswith(".")
    assert function.family


def test_names_are_declared_in_one_family() -> None:
    assert [name for name, group in REGISTRY.functions.items() if len({f.family for f in group}) > 1] == []


def test_signatures_are_declared_once() -> None:
    texts = [function.signature.text for function in ALL]
    assert sorted(set(texts)) == sorted(texts)


@pytest.mark.parametrize("name", FLINK.split())
def test_flink_function_exists(name: str) -> None:
    assert name in REGISTRY.functions or name in SPECIAL_CALLS


@pytest.mark.parametrize(
    ("text", "least", "most", "repeats"),
    [
        ("F() -> INT", 0, 0, False),
        ("F([INT']) -> INT", 0, 1, False),
        ("F(STRING, INT [, INT [, INT]]) -> INT", 2, 4, False),
        ("F(T…) -> T", 1, 1, True),
        ("F(MAP<K, V>, ARRAY<T> [, STRING…]) -> V?", 2, 3, True),
    ],
)
def test_signature(text: str, least: int, most: int, repeats: bool) -> None:
    signature = parse_signature(text)
    assert (signature.least, len(signature.parameters), signature.repeats) == (least, most, repeats)


def test_names_do_not_depend_on_case() -> None:
    assert compile_expression(parse_expression("Upper('a')"), Scope(()), lambda _: None).text == "UPPER('a')"
