"""DESCRIBE and SHOW CREATE TABLE."""

from __future__ import annotations

from catalog_scripts import UPSERT, create, run

from headwater.catalog import Catalog
from headwater.catalog.describe import DescribeRow, describe_table, show_create
from headwater.plan.validation import column_types

COLUMNS = """
  id BIGINT COMMENT 'who', v STRING NOT NULL, ts TIMESTAMP(3), n AS id + 1,
  off BIGINT METADATA FROM 'offset' VIRTUAL, headers MAP<STRING, BYTES> METADATA,
  WATERMARK FOR ts AS ts - INTERVAL '2' SECOND, PRIMARY KEY (id) NOT ENFORCED
"""
SECRET = {**UPSERT, "properties.sasl.jaas.config": "hunter2", "properties.client.id": "it''s"}


def test_describe() -> None:
    table = create(COLUMNS, UPSERT)
    rows = {row.name: row for row in describe_table(table, column_types(table))}
    assert rows["id"] == DescribeRow("id", "BIGINT", False, "PRI(id)", "", "", "who")
    assert rows["v"] == DescribeRow("v", "STRING", False, "", "", "", "")
    assert rows["ts"].watermark.startswith("ts - INTERVAL '2' SECOND") or "INTERVAL" in rows["ts"].watermark
    assert (rows["n"].type, rows["n"].extras) == ("BIGINT", "AS id + 1")
    assert rows["off"].extras == "METADATA FROM 'offset' VIRTUAL"
    assert rows["headers"].extras == "METADATA"


def test_show_create_hides_secrets_and_can_be_run_again() -> None:
    text = show_create(create(COLUMNS, SECRET))
    assert "hunter2" not in text
    assert "'properties.sasl.jaas.config' = '******'" in text
    assert "PRIMARY KEY (`id`) NOT ENFORCED" in text
    again = Catalog()
    run(again, text)
    assert show_create(again.table("t")) == text
    assert again.table("t").raw_options["properties.client.id"] == "it's"


def test_a_view_is_shown_as_it_was_written() -> None:
    catalog = Catalog()
    run(catalog, "CREATE VIEW v AS SELECT  1 ;")
    assert show_create(catalog.get("v")).startswith("CREATE VIEW v AS SELECT  1")
