"""Tables and views: what the catalog accepts, refuses and says."""

from __future__ import annotations

from typing import Any

import pytest
from catalog_scripts import COLUMNS, KAFKA, UPSERT, create, run, with_clause

from headwater.catalog import Catalog, View
from headwater.catalog.connector import Accepts, Emits
from headwater.errors import Position, SqlError, ValidationError
from headwater.sql.parser import parse_expression, parse_type
from headwater.sql.statements import (
    Column,
    ComputedColumn,
    CreateTable,
    MetadataColumn,
    PhysicalColumn,
    WatermarkDeclaration,
)
from headwater.sql.types import BIGINT, DATE

PLACE = Position(1, 1, "CREATE TABLE t")


def test_a_table_is_resolved() -> None:
    table = create(f"{COLUMNS}, total AS id + 1, off BIGINT METADATA FROM 'offset' VIRTUAL", KAFKA)
    assert [c.name for c in table.columns] == ["id", "name", "ts", "total", "off"]
    assert [c.name for c in table.physical_columns] == ["id", "name", "ts"]
    assert [c.name for c in table.metadata_columns] == ["off"]
    assert [c.name for c in table.computed_columns] == ["total"]
    assert [c.name for c in table.written_columns] == ["id", "name", "ts"]
    assert (table.connector.emits, table.connector.accepts) == (Emits.APPEND, Accepts.UPSERT)
    assert table.options.strings("topic") == ("t",)
    assert table.raw_options == KAFKA
    assert table.primary_key == ()
    assert table.column("name") is not None
    assert table.column("nam") is None


def test_columns_of_the_primary_key_become_not_null() -> None:
    table = create("id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", UPSERT)
    assert table.primary_key == ("id",)
    assert table.physical_columns[0].type == BIGINT.not_null()
    assert table.physical_columns[1].type.nullable


def _statement(*columns: Column, **rest: Any) -> CreateTable:
    """As LIKE may make it: the parser refuses most of what follows where it stands in one statement."""
    return CreateTable(text="", position=PLACE, name="t", columns=columns, options=KAFKA, **rest)


def _physical(name: str, kind: str) -> PhysicalColumn:
    return PhysicalColumn(name, parse_type(kind))


A = _physical("a", "INT")
TS = parse_expression("ts")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        (_statement(), "A table needs at least one column."),
        (_statement(A, _physical("a", "STRING")), "'a' is declared 2 times"),
        (_statement(A, primary_key=("b",)), "Invalid primary key: column 'b' does not exist."),
        (_statement(A, primary_key=("a", "a")), "Invalid primary key: column 'a' is in it 2 times."),
        (_statement(_physical("region", "INT"), primary_key=("regoin",)), "Did you mean 'region'?"),
        (_statement(A, ComputedColumn("b", TS), primary_key=("b",)), "column 'b' is not a physical column."),
        (_statement(_physical("a", "MAP<STRING, INT>"), primary_key=("a",)), "'a' is a MAP, which cannot be compared"),
        (_statement(A, watermark=WatermarkDeclaration("ts", TS)), "Invalid column name 'ts' for rowtime attribute"),
        (
            _statement(_physical("ts", "STRING"), watermark=WatermarkDeclaration("ts", TS)),
            "watermark definition: 'ts' is STRING",
        ),
        (
            _statement(_physical("ts", "TIMESTAMP(9)"), watermark=WatermarkDeclaration("ts", TS)),
            "a precision of at most 6",
        ),
        (_statement(A, partitioned_by=("b",)), "PARTITIONED BY names 'b', which is not a physical column."),
        (_statement(MetadataColumn("a", BIGINT, "ofset")), "Did you mean 'offset'?"),
        (_statement(MetadataColumn("a", BIGINT, "nope")), "connector 'kafka' has topic, partition, headers"),
        (_statement(MetadataColumn("a", DATE, "offset")), "'offset' is BIGINT NOT NULL, which cannot be cast to that"),
        (_statement(MetadataColumn("a", parse_type("MAP<STRING, INT>"), "headers")), "which cannot be cast to that"),
    ],
)
def test_columns_that_make_no_sense(statement: CreateTable, problem: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Catalog().create_table(statement)
    assert problem in str(raised.value)


@pytest.mark.parametrize(
    "columns",
    [
        "ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' SECOND",
        "ts TIMESTAMP_LTZ(3), WATERMARK FOR ts AS ts",
        "x STRING, ts AS TO_TIMESTAMP(x), WATERMARK FOR ts AS ts",
        "ts TIMESTAMP(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts",
        "p STRING METADATA FROM 'partition', o DOUBLE METADATA FROM 'offset'",
        "h MAP<STRING, STRING> METADATA FROM 'headers'",
    ],
)
def test_columns_that_do(columns: str) -> None:
    assert create(f"id INT, {columns}", KAFKA).columns


def test_partitions_are_harmless() -> None:
    catalog = Catalog()
    run(catalog, f"CREATE TABLE t (a INT, b INT) PARTITIONED BY (b) WITH ({with_clause(KAFKA)});")
    assert catalog.table("t").partitioned_by == ("b",)


def test_everything_that_is_wrong_with_a_table_comes_together() -> None:
    options = {**KAFKA, "topic": None, "topics": "t", "scan.startup.mode": "earliest", "json.ignore-errors": "true"}
    with pytest.raises(ValidationError) as raised:
        create("a INT", {**options, "properties.bootstrap.servers": None})
    text = str(raised.value)
    for part in (
        "Table 't' is not valid: 5 problems.",
        "properties.bootstrap.servers  (",
        "topics  Did you mean 'topic'?",
        "json.ignore-errors  Did you mean 'json.ignore-parse-errors'?",
        "Did you mean 'earliest-offset'?",
        "Either 'topic' or 'topic-pattern' must be set.",
        "line 1, column",
    ):
        assert part in text
    assert "Table options are:" not in text  # they are in the statement


@pytest.mark.parametrize(
    ("options", "fact", "rest"),
    [
        ({"topic": "t"}, "options do not contain an option key 'connector'", "kafka, print, upsert-kafka"),
        ({"conector": "kafka"}, "options do not contain an option key 'connector'", "'conector'"),
        ({"connector": "kafak"}, "Could not find any factory for identifier 'kafak'", "Did you mean 'kafka'?"),
    ],
)
def test_a_table_needs_a_connector(options: dict[str, str], fact: str, rest: str) -> None:
    with pytest.raises(ValidationError) as raised:
        create("a INT", options)
    assert fact in raised.value.fact
    assert rest in str(raised.value)


def test_names_are_unique_until_dropped() -> None:
    catalog = Catalog()
    table = f"TABLE t (a INT) WITH ({with_clause(KAFKA)})"
    run(catalog, f"CREATE {table}; CREATE TABLE IF NOT EXISTS t (b INT) WITH ('connector' = 'blackhole');")
    assert catalog.table("t").connector.identifier == "kafka"
    for again in (f"CREATE {table}", "CREATE VIEW t AS SELECT 1"):
        with pytest.raises(ValidationError, match="A table named 't' already exists"):
            run(catalog, again)
    with pytest.raises(ValidationError, match="'t' is a table"):
        run(catalog, "DROP VIEW t")
    run(catalog, "DROP TABLE t; DROP TABLE IF EXISTS t; CREATE VIEW t AS SELECT 1")
    assert isinstance(catalog.get("t"), View)
    with pytest.raises(ValidationError, match="'t' is a view, and a table is needed"):
        catalog.table("t")
    assert ([v.name for v in catalog.views()], catalog.tables(), catalog.names()) == (["t"], (), ("t",))


def test_an_unknown_table_gets_the_closest_name() -> None:
    catalog = Catalog()
    with pytest.raises(ValidationError, match="None has been created"):
        catalog.get("pageviews")
    run(catalog, "CREATE TABLE pageviews (a INT) WITH ('connector' = 'blackhole')")
    with pytest.raises(ValidationError, match=r"Did you mean 'pageviews'\?"):
        catalog.get("pageview")
    place = Position(1, 15, "SELECT * FROM Pageviews", 9)
    with pytest.raises(SqlError, match=r"line 1, column 15") as raised:
        catalog.get("Pageviews", place)
    assert "Did you mean 'pageviews'?" in str(raised.value)


def test_hints_make_another_table() -> None:
    catalog = Catalog()
    run(catalog, f"CREATE TABLE t (a INT) WITH ({with_clause(KAFKA)})")
    table = catalog.table("t")
    hinted = catalog.with_options(table, {"scan.bounded.mode": "latest-offset"})
    assert hinted.options.string("scan.bounded.mode") == "latest-offset"
    assert catalog.table("t").options.string("scan.bounded.mode") == "unbounded"
    assert catalog.with_options(table, {}) is table
    with pytest.raises(ValidationError, match=r"Did you mean 'scan.bounded.mode'\?"):
        catalog.with_options(table, {"scan.bound.mode": "latest-offset"})
    with pytest.raises(SqlError, match="cannot change the 'connector'"):
        catalog.with_options(table, {"connector": "print"})
