"""Single values of registered schemas as JSON, beside fastavro: what it writes is read, what is written it reads."""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.formats.confluent.records import decode_value, encode_value
from headwater.formats.confluent.types import parse_schema

FIXED = {"type": "fixed", "name": "Four", "size": 4}
MONEY = {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}
EVERYTHING = {
    "type": "record",
    "name": "shop.Item",
    "fields": [
        {"name": "flag", "type": "boolean"},
        {"name": "small", "type": "int"},
        {"name": "large", "type": "long"},
        {"name": "ratio", "type": "double"},
        {"name": "text", "type": ["null", "string"]},
        {"name": "data", "type": "bytes"},
        {"name": "four", "type": FIXED},
        {"name": "money", "type": MONEY},
        {"name": "colour", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
        {"name": "numbers", "type": {"type": "array", "items": ["null", "long"]}},
        {"name": "words", "type": {"type": "map", "values": "string"}},
        {"name": "next", "type": ["null", "shop.Item"]},
    ],
}
VALUES = st.fixed_dictionaries(
    {
        "flag": st.booleans(),
        "small": st.integers(-(2**31), 2**31 - 1),
        "large": st.integers(-(2**63), 2**63 - 1),
        "ratio": st.floats(allow_nan=False),
        "text": st.none() | st.text(),
        "data": st.binary(),
        "four": st.binary(min_size=4, max_size=4),
        "money": st.decimals(-(10**8), 10**8, places=3),
        "colour": st.sampled_from(["RED", "BLUE"]),
        "numbers": st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), max_size=4),
        "words": st.dictionaries(st.text(), st.text(), max_size=3),
    }
)


def as_json(value: dict[str, Any]) -> dict[str, Any]:
    """As this module has it."""
    data = {name: base64.b64encode(value[name]).decode() for name in ("data", "four")}
    inner = value["next"] and as_json(value["next"])
    return {**value, **data, "money": f"{value['money']:f}", "next": inner}


@given(VALUES, st.none() | VALUES)
def test_the_same_bytes_as_fastavro(outer: dict[str, Any], inner: dict[str, Any] | None) -> None:
    value = {**outer, "next": inner and {**inner, "next": None}}
    kind, other = parse_schema(json.dumps(EVERYTHING)), fastavro.parse_schema(EVERYTHING)
    out = BytesIO()
    fastavro.schemaless_writer(out, other, value)
    assert decode_value(kind, out.getvalue()) == as_json(value)
    encoded = encode_value(kind, as_json(value))
    assert fastavro.schemaless_reader(BytesIO(encoded), other, None) == value


@pytest.mark.parametrize(
    ("schema", "data"),
    [("string", b"\x04a"), ("long", b"\x80"), ("int", b"\x02\x02"), (["null", "int"], b"\x04"), ("double", b"123")],
)
def test_bytes_that_are_no_value(schema: Any, data: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_value(parse_schema(json.dumps(schema)), data)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ("int", 2**31),
        ("int", True),
        ("int", 1.5),
        ("string", 1),
        ("boolean", 1),
        ("double", "1"),
        (["null", "int"], "x"),
        (MONEY, "1.2345"),
        (MONEY, "ten"),
        (FIXED, base64.b64encode(b"abc").decode()),
        ("bytes", "no base64!"),
        (EVERYTHING["fields"][8]["type"], "GREEN"),  # type: ignore[index]
        ({"type": "array", "items": "int"}, {}),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {"a": 1, "b": 2}),
        ({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}, {}),
    ],
)
def test_values_that_have_no_bytes(schema: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        encode_value(parse_schema(json.dumps(schema)), value)


def test_decimals_keep_their_digits() -> None:
    kind = parse_schema(json.dumps({**MONEY, "precision": 38}))
    large = Decimal("-12345678901234567890123456789012345.678")
    assert decode_value(kind, encode_value(kind, str(large))) == str(large)
