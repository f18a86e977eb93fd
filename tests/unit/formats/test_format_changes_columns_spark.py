"""Changes read in columns by Arrow: whatever it accepts, it reads as the expressions do, message by message."""

from __future__ import annotations

from typing import Any

import pytest
from column_reading import mutated
from golden_changes import Changes, golden_changes, read, read_in_columns, table
from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FORMATS = ("debezium-json", "canal-json", "maxwell-json", "ogg-json")
CASES = [case for name in FORMATS for case in golden_changes(name) if case.decode]
COLUMNS = (
    "id BIGINT, flag BOOLEAN, t TINYINT, x DOUBLE, price DECIMAL(10, 2), day DATE, at TIMESTAMP(3), "
    "z TIMESTAMP_LTZ(3), s STRING"
)
PLAIN = (
    '{"id":1,"flag":true,"t":3,"x":1.5,"price":"1.50","day":19724,"at":1704164645678,'
    '"z":"2024-01-02T03:04:05Z","s":"a"}'
)
TEXTS = '{"id":"1","t":"3","x":"1.5","price":"1.50","day":"2024-01-02","at":"2024-01-02 03:04:05","s":"a"}'
PIECES = (b"", b'"', b"{", b"}", b"[", b"1", b",", b"null", b"-")
WRITTEN = {
    "debezium-json": (
        '{"before":null,"after":%s,"op":"c","ts_ms":5}',
        '{"before":%s,"after":%s,"op":"u","source":{"table":"t"}}',
        '{"before":%s,"after":null,"op":"d"}',
        '{"before":null,"after":%s,"op":"u"}',
        '{"after":%s,"op":"x"}',
    ),
    "canal-json": (
        '{"data":[%s,%s],"old":null,"type":"INSERT","database":"d","table":"t"}',
        '{"data":[%s],"old":[{"x":"2.5"}],"type":"UPDATE","database":"d","table":"t"}',
        '{"data":[%s],"type":"DELETE"}',
        '{"data":null,"type":"CREATE","isDdl":true}',
    ),
    "maxwell-json": (
        '{"database":"d","table":"t","type":"insert","ts":5,"data":%s}',
        '{"type":"update","data":%s,"old":{"s":"b","x":null}}',
        '{"type":"delete","data":%s}',
    ),
    "ogg-json": (
        '{"table":"t","op_type":"I","after":%s}',
        '{"op_type":"U","before":%s,"after":%s}',
        '{"op_type":"D","before":%s}',
    ),
}


def check_alike(spark: SparkSession, case: Changes, messages: list[bytes]) -> dict[bytes, Any]:
    """Where both find an error, one may quote a value as it was read, and the other as it stood there."""
    taken = read_in_columns(spark, case, messages)
    expected = dict(zip(taken, read(spark, case, list(taken)), strict=True)) if taken else {}
    both = {message: (_without_words(taken[message]), _without_words(right)) for message, right in expected.items()}
    differing = {message: answers for message, answers in both.items() if answers[0] != answers[1]}
    assert not differing, differing
    return taken


def _without_words(answer: Any) -> Any:
    return "error" if isinstance(answer, dict) else answer


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.format} {case.name}")
def test_golden_messages(format_spark: SparkSession, case: Changes) -> None:
    check_alike(format_spark, case, [message.encode() for message in case.decode if message])


@pytest.mark.parametrize("row", [PLAIN, TEXTS], ids=["plain", "texts"])
@pytest.mark.parametrize("name", FORMATS)
def test_messages_of_all_kinds(format_spark: SparkSession, name: str, row: str) -> None:
    messages = [text.replace("%s", row).encode() for text in WRITTEN[name]]
    taken = check_alike(format_spark, table(name, COLUMNS), [*messages, *mutated(messages, PIECES, 11, 100)])
    sound = messages[:3]  # of debezium-json two more make no sense, and are left to the expressions
    assert set(sound if name == "debezium-json" or row is TEXTS else []) <= set(taken)
    assert not set(messages[3:] if name == "debezium-json" else []) & set(taken)
