"""Joins and queries inside of conditions: what they become, what they keep apart, and what is refused."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import pytest
from plan_tables import explained, plan, query, session

from headwater.errors import SqlError
from headwater.plan import nodes as n


def joins_of(sql: str) -> list[n.Join]:
    """From the top down."""
    root = plan(f"INSERT INTO shown {sql}")
    return [node for node in reversed(n.walk(root)) if isinstance(node, n.Join)]


def described(sql: str) -> list[str]:
    return [node.shown(node.described()) for node in joins_of(sql)]


def test_rows_that_are_not_distinct_meet_by_a_hash() -> None:
    (join,) = joins_of("SELECT a.who, b.n FROM log_ a LEFT JOIN ups b ON a.who IS NOT DISTINCT FROM b.who")
    assert join.described() == "LeftJoin on (who IS NOT DISTINCT FROM who0)"
    assert isinstance(join.condition, n.Comparison)
    assert join.condition.operator == "IS NOT DISTINCT FROM"
    (left,), (right,) = join.left_keys, join.right_keys
    assert isinstance(join.left, n.Project)
    assert dict(zip(join.left.names, join.left.expressions, strict=True))[left].sql == "xxhash64(`who`)"
    assert right not in ("who", "who0")
    with pytest.raises(SqlError, match="A join needs a condition with an equality"):
        joins_of("SELECT a.who, b.n FROM log_ a JOIN ups b ON CAST(a.n AS DOUBLE) IS NOT DISTINCT FROM b.n + 0e0")


@pytest.mark.parametrize(
    ("sql", "joins"),
    [
        ("SELECT a.who, b.n FROM log_ a JOIN ups b ON a.id = b.id", ["Join on (id = id0)"]),
        ("SELECT a.who, b.n FROM log_ a, ups b WHERE a.id = b.id", ["Join on (id = id0)"]),
        ("SELECT a.who, b.n FROM log_ a CROSS JOIN ups b WHERE b.id = a.id", ["Join on (id0 = id)"]),
        ("SELECT a.who, b.n FROM log_ a LEFT JOIN ups b ON a.id = b.id AND a.n > b.n", ["LeftJoin on (id = id0) AND (n > n0)"]),
        ("SELECT a.who, b.n FROM log_ a RIGHT JOIN ups b ON a.id = b.id", ["RightJoin on (id = id0)"]),
        ("SELECT a.who, b.n FROM log_ a FULL JOIN ups b ON a.id = b.id", ["FullJoin on (id = id0)"]),
        ("SELECT a.who, n FROM log_ a JOIN (SELECT id, MAX(n) AS m FROM ups GROUP BY id) b USING (id)", ["Join on (id = id0)"]),
        (
            "SELECT a, b FROM (SELECT id, who AS a FROM log_) JOIN (SELECT id, n AS b FROM ups) USING (id) JOIN (SELECT id FROM by_id) USING (id)",
            ["Join on (id = id1)", "Join on (id = id0)"],
        ),
        ("SELECT who, 1 FROM log_ NATURAL JOIN (SELECT id, n FROM ups) AS b", ["Join on (id = id0) AND (n = n0)"]),
        ("SELECT who, n FROM log_ WHERE id IN (SELECT id FROM ups)", ["SemiJoin on (id = id0)"]),
        ("SELECT who, n FROM log_ l WHERE EXISTS (SELECT * FROM ups WHERE ups.id = l.id AND ups.n < l.n)", ["SemiJoin on (id0 = id) AND (n0 < n)"]),
        ("SELECT who, n FROM log_ l WHERE NOT EXISTS (SELECT * FROM ups u WHERE u.id = l.id)", ["AntiJoin on (id0 = id)"]),
        ("SELECT who, n FROM ups WHERE id NOT IN (SELECT id FROM by_id)", ["AntiJoin on (id = id0)"]),
        ("SELECT who, n FROM log_ WHERE id NOT IN (SELECT id FROM ups)", ["AntiJoin on (id = id0) IS NOT FALSE"]),
        ("SELECT who, n FROM log_ WHERE (id, n) IN (SELECT id, n FROM ups)", ["SemiJoin on (id = id0) AND (n = n0)"]),
        ("SELECT who, n FROM log_ WHERE n = (SELECT MAX(n) FROM ups)", ["Join on (n = MAX(n))"]),
        ("SELECT who, n FROM log_ WHERE n > (SELECT AVG(u.n) FROM ups u WHERE u.id = log_.id)", ["Join on (id = id) AND (n > AVG(n))"]),
        ("SELECT who, n + (SELECT COUNT(*) FROM ups) FROM log_", ["LeftJoin of all rows"]),
        ("SELECT who, SUM(n) FROM log_ GROUP BY who HAVING SUM(n) > (SELECT MIN(n) FROM ups)", ["Join on (SUM(n) > MIN(n))"]),
        ("SELECT (SELECT who FROM ups u WHERE u.id = l.id), n FROM log_ l", ["LeftJoin on (id = id)"]),
        ("SELECT who, n FROM log_ l WHERE id NOT IN (SELECT id FROM ups WHERE ups.n < l.n)", ["AntiJoin on (n0 < n) AND (id = id0) IS NOT FALSE"]),
        ("SELECT who, n FROM log_ WHERE EXISTS (SELECT 1 FROM ups)", ["SemiJoin of all rows"]),
        ("SELECT who, n FROM log_ WHERE n = 1 OR id IN (SELECT id FROM ups)", ["MarkJoin on (id = id0)"]),
        ("SELECT who, n FROM log_ WHERE n = 1 OR NOT (id IN (SELECT id FROM ups))", ["MarkJoin on (id = id0) IS NOT FALSE"]),
        ("SELECT who, n FROM ups WHERE n = 1 OR id NOT IN (SELECT id FROM by_id)", ["MarkJoin on (id = id0)"]),
        ("SELECT who, n FROM log_ l WHERE n = 1 OR NOT EXISTS (SELECT 1 FROM ups u WHERE u.id = l.id AND u.n > l.n)", ["MarkJoin on (id0 = id) AND (n0 > n)"]),
        ("SELECT CASE WHEN id IN (SELECT id FROM ups) THEN who END, n FROM log_", ["MarkJoin on (id = id0)"]),
        ("SELECT CASE WHEN id NOT IN (SELECT id FROM ups) THEN who END, n FROM log_", ["MarkJoin on (id = id0) IS NOT FALSE"]),
        ("SELECT CASE n IN (SELECT n FROM ups) WHEN TRUE THEN who END, n FROM log_", ["MarkJoin on (n = n0) IS NOT FALSE", "MarkJoin on (n = n0)"]),
        ("SELECT CAST(id IN (SELECT id FROM ups) AS STRING), n FROM log_", ["MarkJoin on (id = id0) IS NOT FALSE", "MarkJoin on (id = id0)"]),
        ("SELECT who, SUM(CASE WHEN id IN (SELECT id FROM ups) THEN 1 END) FROM log_ GROUP BY who", ["MarkJoin on (id = id0)"]),
        ("SELECT who, COUNT(*) FILTER (WHERE id IN (SELECT id FROM ups)) FROM log_ GROUP BY who", ["MarkJoin on (id = id0)"]),
        ("SELECT who, COUNT(*) FROM log_ GROUP BY who HAVING COUNT(*) > 3 OR who IN (SELECT who FROM ups)", ["MarkJoin on (who = who0)"]),
        ("SELECT a.who, b.n FROM log_ a JOIN by_id b ON a.id = b.id AND a.n IN (SELECT n FROM ups)", ["SemiJoin on (n = n1)", "Join on (id = id0)"]),
        ("SELECT who, n FROM log_ l WHERE EXISTS (SELECT DISTINCT u.n FROM ups u WHERE u.id = l.id ORDER BY u.n LIMIT 1)", ["SemiJoin on (id0 = id)"]),
        ("SELECT who, n FROM log_ l WHERE n IN (SELECT DISTINCT u.n FROM ups u WHERE u.id = l.id)", ["SemiJoin on (n = n0) AND (id0 = id)"]),
        ("SELECT who, n FROM (SELECT who, n, EXISTS (SELECT 1 FROM ups u WHERE u.id = l.id) FROM log_ l)", []),
        (
            "SELECT a.who, c.n FROM log_ a, by_id b, ups c WHERE (a.id = c.id AND b.id = c.id AND a.n = 1) OR (a.id = c.id AND b.id = c.id AND b.n = 2)",
            ["Join on (id0 = id1) AND ((n = 1) OR (n0 = 2))", "Join on (id = id1)"],
        ),
    ],
)  # fmt: skip
def test_joins(sql: str, joins: list[str]) -> None:
    assert described(sql) == joins


@pytest.mark.parametrize(
    ("sql", "keys"),
    [
        ("SELECT a.id, b.id AS b_id, b.n FROM ups a JOIN by_id b ON a.id = b.id", {("id",), ("b_id",)}),
        ("SELECT a.id, b.id AS b_id FROM ups a LEFT JOIN by_id b ON a.n = b.id", {("id",)}),
        ("SELECT a.id, b.id AS b_id FROM ups a JOIN ups b ON a.n = b.n", {("id", "b_id")}),
        ("SELECT a.id, b.id AS b_id FROM ups a FULL JOIN by_id b ON a.id = b.id", {("id", "b_id")}),
        ("SELECT a.id FROM log_ l JOIN ups a ON a.id = l.id", set()),
        ("SELECT id FROM ups WHERE id IN (SELECT id FROM log_)", {("id",)}),
        ("SELECT CAST(id AS STRING) AS s, CAST(id AS BIGINT) AS b, CAST(id AS TINYINT) AS t FROM ups", {("s",), ("b",)}),
        ("SELECT CAST(CAST(id AS BIGINT) AS STRING) AS s FROM ups", {("s",)}),
    ],
)  # fmt: skip
def test_keys_of_joins(sql: str, keys: set[tuple[str, ...]]) -> None:
    assert set(query(sql).keys) == keys


@pytest.mark.parametrize(
    ("sql", "mode"),
    [
        ("SELECT a.who, b.n FROM log_ a JOIN log_ b ON a.id = b.id", n.Mode.APPEND),
        ("SELECT who, n FROM log_ WHERE id IN (SELECT CAST(n AS INT) FROM log_)", n.Mode.APPEND),
        ("SELECT a.who, b.n FROM log_ a LEFT JOIN log_ b ON a.id = b.id", n.Mode.RETRACT),
        ("SELECT who, n FROM log_ l WHERE NOT EXISTS (SELECT 1 FROM plain WHERE plain.n = l.n)", n.Mode.RETRACT),
        ("SELECT a.who, b.n FROM log_ a JOIN ups b ON a.id = b.id", n.Mode.RETRACT),
    ],
)
def test_inserts_stay_inserts_where_nothing_is_shown_too_early(sql: str, mode: n.Mode) -> None:
    assert plan(f"INSERT INTO shown {sql}").input.mode is mode


def test_a_join_by_the_sinks_key_emits_one_net_change() -> None:
    root = plan("INSERT INTO by_id SELECT a.id, a.n + b.n FROM ups a JOIN by_id b ON a.id = b.id")
    (join,) = [node for node in n.walk(root) if isinstance(node, n.Join)]
    assert not join.before
    assert root.input.mode is n.Mode.UPSERT


def test_rows_of_a_key_in_several_partitions_are_consolidated() -> None:
    root = plan("INSERT INTO by_id SELECT a.id, b.n FROM ups a JOIN by_id b ON a.n = b.id")
    assert isinstance(root.input, n.Consolidate)


def test_filters_and_columns_go_down_to_the_scans() -> None:
    root = plan(
        "INSERT INTO shown SELECT a.who, b.n FROM ups a LEFT JOIN by_id b ON a.id = b.id AND b.n > 5 WHERE a.n < 3"
    )
    found = [node for node in n.walk(root) if isinstance(node, n.FilterToDelete)]
    assert [node.predicate.text for node in found] == ["(n < 3)", "(n > 5)"]
    (join,) = [node for node in n.walk(root) if isinstance(node, n.Join)]
    assert [side.names for side in join.inputs] == [("id", "who"), ("id0", "n0")]


def test_the_columns_of_using_are_one() -> None:
    node = query("SELECT * FROM log_ AS a FULL JOIN (SELECT id, extra FROM ups) AS b USING (id)")
    assert node.names == ("id", "who", "n", "d", "tags", "extra")
    assert query("SELECT a.*, b.* FROM by_id a JOIN by_id b ON a.id = b.id").names == ("id", "n", "id0", "n0")


@pytest.mark.parametrize(
    ("sql", "fact", "at"),
    [
        ("SELECT a.who, b.n FROM log_ a JOIN ups b ON a.n > b.n", "A join needs a condition with an equality", "JOIN"),
        ("SELECT a.who, b.n FROM log_ a, ups b", "A join needs a condition with an equality", ", ups"),
        ("SELECT who, 1 FROM log_ a JOIN ups b ON a.id = b.id", "Column 'who' is ambiguous", "who,"),
        ("SELECT a.who, 1 FROM log_ a JOIN ups b ON id = b.id", "Column 'id' is ambiguous", "id = b"),
        ("SELECT a.who, 1 FROM log_ a JOIN ups b ON a.x = b.id", "Unknown column 'x' in 'a'", "x = b.id"),
        ("SELECT a.who, 1 FROM log_ a JOIN ups b USING (tags)", "Unknown column 'tags'", "tags"),
        ("SELECT a.who, 1 FROM log_ a LEFT JOIN ups b ON a.id = b.id AND a.n + b.n > 3", "A condition of a LEFT JOIN cannot compute", "a.n + b.n"),
        ("SELECT who, 1 FROM log_ WHERE id IN (SELECT id, n FROM ups)", "IN compares 1 values with 2 columns", "id IN"),
        ("SELECT who, (SELECT n FROM ups) FROM log_", "A scalar subquery must be known to return at most one row", "(SELECT"),
        ("SELECT who, (SELECT MAX(u.n) FROM ups u WHERE u.n < log_.n) FROM log_", "can name columns of the query around it in equalities only", "u.n < log_"),
        ("SELECT who, (SELECT MAX(u.n) FROM ups u WHERE u.n = log_.zzz) FROM log_", "Unknown column 'zzz' in 'log_'", "zzz"),
        ("SELECT a.who, t.c FROM ups a, LATERAL (SELECT COUNT(*) + 1 AS c FROM log_ l WHERE l.id = a.id) t", "A LATERAL query of aggregates without GROUP BY selects aggregates only", "COUNT"),
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT n FROM log_ l WHERE l.id > a.id LIMIT 1) AS t", "A LATERAL query with aggregates, DISTINCT or LIMIT", "l.id > a.id"),
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT n FROM log_ l WHERE l.id > a.id) AS t", "A join needs a condition with an equality", ", LATERAL"),
        ("SELECT a.who, t.n FROM ups a RIGHT JOIN LATERAL (SELECT n FROM log_ l WHERE l.id = a.id) AS t ON TRUE", "LATERAL can be joined by", "RIGHT"),
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT n FROM log_ UNION ALL SELECT n FROM by_id) AS t", "The query of LATERAL is a SELECT with FROM", "UNION"),
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT n FROM log_ l WHERE l.id = a.zzz) AS t", "Unknown column 'zzz'", "zzz"),
        ("SELECT who, 1 FROM log_ WHERE EXISTS (SELECT 1 FROM ups WHERE ups.id = 7 AND nope = 1)", "Unknown column 'nope'", "nope"),
    ],
)  # fmt: skip
def test_what_is_refused_is_shown_at_its_place(sql: str, fact: str, at: str) -> None:
    text = f"INSERT INTO shown {sql}"
    with pytest.raises(SqlError) as raised:
        plan(text)
    assert fact in raised.value.fact
    assert raised.value.position is not None
    assert raised.value.position.column == text.index(at) + 1


@pytest.mark.parametrize(
    ("sql", "nodes"),
    [
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT n FROM log_ WHERE id = a.id ORDER BY n DESC LIMIT 2 OFFSET 1) AS t", ["Join on (id = id)", "Rank ROW_NUMBER() OVER (PARTITION BY id ORDER BY n DESC) from 2 to 3"]),
        ("SELECT a.who, t.n FROM ups a LEFT JOIN LATERAL (SELECT * FROM log_ l WHERE l.id = a.id AND l.n > a.n) AS t ON TRUE", ["LeftJoin on (id = id) AND (n > n)"]),
        ("SELECT a.who, x FROM ups a CROSS JOIN LATERAL (SELECT n FROM log_ l WHERE l.id = a.id AND l.who = 'x') AS t (x)", ["Join on (id = id)"]),
        ("SELECT a.who, t.c FROM ups a, LATERAL (SELECT COUNT(*) AS c FROM log_ l WHERE l.id = a.id) AS t", ["LeftJoin on (id = id)", "Aggregate group by (id) [COUNT(*)]"]),
        ("SELECT a.who, t.s FROM ups a JOIN LATERAL (SELECT SUM(n) AS s FROM log_ l WHERE l.id = a.id GROUP BY who) AS t ON t.s > 3", ["Join on (id = id)", "Aggregate group by (who, id) [SUM(n)]"]),
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT DISTINCT n FROM log_ l WHERE l.id = a.id) AS t", ["Join on (id = id)", "Aggregate group by (n, id) []"]),
        ("SELECT a.who, t.n FROM ups a, LATERAL (SELECT MAX(n) AS n FROM log_) AS t", ["Join of all rows", "Aggregate group by () [MAX(n)]"]),
    ],
)  # fmt: skip
def test_lateral_queries_are_joins(sql: str, nodes: list[str]) -> None:
    kinds = n.Join | n.Rank | n.Aggregate
    walked = [node for node in reversed(n.walk(plan(f"INSERT INTO shown {sql}"))) if isinstance(node, kinds)]
    assert [node.shown(node.described()) for node in walked] == nodes


def test_a_count_of_nothing_is_zero() -> None:
    sql = "SELECT id, c, s FROM ups, LATERAL (SELECT COUNT(n) AS c, SUM(n) AS s FROM log_ l WHERE l.id = ups.id)"
    node = query(sql)
    assert [str(c.type) for c in node.columns] == ["INT NOT NULL", "BIGINT NOT NULL", "BIGINT"]
    assert node.keys == (("id",),)
    assert query(sql.replace("id, c, s", "*")).names == ("id", "who", "n", "extra", "c", "s"), "no further columns"


def test_a_mark_is_shown_as_what_it_asks() -> None:
    text = explained("INSERT INTO shown SELECT who, n FROM log_ WHERE n = 1 OR id NOT IN (SELECT id FROM ups)")
    assert "Filter ((n = 1) OR NOT MATCHED((id = id0) IS NOT FALSE))" in text


def test_a_mark_keeps_the_keys_of_the_left() -> None:
    node = query(
        "SELECT id, EXISTS (SELECT 1 FROM log_ WHERE log_.id = ups.id) AS seen, n IN (SELECT n FROM log_) AS m FROM ups"
    )
    assert node.keys == (("id",),)
    assert node.mode is n.Mode.RETRACT
    assert [str(c.type) for c in node.columns] == ["INT NOT NULL", "BOOLEAN NOT NULL", "BOOLEAN"]


def test_a_join_without_an_equality_can_be_allowed() -> None:
    allowed = session()
    allowed.sql("SET 'headwater.join.without-equality' = 'true'")
    (root,) = allowed.check("INSERT INTO shown SELECT a.who, b.n FROM log_ a JOIN ups b ON a.n > b.n")
    (join,) = [node for node in n.walk(root) if isinstance(node, n.Join)]
    assert join.partitioned_by == ()
