"""An operator that several parts of a query use runs once per batch, whatever its users filter or read of it."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import headwater
from headwater.testing.spark import spark_of_tests

BIDS = """CREATE TABLE bid (auction BIGINT, price BIGINT, ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND) WITH ('connector' = 'datagen', 'number-of-rows' = '20',
  'fields.auction.min' = '1', 'fields.auction.max' = '3', 'fields.price.min' = '1', 'fields.price.max' = '9');"""

QUERIES = {
    "its users read different columns": """CREATE VIEW totals AS
SELECT auction, COUNT(*) AS bids, SUM(price) AS amount FROM bid GROUP BY auction;
INSERT INTO result SELECT a.auction, b.amount FROM totals AS a JOIN totals AS b ON a.bids = b.amount""",
    "one of its users has a filter": """CREATE VIEW totals AS
SELECT auction, COUNT(*) AS bids FROM bid GROUP BY auction;
INSERT INTO result SELECT auction, bids FROM totals WHERE bids > 2 UNION ALL SELECT bids, auction FROM totals""",
    "windows are joined with their maximum": """CREATE VIEW counted AS SELECT auction, COUNT(*) AS num,
  window_start AS s, window_end AS e
  FROM TABLE(HOP(TABLE bid, DESCRIPTOR(ts), INTERVAL '2' SECOND, INTERVAL '4' SECOND))
  GROUP BY auction, window_start, window_end;
INSERT INTO result SELECT c.auction, c.num FROM counted AS c
JOIN (SELECT MAX(num) AS most, s, e FROM counted GROUP BY s, e) AS m ON c.s = m.s AND c.e = m.e AND c.num >= m.most""",
}


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES)
def test_it_runs_once(query: str, tmp_path: Path, plans_with_reuse: list[str]) -> None:
    sink = "CREATE TABLE result (a BIGINT, b BIGINT) WITH ('connector' = 'blackhole');"
    with headwater.connect(spark_of_tests(), checkpoint=str(tmp_path)) as session:
        session.sql(f"{BIDS}{sink}{query};")
        session.wait()
    assert plans_with_reuse
    for plan in plans_with_reuse:
        stages = Counter(re.findall(r"MapInArrow run\([^)]*\)#(\d+)", plan))
        assert max(stages.values()) == 1, plan
        assert "ReusedExchange" in plan
