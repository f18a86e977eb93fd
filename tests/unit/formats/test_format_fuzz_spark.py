"""Every decoder against random and mutated bytes: it answers with a row, with nothing or with an error.

A row is only what another reader of the same bytes finds too."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from golden_changes import read, table
from golden_rows import Golden, decode
from pyspark.sql import SparkSession

from headwater.formats.base import FormatField, all_formats
from headwater.options.parsing import parse_options
from headwater.sql.parser import parse_type

pytestmark = pytest.mark.spark

MESSAGES = 400
COLUMNS = "i INT, s STRING"
JSON = b'{"i": 1234, "s": "t\xc3\xa4xt \\u00e9 \\"q\\"", "more": [1, {"x": null}]}'
SEEDS: dict[str, list[bytes]] = {
    "json": [JSON, b'[{"i":1},{"i":2,"s":"b"}]'],
    "csv": [b"1234,text", b'-7,"a ""quoted"" text, with commas"', b"5"],
    "avro": [b"\x02\xa4\x13\x02\x08text", b"\x00\x00"],
    "raw": [b"\x00\x00\x04\xd2"],
    "debezium-json": [b'{"before": null, "after": {"i": 1, "s": "a"}, "op": "c"}'],
    "canal-json": [b'{"data": [{"i": "1", "s": "a"}], "old": [{"s": "b"}], "type": "UPDATE"}'],
    "maxwell-json": [b'{"data": {"i": 1, "s": "a"}, "old": {"s": "b"}, "type": "update"}'],
    "ogg-json": [b'{"before": {"i": 1, "s": "b"}, "after": {"i": 1, "s": "a"}, "op_type": "U"}'],
}


def mutations(name: str) -> list[bytes]:
    dice = Random(name)
    found = [bytes(dice.randrange(256) for _ in range(dice.randrange(40))) for _ in range(MESSAGES // 4)]
    while len(found) < MESSAGES:
        found.append(_mutated(dice, bytearray(dice.choice(SEEDS[name]))))
    return [message for message in found if message]


def _mutated(dice: Random, message: bytearray) -> bytes:
    for _ in range(dice.choice([1, 1, 2, 5])):
        place = dice.randrange(len(message) + 1)
        action = dice.choice(["change", "insert", "delete", "cut", "repeat"])
        if action == "change" and place < len(message):
            message[place] = dice.randrange(256)
        elif action == "insert":
            message[place:place] = bytes([dice.choice(b'{}[]",:\\0-.eE\x00\xff') if place % 2 else dice.randrange(256)])
        elif action == "delete":
            del message[place : place + dice.randrange(4)]
        elif action == "cut":
            del message[place:]
        else:
            message += message[place : place + 8]
    return bytes(message)


def _answers(spark: SparkSession, name: str, messages: list[bytes], **options: str) -> list[Any]:
    columns = "i INT" if name == "raw" else COLUMNS
    if not all_formats()[name].insert_only:
        return read(spark, table(name, columns, **options), messages)
    declared = all_formats()[name].options
    values = dict(parse_options(declared, {k.replace("_", "-"): v for k, v in options.items()}, name).values)
    fields = tuple(FormatField(f.name, f.type) for f in parse_type(f"ROW<{columns}>").fields)
    return decode(spark, Golden(name, "fuzz", fields, values, [], [], [], []), messages)


def _json_rows(message: bytes) -> list[list[Any]]:
    """As Python reads them. What is behind the end does not matter, as in Flink."""
    found, _ = json.JSONDecoder(strict=False).raw_decode(message.decode("utf-8-sig").lstrip())
    return [_json_row(row) for row in (found if isinstance(found, list) else [found]) if row is not None]


def _json_row(row: dict[str, Any]) -> list[Any]:
    number = row.get("i")
    whole = number if number is None else int(float(number)) if isinstance(number, str | float) else int(number)
    return [whole, row.get("s")]


def _csv_rows(message: bytes) -> list[list[Any]]:
    [*tokens] = next(csv.reader(io.StringIO(message.decode(), newline="")))
    tokens += [None] * (2 - len(tokens))
    return [[None if tokens[0] in (None, "") else int(tokens[0]), tokens[1]]]


ORACLES: dict[str, Callable[[bytes], list[list[Any]]]] = {"json": _json_rows, "csv": _csv_rows}


@pytest.mark.parametrize("name", SEEDS)
def test_no_bytes_break_a_decoder(format_spark: SparkSession, name: str) -> None:
    messages = mutations(name)
    answers = _answers(format_spark, name, messages)
    assert len(answers) == len(messages)
    assert any(isinstance(a, dict) for a in answers)
    assert any(a and not isinstance(a, dict) for a in answers)
    if "ignore-parse-errors" in {option.key for option in all_formats()[name].options}:
        lenient = _answers(format_spark, name, messages, ignore_parse_errors="true")
        assert not any(isinstance(a, dict) for a in lenient)


@pytest.mark.parametrize("name", ORACLES)
def test_a_row_is_what_another_reader_finds(format_spark: SparkSession, name: str) -> None:
    messages = [m for m in mutations(name) if name == "json" or b'"' not in m]
    for message, answer in zip(messages, _answers(format_spark, name, messages), strict=True):
        if answer and not isinstance(answer, dict) and _is_text(message):
            theirs = ORACLES[name](message)
            assert len(answer) == len(theirs), message
            for ours, row in zip(answer, theirs, strict=True):
                assert _without_nested(ours, row) == _without_nested(row, row), message


def _without_nested(row: list[Any], like: list[Any]) -> list[Any]:
    """What is no text in the message becomes one in a STRING column, in a spelling that does not matter here."""
    return [row[0], row[1] if like[1] is None or isinstance(like[1], str) else ...]


def _is_text(message: bytes) -> bool:
    """Other readers give up on bytes that no column asks for, which are of no interest here."""
    try:
        return "\x00" not in message.decode()
    except UnicodeDecodeError:
        return False


ENVELOPES = {
    "json": b"%s",
    "debezium-json": b'{"op":"c","after":%s}',
    "canal-json": b'{"type":"INSERT","data":[%s]}',
}


@pytest.mark.parametrize("name", ENVELOPES)
def test_big_and_deep_messages(format_spark: SparkSession, name: str) -> None:
    big, deep = b"x" * 10_000_000, b"[" * 20_000 + b"]" * 20_000
    row = ENVELOPES[name]
    messages = [row % (b'{"i":1,"s":"%s"}' % big), row % (b'{"i":1,"s":%s}' % deep), row % b'{"i":2,"s":"b"}']
    answers = [_answers(format_spark, name, [message])[0] for message in messages]
    rows = [a if name == "json" or isinstance(a, dict) else [r for _, r in a] for a in answers]
    assert rows[0] == [[1, big.decode()]]
    assert isinstance(rows[1], dict) or rows[1] == [[1, deep.decode()]]
    assert rows[2] == [[2, "b"]]
