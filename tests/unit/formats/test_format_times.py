"""Dates and timestamps that column readers read as they stand are those of three shapes; all others they refuse."""

from __future__ import annotations

import re
from random import Random

import pyarrow as pa
import pytest

from headwater.formats.columns import typed

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIMESTAMP = DATE + r"[ T][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?"
SHAPES = {pa.date32(): DATE, pa.timestamp("us"): TIMESTAMP, pa.timestamp("us", "UTC"): TIMESTAMP + "Z"}
WRITTEN = [
    *("2024-01-01 00:00:00", "2024-02-29T23:59:59.123456", "1970-01-01 00:00:00.1", "9999-12-31 23:59:59Z"),
    *("0001-01-01 00:00:00", "2024-01-01", "2024-01-01 00:00", "2024-01-01 00", "2024-01-01T00:00:00Z"),
    *("2024-01-01T00:00:00+01:00", "2024-01-01 00:00:00.1234567", "2024-01-01 00:00:00.", "20240101 000000"),
    *("2024-01-01 000000", "2024-01-01 00:00:00+01", "-2024-01-01 00:00:00", "2024-01-01 00:00:00.123456789Z", ""),
]


def changed(random: Random) -> str:
    text = list(random.choice(WRITTEN))
    for _ in range(random.choice([0, 1, 1, 2, 3])):
        place = random.randrange(len(text) + 1)
        text[place : place + random.choice([0, 1])] = random.choice([[], list(random.choice("0129-:. TZ+\u0660\n\0e"))])
    return "".join(text)


@pytest.mark.parametrize("kind", SHAPES, ids=str)
def test_texts_of_other_shapes_are_refused(kind: pa.DataType) -> None:
    random, read = Random(8), 0
    for text in {changed(random) for _ in range(12_000)}:
        try:
            (value,) = typed(pa.array([text]), kind).view(pa.int32() if kind == pa.date32() else pa.int64())
        except pa.ArrowInvalid:
            continue
        assert re.fullmatch(SHAPES[kind], text), repr(text)
        assert value.is_valid
        read += 1
    assert read > 5


def test_one_of_another_shape_is_enough_and_null_has_any() -> None:
    good = ["2024-01-01 00:00:00", None, "2024-01-01 00:00:00.5"]
    assert typed(pa.array(good), pa.timestamp("us")).null_count == 1
    assert typed(pa.array([None], pa.string()), pa.timestamp("us", "UTC")).null_count == 1
    with pytest.raises(pa.ArrowInvalid):
        typed(pa.array([*good, "2024-01-01"]), pa.timestamp("us"))


@pytest.mark.parametrize("text", ["2024-01-01 00:00:00", "2024-02-29T23:59:59.123456", "0001-01-01 00:00:00"])
def test_what_has_the_shape_is_read(text: str) -> None:
    assert typed(pa.array([text]), pa.timestamp("us")).is_valid().to_pylist() == [True]
    assert typed(pa.array([text + "Z"]), pa.timestamp("us", "UTC")).is_valid().to_pylist() == [True]
    assert typed(pa.array([text[:10]]), pa.date32()).is_valid().to_pylist() == [True]
