"""The tests' own Avro."""

from __future__ import annotations

from typing import Any

import pytest

from headwater.formats.base import FormatField
from headwater.sql import types as t
from headwater.sql.types import Field, SqlType
from headwater.testing.avro import decode_record, encode_record

ROW = SqlType("ROW", fields=(Field("x", t.INT), Field("y", t.STRING)))


@pytest.mark.parametrize(
    ("kind", "value", "data"),
    [
        (t.STRING.not_null(), "ann", b"\x06ann"),
        (t.STRING, "ann", b"\x02\x06ann"),
        (t.STRING, None, b"\x00"),
        (t.BIGINT.not_null(), 1, b"\x02"),
        (t.BIGINT.not_null(), -1, b"\x01"),
        (t.BIGINT.not_null(), 64, b"\x80\x01"),
        (t.BIGINT.not_null(), -(1 << 63), b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
        (t.BOOLEAN.not_null(), True, b"\x01"),
        (t.DOUBLE.not_null(), 1.5, b"\x00\x00\x00\x00\x00\x00\xf8\x3f"),
        (t.FLOAT.not_null(), 1.5, b"\x00\x00\xc0\x3f"),
        (t.BYTES.not_null(), "AAE=", b"\x04\x00\x01"),
        (t.decimal(10, 2).not_null(), "-1.28", b"\x04\xff\x80"),
        (t.decimal(10, 2).not_null(), "1.27", b"\x02\x7f"),
        (t.timestamp(3).not_null(), 1000, b"\xd0\x0f"),
        (SqlType("ARRAY", element=t.INT, nullable=False), [1, None], b"\x04\x02\x02\x00\x00"),
        (SqlType("ARRAY", element=t.INT, nullable=False), [], b"\x00"),
        (SqlType("MAP", key=t.STRING, element=t.INT, nullable=False), {"a": 1}, b"\x02\x02a\x02\x02\x00"),
        (ROW.not_null(), {"x": 1, "y": None}, b"\x02\x02\x00"),
    ],
)
def test_bytes(kind: SqlType, value: Any, data: bytes) -> None:
    fields = [FormatField("f", kind)]
    assert encode_record(fields, {"f": value}) == data
    assert decode_record(fields, data) == {"f": value}


def test_fields_come_in_the_order_of_the_table() -> None:
    fields = [FormatField("a", t.INT), FormatField("b", t.INT)]
    assert encode_record(fields, {"b": 1}) == b"\x00\x02\x02"


def test_unknown_fields_and_missing_values_are_errors() -> None:
    with pytest.raises(ValueError, match="no field 'z', only f"):
        encode_record([FormatField("f", t.INT)], {"z": 1})
    with pytest.raises(ValueError, match="is null"):
        encode_record([FormatField("f", t.INT.not_null())], {})


@pytest.mark.parametrize("data", [b"", b"\x04", b"\x02\x06an", b"\x02\x02a\x00"])
def test_what_is_not_such_a_record(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"Avro record"):
        decode_record([FormatField("f", t.STRING)], data)
