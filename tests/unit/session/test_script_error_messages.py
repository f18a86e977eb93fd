"""What errors and plans of a script say: in the words of the script, never in the planner's."""

from __future__ import annotations

import pytest
from order_tables import KAFKA, ORDERS

from headwater.errors import SqlError, ValidationError
from headwater.session import Session


def test_names_of_the_planner_never_show() -> None:
    script = ORDERS + "EXPLAIN SELECT UPPER(who), SUM(price) + 1 FROM orders GROUP BY UPPER(who) HAVING COUNT(*) > 1;"
    session = Session()
    results = session.sql(script)
    assert "__" not in str(results[-1].rows)
    none = "SET 'table.exec.sink.upsert-materialize' = 'none';"
    with pytest.raises(ValidationError) as caught:
        session.check(f"{none} INSERT INTO totals SELECT 'a', SUM(price) FROM orders GROUP BY UPPER(who)")
    assert "GROUP BY UPPER(who)" in str(caught.value)
    with pytest.raises(ValidationError, match=r"CAST\(UPPER\(who\) AS INT\)"):
        session.check(
            f"CREATE TABLE c (a INT) WITH ({KAFKA}, 'topic' = 'c', 'format' = 'json');"
            "INSERT INTO c SELECT UPPER(who) FROM orders"
        )


def test_names_of_the_other_side_of_a_join_never_show() -> None:
    session = Session()
    joined = "FROM orders o LEFT JOIN orders p ON o.id = p.id"
    with pytest.raises(ValidationError, match=r"CAST\(p\.id AS STRING\)"):
        session.check(f"{ORDERS} INSERT INTO lines SELECT p.id {joined}")
    with pytest.raises(ValidationError, match=r"RAND\(\) \* p\.price"):
        session.check(f"{ORDERS} INSERT INTO totals SELECT o.who, SUM(RAND() * p.price) {joined} GROUP BY o.who")
    with pytest.raises(SqlError, match=r"CAST\(p\.id AS STRING\)"):
        session.check(f"{ORDERS} CREATE VIEW v AS SELECT 'a' || p.id {joined}")
    with pytest.raises(ValidationError, match=r"CAST\(id0 AS STRING\)"):  # which is the user's own
        session.check(f"{ORDERS} INSERT INTO lines SELECT id0 FROM (SELECT id AS id0 FROM orders)")


def test_columns_of_a_window_are_shown_as_what_they_are() -> None:
    query = (
        "SELECT TUMBLE_START(at, INTERVAL '1' MINUTE), COUNT(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '1' MINUTE)"
    )
    results = Session().sql(f"{ORDERS} EXPLAIN {query}")
    shown = str(results[-1].rows)
    assert "group by (TUMBLE_START(at), TUMBLE_END(at))" in shown
    assert "__" not in shown


@pytest.mark.parametrize(
    ("script", "fact", "hint"),
    [
        ("INSERT INTO lines SELECT COUNTT(*) FROM orders", "There is no function 'COUNTT'", "Did you mean COUNT(*)?"),
        ("INSERT INTO lines SELECT SUM(*) FROM orders", "SUM takes no star: only COUNT does", "SUM(column)"),
        ("INSERT INTO lines SELECT who FORM orders", "Unexpected 'FORM'", "Did you mean FROM?"),
        ("INSERT INTO lines SELECT who FROM orders WERE id = 1", "Unexpected 'WERE'", "Did you mean WHERE?"),
        ("INSERT INTO lines SELECT who FROM orders GRUOP BY who", "Unexpected 'GRUOP'", "Did you mean GROUP BY?"),
        (
            "SELECT * FROM orders MATCH_RECOGNIZE (PATTERN (a))",
            "MATCH_RECOGNIZE is not supported",
            "headwater docs limits",
        ),
        ("SELECT who FROM orders # all of them", "Unexpected '#'", ""),
        ("SELECT who FROM orders)", "Unexpected ')'", ""),
        ("SELECT SOURCE_WATERMARK() FROM orders", "SOURCE_WATERMARK is not supported", "INTERVAL '5' SECOND"),
        ("SELECT id FROM orders WHERE id > ALL (SELECT 1)", "A comparison with ANY or ALL is not supported", "MAX"),
        (
            "CREATE TABLE c (a INT) WITH ('connector' = 'print' 'print-identifier' = 'x')",
            "Expected ',' or ')', found the string 'print-identifier'",
            "Is a ',' missing",
        ),
        ("CREATE TABLE c (a INT b INT) WITH ('connector' = 'print')", "Expected ')', found 'b'", "Is a ',' missing"),
        ("CREATE TABLE c (a INT 'b')", "Expected ')', found the string 'b'", ""),
        ("SELECT who, FROM orders", "Expected an expression, found 'FROM'", "Remove the ','"),
        ("SELECT who FROM orders WHERE who == 'a'", "Expected an expression, found '='", "one '='"),
        (
            "SELECT TUMBLE_START(at, INTERVAL '1' DAY), COUNT(*) FROM orders GROUP BY TUMBLE(at, INTERVAL '2' DAY)",
            "TUMBLE_START needs TUMBLE(…) with the same arguments in GROUP BY",
            "window_start",
        ),
        (
            "SELECT NTILE(4) OVER (ORDER BY at) FROM orders",
            "NTILE with OVER is not supported here",
            "headwater docs sql",
        ),
        ("SELECT PERCENTILE(price, 0.5) FROM orders", "PERCENTILE is not supported", "headwater docs functions-python"),
        ("SELECT LAG(price) FROM orders", "LAG needs OVER (…)", "OVER (ORDER BY …)"),
        (
            "CREATE TABLE c (a INT) WITH (connector = 'print')",
            "Expected an option's key in quotes, found 'connector'",
            "WITH ('key' = 'value', …)",
        ),
    ],
)
def test_messages_name_what_is_wrong(script: str, fact: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        Session().check(ORDERS + script)
    assert caught.value.fact == fact
    assert hint in caught.value.hint
