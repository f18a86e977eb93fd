"""Of a ROW that a table has, only the fields that a query names are decoded."""

from __future__ import annotations

import pytest

from headwater.catalog.tables import Table
from headwater.connectors.kafka.read.payloads import with_fields
from headwater.plan import nodes as n
from headwater.session import Session

TABLES = """
CREATE TABLE events (
  kind INT,
  bid ROW<auction BIGINT, price BIGINT, note STRING, place ROW<city STRING, street STRING>>,
  person ROW<id BIGINT, name STRING>,
  ts AS CASE WHEN kind = 0 THEN bid.price ELSE person.id END
) WITH ('connector' = 'kafka', 'topic' = 'e', 'properties.bootstrap.servers' = 'k:9092', {format});
CREATE VIEW bids AS SELECT bid, ts FROM events WHERE kind = 0;
CREATE TABLE shown (a BIGINT, b BIGINT) WITH ('connector' = 'print');
CREATE TABLE whole (a ROW<id BIGINT, name STRING>) WITH ('connector' = 'print');
"""
JSON = "'format' = 'json'"


def scan(sql: str, table_format: str = JSON) -> n.Scan:
    session = Session()
    session.sql(TABLES.replace("{format}", table_format))
    (root,) = session.check(sql)
    (found,) = [node for node in n.walk(root) if isinstance(node, n.Scan)]
    return found


@pytest.mark.parametrize(
    ("sql", "fields"),
    [
        ("SELECT bid.auction, person.id FROM events", {"bid": ("auction",), "person": ("id",)}),
        ("SELECT bid.auction, ts FROM events", {"bid": ("auction", "price"), "person": ("id",)}),
        ("SELECT b.bid.auction, b.ts FROM bids AS b", {"bid": ("auction", "price")}),  # where kind is 0
        ("SELECT 1, COUNT(*) FROM events WHERE person.name = 'x'", {"person": ("name",)}),
        ("SELECT MAX(bid.price), bid.auction FROM events GROUP BY bid.auction", {"bid": ("auction", "price")}),
        ("SELECT CHAR_LENGTH(bid.place.city), 1 FROM events", {"bid": ("place",)}),
        # read as a whole, too
        ("SELECT bid.auction, person.id FROM events WHERE bid IS NOT NULL", {"person": ("id",)}),
        ("SELECT x.auction, COUNT(*) FROM (SELECT DISTINCT bid AS x FROM events) GROUP BY x.auction", {}),
    ],
)
def test_fields_that_are_read(sql: str, fields: dict[str, tuple[str, ...]]) -> None:
    assert dict(scan(f"INSERT INTO shown {sql}").fields) == fields


def test_a_row_that_is_written_is_read_as_a_whole() -> None:
    assert dict(scan("INSERT INTO whole SELECT person FROM events WHERE bid.price > 1").fields) == {"bid": ("price",)}


def test_explain_names_the_fields() -> None:
    described = scan("INSERT INTO shown SELECT kind, person.id FROM events").described()
    assert described == "Scan events (kafka) [kind, person.id]"


def _narrowed(table_format: str) -> list[str]:
    table: Table = scan("INSERT INTO shown SELECT kind, person.id FROM events", table_format).table
    (column,) = [c for c in with_fields(table, {"person": ("id",)}).physical_columns if c.name == "person"]
    return [field.name for field in column.type.fields]


def test_json_finds_fields_by_name() -> None:
    assert _narrowed(JSON) == ["id"]


@pytest.mark.parametrize("table_format", ["'format' = 'avro'", f"{JSON}, 'json.fail-on-missing-field' = 'true'"])
def test_other_formats_need_all_fields(table_format: str) -> None:
    assert _narrowed(table_format) == ["id", "name"]
