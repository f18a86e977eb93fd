"""CREATE TABLE, CREATE VIEW and DROP as values, and what is refused where."""

from __future__ import annotations

import pytest
from refusals import refused_at
from sqlglot import exp

from headwater.errors import SqlError
from headwater.sql import types
from headwater.sql.parser import parse_script
from headwater.sql.statements import (
    ComputedColumn,
    CreateTable,
    CreateView,
    Drop,
    LikeClause,
    MetadataColumn,
    PhysicalColumn,
)


def table(text: str) -> CreateTable:
    (statement,) = parse_script(text)
    assert isinstance(statement, CreateTable)
    return statement


FULL = """\
CREATE TEMPORARY TABLE IF NOT EXISTS `my table` (
  id BIGINT NOT NULL COMMENT 'the id',
  `select` STRING,
  twice AS id * 2 COMMENT 'computed',
  ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL COMMENT 'when',
  headers MAP<STRING, BYTES> METADATA,
  offset BIGINT METADATA VIRTUAL,
  WATERMARK FOR ts AS ts - INTERVAL '5' SECOND,
  CONSTRAINT pk PRIMARY KEY (id, `select`) NOT ENFORCED
)
COMMENT 'it''s a table'
PARTITIONED BY (id)
WITH (
  'connector' = 'kafka',
  "topic" = "a topic",
  'empty' = ''
)"""


def test_a_table_with_everything() -> None:
    created = table(FULL)
    assert created.name == "my table"
    assert created.temporary
    assert created.if_not_exists
    assert created.comment == "it's a table"
    assert created.primary_key == ("id", "select")
    assert created.partitioned_by == ("id",)
    assert created.options == {"connector": "kafka", "topic": "a topic", "empty": ""}
    assert created.like is None
    assert created.text == FULL
    identity, word, twice, ts, headers, offset = created.columns
    assert identity == PhysicalColumn("id", types.BIGINT.not_null(), "the id")
    assert word == PhysicalColumn("select", types.STRING)
    assert isinstance(twice, ComputedColumn)
    assert isinstance(twice.expression, exp.Mul)
    assert twice.comment == "computed"
    assert ts == MetadataColumn("ts", types.timestamp_ltz(3), "timestamp", virtual=True, comment="when")
    assert isinstance(headers, MetadataColumn)
    assert (headers.key, headers.virtual) == ("headers", False)
    assert isinstance(offset, MetadataColumn)
    assert offset.virtual
    assert created.watermark is not None
    assert created.watermark.column == "ts"
    assert isinstance(created.watermark.expression, exp.Sub)


def test_the_places_of_columns_and_options() -> None:
    created = table(FULL)
    assert (created.column_positions["select"].line, created.column_positions["select"].column) == (3, 3)
    topic = created.option_positions["topic"]
    assert (topic.line, topic.column, topic.length) == (15, 3, len('"topic" = "a topic"'))
    assert topic.text == '  "topic" = "a topic",'


@pytest.mark.parametrize(
    "key",
    ["PRIMARY KEY (a) NOT ENFORCED", "primary key (a) not enforced", "CONSTRAINT k PRIMARY KEY (a) NOT ENFORCED"],
)
def test_a_primary_key_in_any_case(key: str) -> None:
    assert table(f"CREATE TABLE t (a INT, {key})").primary_key == ("a",)


def test_an_inline_primary_key() -> None:
    created = table("CREATE TABLE t (a INT NOT NULL PRIMARY KEY NOT ENFORCED COMMENT 'key', b INT)")
    assert created.primary_key == ("a",)
    assert created.columns[0] == PhysicalColumn("a", types.INT.not_null(), "key")
    assert table("CREATE TABLE t (a INT CONSTRAINT k PRIMARY KEY NOT ENFORCED)").primary_key == ("a",)


def test_words_may_be_names_of_columns() -> None:
    created = table(
        "CREATE TABLE t (key STRING, value STRING, date DATE, watermark INT, primary_ INT, `primary` INT, end_ INT)"
    )
    assert [c.name for c in created.columns] == ["key", "value", "date", "watermark", "primary_", "primary", "end_"]


def test_like_with_rules() -> None:
    created = table(
        "CREATE TABLE t (a INT) WITH ('k' = 'v') LIKE u (INCLUDING ALL OVERWRITING OPTIONS, EXCLUDING WATERMARKS)"
    )
    assert created.like == LikeClause("u", {"ALL": "INCLUDING", "OPTIONS": "OVERWRITING", "WATERMARKS": "EXCLUDING"})
    bare = table("CREATE TABLE t LIKE default_catalog.default_database.u")
    assert bare.like == LikeClause("default_database.u")
    assert bare.columns == ()


def test_a_key_may_name_a_column_that_like_brings() -> None:
    assert table("CREATE TABLE t (PRIMARY KEY (x) NOT ENFORCED) LIKE u").primary_key == ("x",)


def test_a_view() -> None:
    text = "CREATE TEMPORARY VIEW IF NOT EXISTS v (a, b) COMMENT 'c' AS SELECT 1, 2 UNION ALL SELECT 3, 4"
    (view,) = parse_script(text)
    assert isinstance(view, CreateView)
    assert (view.name, view.columns, view.comment) == ("v", ("a", "b"), "c")
    assert view.temporary
    assert view.if_not_exists
    assert isinstance(view.query, exp.Union)


@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_drop(kind: str) -> None:
    plain, full = parse_script(f"DROP {kind} a; DROP TEMPORARY {kind} IF EXISTS `b c`")
    assert isinstance(plain, Drop)
    assert isinstance(full, Drop)
    assert (plain.kind, plain.name, plain.if_exists, plain.temporary) == (kind, "a", False, False)
    assert (full.kind, full.name, full.if_exists, full.temporary) == (kind, "b c", True, True)


WRONG = [
    # text, line, column, length, fact
    ("CREATE TABLE t (a INT,)", 1, 23, 1, "Expected a column, PRIMARY KEY or WATERMARK, found ')'"),
    ("CREATE TABLE t ()", 1, 17, 1, "Expected a column, PRIMARY KEY or WATERMARK, found ')'"),
    ("CREATE TABLE t (a INT b INT)", 1, 23, 1, "Expected ')', found 'b'"),
    ("CREATE TABLE t (\n  a INT,\n  a STRING)", 3, 3, 1, "The column 'a' appears twice"),
    ("CREATE TABLE t (a)", 1, 17, 1, "The column 'a' needs a type"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a))", 1, 39, 1, "Expected NOT ENFORCED, found ')'"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a) ENFORCED)", 1, 40, 8, "A primary key cannot be ENFORCED"),
    ("CREATE TABLE t (a INT PRIMARY KEY)", 1, 34, 1, "Expected NOT ENFORCED, found ')'"),
    ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED)", 1, 37, 1, "There is no column 'b'"),
    (
        "CREATE TABLE t (a INT, PRIMARY KEY (a, a) NOT ENFORCED)",
        1,
        40,
        1,
        "The column 'a' appears twice in the primary key",
    ),
    ("CREATE TABLE t (a AS 1, PRIMARY KEY (a) NOT ENFORCED)", 1, 38, 1, "The primary key cannot contain 'a'"),
    ("CREATE TABLE t (a INT METADATA, PRIMARY KEY (a) NOT ENFORCED)", 1, 46, 1, "The primary key cannot contain 'a'"),
    (
        "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED)",
        *(1, 49, 7, "A table has one primary key"),
    ),
    ("CREATE TABLE t (a INT, UNIQUE (a))", 1, 24, 6, "UNIQUE is not supported"),
    ("CREATE TABLE t (a INT DEFAULT 1)", 1, 23, 7, "DEFAULT is not Flink SQL"),
    ("CREATE TABLE t (WATERMARK FOR x AS x)", 1, 31, 1, "There is no column 'x'"),
    ("CREATE TABLE t (a ROW<b INT>, WATERMARK FOR a.b AS a.b)", 1, 46, 1, "The time of a watermark must be a column"),
    ("CREATE TABLE t (a INT METADATA FROM x)", 1, 37, 1, "Expected a string in single quotes, found 'x'"),
    ("CREATE TABLE t (a INT COMMENT x)", 1, 31, 1, "Expected a string in single quotes, found 'x'"),
    ("CREATE TABLE t (a INT) PARTITIONED BY (b)", 1, 40, 1, "There is no column 'b'"),
    ("CREATE TABLE t (a INT) PARTITIONED BY (b STRING)", 1, 42, 6, "PARTITIONED BY takes names of columns"),
    ("CREATE TABLE t (a INT) DISTRIBUTED BY HASH(a)", 1, 24, 11, "DISTRIBUTED BY is not supported"),
    ("CREATE TABLE t (a INT) WITH ('a' = 'b',)", 1, 40, 1, "Expected an option's key in quotes, found ')'"),
    ("CREATE TABLE t (a INT) WITH (a = 'b')", 1, 30, 1, "Expected an option's key in quotes, found 'a'"),
    ("CREATE TABLE t (a INT) WITH ('a' = 1)", 1, 36, 1, "Expected an option's value in quotes, found '1'"),
    ("CREATE TABLE t (a INT) WITH ('a' = 'b' 'c' = 'd')", 1, 40, 3, "Expected ',' or ')', found the string 'c'"),
    ("CREATE TABLE t (a INT) WITH ('a' = 'b', 'a' = 'c')", 1, 41, 3, "The option 'a' appears twice"),
    ("CREATE TABLE t (a INT) WITH ('a' = 'b') PARTITIONED BY (a)", 1, 41, 11, "Unexpected 'PARTITIONED'"),
    ("CREATE TABLE t (a INT)\nCREATE TABLE u (b INT)", 2, 1, 6, "Unexpected 'CREATE'"),
    (
        "CREATE TABLE t LIKE u (INCLUDING FOO)",
        1,
        34,
        3,
        "Expected ALL, OPTIONS, GENERATED, METADATA, CONSTRAINTS, WATERMARKS or PARTITIONS, found 'FOO'",
    ),
    ("CREATE TABLE t LIKE u (OVERWRITING ALL)", 1, 36, 3, "OVERWRITING is not possible for ALL"),
    ("CREATE TABLE t LIKE u (INCLUDING ALL EXCLUDING ALL)", 1, 48, 3, "ALL appears twice"),
    ("CREATE TABLE t LIKE u (ALL)", 1, 24, 3, "Expected INCLUDING, EXCLUDING or OVERWRITING, found 'ALL'"),
    ("CREATE TABLE x.y.t (a INT)", 1, 14, 1, "Unknown catalog 'x'"),
    ("CREATE TABLE (a INT)", 1, 14, 1, "Expected the name of a table, found '('"),
    ("CREATE TABLE 't' (a INT)", 1, 14, 3, "Expected the name of a table, found the string 't'"),
    ("CREATE CATALOG c WITH ('type' = 'jdbc')", 1, 8, 7, "CREATE CATALOG is not supported"),
    ("CREATE FUNCTION f AS 'x'", 1, 22, 3, "A function without LANGUAGE is one in Java"),
    ("CREATE CATALOG c", 1, 8, 7, "CREATE CATALOG is not supported"),
    ("CREATE", 1, 7, 1, "CREATE what?"),
    ("CREATE VIEW v (a, a) AS SELECT 1, 2", 1, 19, 1, "The column 'a' appears twice"),
    ("CREATE VIEW v SELECT 1", 1, 15, 6, "Expected 'AS', found 'SELECT'"),
    ("CREATE VIEW v AS", 1, 17, 1, "Expected a query (SELECT, VALUES or WITH), found the end of the statement"),
    ("DROP CATALOG d", 1, 6, 7, "DROP CATALOG is not supported"),
    ("DROP TABLE IF t", 1, 15, 1, "Expected 'EXISTS', found 't'"),
    ("DROP TABLE t, u", 1, 13, 1, "Unexpected ','"),
]


@pytest.mark.parametrize(("text", "line", "column", "length", "fact"), WRONG)
def test_a_wrong_definition_is_refused_at_its_place(text: str, line: int, column: int, length: int, fact: str) -> None:
    assert refused_at(parse_script, text) == (line, column, length, fact)


def test_the_reason_for_not_enforced_is_given() -> None:
    with pytest.raises(SqlError) as caught:
        parse_script("CREATE TABLE t (a INT, PRIMARY KEY (a))")
    assert "NOT ENFORCED" in caught.value.hint
    assert "does not own the data" in caught.value.hint
