"""Case files as text: what is read, and how what is wrong is shown."""

from __future__ import annotations

import pytest

from headwater.errors import SqlError
from headwater.testing import parse_case
from headwater.testing.case import (
    Block,
    Expect,
    ExpectError,
    ExpectMode,
    ExpectPlan,
    ExpectTable,
    Message,
    Produce,
    Restart,
    Sql,
    Topic,
)

WHOLE = """\
# a comment
marker: notyet because of the weather
topic clicks partitions=2
topic totals compacted

sql
CREATE TABLE clicks (
  id STRING
);
# a comment inside
INSERT INTO totals SELECT id FROM clicks;

plan
Write totals
└─ Scan clicks

produce clicks
@partition=1 @timestamp=17 @header.trace=abc c1 => {"id":"c1"}
# between
c2 => null

expect totals per-key
ann => 1

restart kill

table totals
ann | 1
bob | null

error run contains it broke
and how

restart clean

expect totals exact
"""


def test_all_directives_are_read() -> None:
    case = parse_case(WHOLE, "x.case")
    assert case.not_yet == "because of the weather"
    assert [type(d) for d in case.directives] == [
        Topic, Topic, Sql, ExpectPlan, Produce, Expect, Restart, ExpectTable, ExpectError, Restart, Expect,
    ]  # fmt: skip
    clicks, totals, sql, plan, produce, expect, restart, table, error, clean, nothing = case.directives
    assert clicks == Topic("clicks", 2, False, 3)
    assert totals == Topic("totals", 1, True, 4)
    assert plan == ExpectPlan("Write totals\n└─ Scan clicks", Block(14, 16), 13)
    assert produce == Produce(
        "clicks",
        (Message(b"c1", b'{"id":"c1"}', 1, 17, (("trace", b"abc"),), 18), Message(b"c2", None, line=20)),
        17,
    )
    assert expect == Expect("totals", ExpectMode.PER_KEY, (Message(b"ann", b"1", line=23),), Block(23, 24), 22)
    assert restart == Restart(True, 25)
    assert table == ExpectTable("totals", (("ann", "1"), ("bob", "null")), Block(28, 30), 27)
    assert error == ExpectError("run", ("it broke", "and how"), Block(32, 33), 31)
    assert clean == Restart(False, 34)
    assert nothing == Expect("totals", ExpectMode.EXACT, (), Block(37, 37), 36)
    assert isinstance(sql, Sql)


def test_sql_keeps_its_lines() -> None:
    sql = next(d for d in parse_case(WHOLE).directives if isinstance(d, Sql))
    lines = sql.text.splitlines()
    assert lines[6] == "CREATE TABLE clicks ("
    assert lines[9] == "", "a comment of the case is none of SQL's business"
    assert lines[10] == "INSERT INTO totals SELECT id FROM clicks;"


def test_words_of_directives_may_begin_a_line_inside_a_statement() -> None:
    text = "sql\nCREATE\ntable x (a INT)\nWITH ('connector' = 'print');\nplan\nWrite x\n"
    sql, plan = parse_case(text).directives
    assert isinstance(sql, Sql)
    assert "table x" in sql.text
    assert isinstance(plan, ExpectPlan)


@pytest.mark.parametrize(
    ("text", "fact", "line", "column", "length"),
    [
        ("produc x\n", "'produc' is not a word of case files. Did you mean 'produce'?", 1, 1, 6),
        ("  topic x\n", "'topic' is not a word", 1, 3, 5),
        ("topic\n", "topic needs a name", 1, 1, 5),
        ("topic a partition=2\n", "'partition=2' is not a property of a topic", 1, 9, 11),
        ("topic a partitions=0\n", "'partitions=0' is not a property", 1, 9, 12),
        ("topic a\ntopic a\n", "Topic 'a' already exists", 2, 7, 1),
        ("topic a\nproduce b\nx => y\n", "There is no topic 'b' above", 2, 9, 1),
        ("topic totals\nexpect total final\n", "Did you mean 'totals'?", 2, 8, 5),
        ("topic a\nproduce a\n", "There are no messages here", 2, 1, 7),
        ("topic a\nproduce a\nx -> y\n", "A message is 'key => value'", 3, 1, 6),
        ("topic a\nproduce a\nx => \n", "There is nothing here", 3, 6, 1),
        ("topic a\nproduce a\nx => hex:0\n", "These are not pairs of hexadecimal digits", 3, 10, 1),
        ("topic a\nproduce a\nx => text:1\n", "'text:' takes a JSON string", 3, 6, 6),
        ("topic a\nproduce a\nx => avro{1}\n", "This is not JSON", 3, 10, 3),
        ("topic a\nproduce a\n@offset=1 x => y\n", "'@offset=1' says nothing about a message", 3, 1, 9),
        ("topic a\nproduce a\n@partition=one x => y\n", "says nothing about a message", 3, 1, 14),
        ("topic a\nproduce a all\nx => y\n", "'all' is one word too many", 2, 11, 3),
        ("topic a\nexpect a\n", "expect needs a mode", 2, 8, 1),
        ("topic a\nexpect a finally\n", "'finally' is not a mode. Did you mean 'final'?", 2, 10, 7),
        ("sql\n\n", "There is no SQL here", 1, 1, 3),
        ("sql x\n", "'x' cannot be read", 1, 5, 1),
        ("table x\n", "'table' needs SQL above it", 1, 1, 5),
        ("sql\nSHOW TABLES;\nerror\n", "error needs to know when", 3, 1, 5),
        ("sql\nSHOW TABLES;\nerror later contains x\n", "Errors come at create, insert, run, not 'later'", 3, 7, 5),
        ("sql\nSHOW TABLES;\nerror run x\n", "error needs the word 'contains'", 3, 11, 1),
        ("sql\nSHOW TABLES;\nerror run contains\n", "The error contains what?", 3, 11, 8),
        ("sql\nSHOW TABLES;\nrestart\n", "restart needs to know how", 3, 1, 7),
        ("sql\nSHOW TABLES;\nrestart hard\n", "A restart is clean or kill, not 'hard'", 3, 9, 4),
        ("marker: never x\n", "The only marker is 'notyet'", 1, 9, 5),
        ("marker: notyet\n", "A marker needs a reason", 1, 9, 6),
    ],
)
def test_what_is_wrong_is_shown_with_line_and_caret(text: str, fact: str, line: int, column: int, length: int) -> None:
    with pytest.raises(SqlError) as raised:
        parse_case(text, "x.case")
    assert fact in raised.value.fact
    position = raised.value.position
    assert position is not None
    assert (position.line, position.column, position.length) == (line, column, length)
    assert f"x.case:{line}:{column}" in str(raised.value)
