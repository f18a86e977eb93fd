"""Rows are the same whoever reads a message: a column reader, or Spark's expressions, because of it or a neighbour."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from kafka_lab import Lab
from reading_lab import Reading

from headwater.changelog.conditions import And, ColumnRef, Compare, IsNull, Literal, Or
from headwater.changelog.preaggregate import PartialAggregate, PreAggregation
from headwater.connectors.runtime import LocalAggregation
from headwater.testing.kafka import Record

COLUMNS = "s STRING, n BIGINT, d DECIMAL(6, 2), at TIMESTAMP(3), o BIGINT METADATA FROM 'offset' VIRTUAL"
READ = 9  # so many in the first partition; behind them ones that are refused, and bad ones, in the second
MESSAGES = {
    "json": [
        *(b'{"s":"a%d","n":%d,"d":1.5,"at":"2024-01-01 00:00:0%d"}' % (i, i, i) for i in range(READ)),
        *(b'{"s":"q","n":"7"}', b'[{"s":"x","n":1.0},{"s":"y","n":2}, null]', b"[]", b" ", b"{}", b'{"n":"seven"}'),
        *(b"nothing", b'[{"n":3},{"n":"four"}]', b"[[{}]]"),
    ],
    "csv": [
        *(b'a%d,%d,1.5,"2024-01-01 00:00:0%d"' % (i, i, i) for i in range(READ)),
        *(b'"a""b",1,2,2024-01-01 00:00:00', b"q,7", b"q,7,x,", b"nothing", b"a,b,c,d,e,f"),
    ],
    "avro": [
        *(b"\x02\x02a\x02%c\x02\x04\x00\x96\x02\x80\x00" % (2 * i) for i in range(READ)),
        *(b"\x00\x00\x00\x00", b"\x02\x02\xff\x00\x00\x00", b"\x00\x00\x00\x00\x00", b"\x02", b"\x04\x00\x00\x00"),
    ],
    "debezium-json": [
        *(b'{"after":{"s":"a%d","n":%d,"d":1,"at":"2024-01-01 00:00:00"},"op":"c"}' % (i, i) for i in range(READ)),
        b'{"before":{"s":"a1","n":1},"after":{"s":"a1","n":2},"op":"u"}',
        b'{"before":{"s":"a1","n":"1"},"op":"d"}',
        *(b'{"before":{"s":"a1"},"op":"x"}', b'{"op":"u"}', b"", b"none"),
    ],
    "canal-json": [
        *(b'{"data":[{"s":"a","n":"%d","d":"1"},{"s":"b"}],"type":"INSERT"}' % i for i in range(READ)),
        b'{"data":[{"s":"b","n":null},{"s":"c","n":"3"}],"old":[{"s":"a"},{"n":"2"}],"type":"UPDATE"}',
        b'{"data":[{"s":"b","n":"1"}],"old":[{"s":null}],"type":"UPDATE"}',
        *(b'{"data":[{"s":"b"}],"type":"DELETE"}', b'{"data":[{"s":"b"}],"type":"UPDATE"}', b'{"type":"ODD"}'),
    ],
}


def produced(lab: Lab, name: str) -> str:
    topic = lab.topic("in", 2)
    lab.kafka.produce(Record(topic, None, value, min(1, i // READ)) for i, value in enumerate(MESSAGES[name]))
    return topic


@pytest.mark.parametrize("name", MESSAGES)
def test_rows_are_those_of_the_expressions(lab: Lab, name: str) -> None:
    options = {"topic": produced(lab, name), "format": name, "scan__bad_records": "skip"}
    whole = Reading(lab, COLUMNS, **options)
    expected = whole.rows(in_columns=False)
    assert len(expected) > READ
    assert whole.rows() == expected
    for chunk_rows in (1, 4):
        assert Reading(lab, COLUMNS, chunk_rows=chunk_rows, **options).rows() == expected


@pytest.mark.parametrize("connector", ["kafka", "upsert-kafka"])
def test_a_task_gives_the_same_rows_in_the_same_order_for_chunks_of_any_size(lab: Lab, connector: str) -> None:
    """A batch that was written in part may be finished by a run with another 'headwater.source.chunk-rows'."""
    topic = lab.topic("chunks", 3)
    odd = {7: b'{"n":"7"}', 8: b'[{"n":80},{"n":81}]', 40: None}
    values = [odd.get(n, b'{"n":%d}' % n) for n in range(90)]
    lab.kafka.produce(Record(topic, b"k%d" % (n % 23), value, n % 3) for n, value in enumerate(values))
    key, start = "", {"scan__startup__mode": "earliest-offset"}
    if connector == "upsert-kafka":
        key, start = ", PRIMARY KEY (id) NOT ENFORCED", {}
    columns = f"{'id STRING, ' if key else ''}n BIGINT, o BIGINT METADATA FROM 'offset' VIRTUAL{key}"
    found = []
    for chunk_rows in (1, 2, 5, 16_384):
        reading = Reading(lab, columns, chunk_rows=chunk_rows, connector=connector, topic=topic, **start)
        plan = reading.source.scan(reading.names)
        assert plan is not None
        splits = reading.splits()
        assert plan.reader is not None
        # Of an upsert table, what is left of two chunks may become one; a message of two rows makes a chunk longer.
        assert all(batch.num_rows <= 2 * chunk_rows for mine in splits for batch in plan.reader(mine))
        tasks = reading.frame(splits, plan).selectExpr("spark_partition_id()", "*")
        found.append((splits, [str(row) for row in tasks.collect()]))
    assert len(found[0][1]) > 20
    assert found == [found[0]] * len(found)


def test_many_messages_of_which_few_are_refused(lab: Lab) -> None:
    topic = lab.topic("many", 2)
    messages = [b'{"n":%d}' % n for n in range(3000)]
    for place in (5, 1500, 1501, 2999):
        messages[place] = b'{"n":%d.0}' % place
    messages[700] = b"[%b]" % b",".join(b'{"n":%d}' % n for n in range(3000, 3100))
    messages[701] = b"no number"
    lab.kafka.produce(Record(topic, None, value, n % 2) for n, value in enumerate(messages))
    reading = Reading(lab, "n BIGINT", topic=topic, scan__bad_records="skip")
    assert reading.rows() == sorted(f"Row(n={n})" for n in range(3100) if n not in {700, 701})
    splits = reading.splits()
    assert reading.source.divert_bad_records(splits, ["n"], 1) == 1
    assert reading.source.divert_bad_records(splits, ["n"], 0) == 0


UPSERTS = [
    *(("a", b'{"n":1}'), ("b", b'{"n":1}'), ("c", b'{"n":1}'), ("d", b'{"n":1}'), ("e", b'{"n":1}')),
    *(("a", b'{"n":2}'), ("b", None), ("c", b'{"n":"2"}'), ("d", b"bad"), ("e", b"[]"), (None, b'{"n":9}')),
    *(("f", b"bad"), ("f", b'{"n":3}'), ("g", b'[{"n":1},{"n":2}]')),
]


@pytest.mark.parametrize("lenient", ["skip", "ignore", ""])
def test_a_message_without_a_row_supersedes_none(lab: Lab, lenient: str) -> None:
    """Of a key the last row counts, and behind it only what may still be one."""
    topic = lab.topic("upserts")
    upserts = [(k, v) for k, v in UPSERTS if lenient or v != b"bad"]
    lab.kafka.produce(Record(topic, k and k.encode(), v, 0) for k, v in upserts)
    columns = "id STRING, n BIGINT, PRIMARY KEY (id) NOT ENFORCED"
    given = {"skip": {"scan__bad_records": "skip"}, "ignore": {"value__json__ignore_parse_errors": "true"}}
    options = given.get(lenient, {})
    for chunk_rows in (2, 1000):
        reading = Reading(lab, columns, chunk_rows=chunk_rows, connector="upsert-kafka", topic=topic, **options)
        plan = reading.source.scan(reading.names)
        assert plan is not None
        rows = reading.frame(reading.splits(), plan).collect()
        last: dict[str, Any] = {}
        for row in sorted(rows, key=lambda row: row["__hw_offset"]):
            last[row.id] = row.n if row["__hw_kind"] == 0 else None
        assert last == {"a": 2, "b": None, "c": 2, "d": 1, "e": 1, "f": 3, "g": 2}
        assert lenient or len(rows) == len(last)


LOCAL = LocalAggregation(
    PreAggregation(
        (("who", "g"),),
        (
            PartialAggregate("c", "rows"),
            PartialAggregate("s", "sum", "n"),
            PartialAggregate("v", "values", "n"),
            PartialAggregate("m", "max", "n"),
        ),
    ),
    {"g": "`who`", "c": "1L", "s": "CAST(`n` AS BIGINT)", "v": "array(`n`)", "m": "`n`"},
)


@pytest.mark.parametrize("chunk_rows", [3, 1000])
def test_groups_of_what_was_read_and_rows_of_what_was_not(lab: Lab, chunk_rows: int) -> None:
    topic = lab.topic("groups", 2)
    rows = [{"who": "abc"[i % 3], "n": i} for i in range(300)]
    messages = [json.dumps(row).encode() for row in rows]
    messages[50] = b'{"who": "c", "n": 50.0}'
    messages[150] = b"[" + messages[150] + b"," + messages[151] + b"]"
    messages[200] = b"bad"
    expected = [row for n, row in enumerate(rows) if n != 200]
    expected.append(rows[151])
    lab.kafka.produce(Record(topic, None, value, i % 2) for i, value in enumerate(messages))
    reading = Reading(lab, "who STRING, n BIGINT", chunk_rows=chunk_rows, topic=topic, scan__bad_records="skip")
    found = reading.groups(LOCAL)
    assert found is not None
    for who in "abc":
        mine, parts = [r["n"] for r in expected if r["who"] == who], [r for r in found if r.g == who]
        assert sum(r.c for r in parts) == len(mine)
        assert sum(r.s for r in parts) == sum(mine)
        assert sorted(v for r in parts for v in r.v) == sorted(mine)
        assert max(r.m for r in parts) == max(mine)
    assert len(found) < len(expected) * 2 / 3
    assert Reading(lab, "who STRING, n TIME", topic=topic).groups(LOCAL) is None  # it takes an expression
    counting = LocalAggregation(PreAggregation((), (PartialAggregate("c", "rows"),)), {"c": "1L"})
    counted = reading.groups(counting)
    assert counted is not None
    assert sum(r.c for r in counted) == len(expected)


@pytest.mark.parametrize("chunk_rows", [3, 1000])
def test_a_condition_holds_for_what_was_read_and_for_what_was_not(lab: Lab, chunk_rows: int) -> None:
    topic = lab.topic("conditions", 2)
    rows = [{"who": "abc"[i % 3], "n": None if i % 11 == 0 else i % 100, "x": 1} for i in range(300)]
    messages = [json.dumps(row).encode() for row in rows]
    for refused in (7, 50, 98, 110, 150):  # 50.0 is a whole number to Spark only; 110 has NULL, 98 is beyond
        messages[refused] = messages[refused].replace(b', "x"', b'.0, "x"') if rows[refused]["n"] else b"bad"
    expected = [r for place, r in enumerate(rows) if r["n"] is not None and r["n"] < 90 and r["who"] != "a"]
    lab.kafka.produce(Record(topic, None, value, i % 2) for i, value in enumerate(messages))
    reading = Reading(lab, "who STRING, n BIGINT", chunk_rows=chunk_rows, topic=topic, scan__bad_records="skip")
    where = And(
        Compare("<", ColumnRef("n"), Literal(90, pa.int64())),
        Compare("<>", ColumnRef("who"), Literal("a", pa.string())),
    )
    groups = PreAggregation((("who", "g"),), (PartialAggregate("c", "rows"),))
    found = reading.groups(
        LocalAggregation(groups, {"g": "`who`", "c": "1L"}, where, "((`n` < 90) AND (`who` <> 'a'))")
    )
    assert found is not None
    counts = {who: sum(r.c for r in found if r.g == who) for who in {r.g for r in found}}
    assert counts == Counter(r["who"] for r in expected)


@pytest.mark.parametrize("name", MESSAGES)
@pytest.mark.parametrize("columns", [COLUMNS, "s STRING, n BIGINT, o BIGINT METADATA FROM 'offset' VIRTUAL"])
def test_readers_leave_out_what_fails_a_condition_and_nothing_else(lab: Lab, name: str, columns: str) -> None:
    """What they refuse, or cannot be sure of, they pass on."""
    options = {"topic": produced(lab, name), "format": name, "scan__bad_records": "skip"}
    where = Or(Compare(">", ColumnRef("n"), Literal(4, pa.int64())), IsNull(ColumnRef("s")))
    for chunk_rows in (1, 1000):
        reading = Reading(lab, columns, chunk_rows=chunk_rows, **options)
        everything, found = Counter(reading.rows()), Counter(reading.rows(where=where))
        left_out = everything - found
        assert not found - everything
        assert not [row for row in left_out if _number_in(row) > 4 or "s=None" in row]
        if name == "json":
            assert sum(left_out.values()) >= 5  # 0 to 4, which are read in columns


def _number_in(row: str) -> int:
    found = re.search(r" n=(-?[0-9]+)", row)
    return int(found[1]) if found else -1


def test_properties_that_only_the_jvm_knows(lab: Lab) -> None:
    """The same rows, read by Spark's client."""
    topic, dead = produced(lab, "json"), lab.topic("dead")
    letters = {"scan__bad_records": "dead-letter", "scan__dead_letter__topic": dead}
    java = {"properties__some__java__thing": "1"}
    reading = Reading(lab, COLUMNS, topic=topic, **letters, **java)
    plan = reading.source.scan(reading.names)
    assert plan is not None
    assert plan.reader is None
    expected = Reading(lab, COLUMNS, topic=topic, scan__bad_records="skip").rows()
    assert reading.rows() == expected
    assert reading.source.divert_bad_records(reading.splits(), ["s", "n"], 1) == 4
    assert sorted(r.value or b"" for r in lab.kafka.read(dead, {}, {0: 4})) == sorted(
        [b'{"n":"seven"}', b"nothing", b'[{"n":3},{"n":"four"}]', b"[[{}]]"]
    )
