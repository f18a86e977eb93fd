"""Top-N, deduplication, LIMIT and UNNEST as plans, and what is refused of them."""

from __future__ import annotations

import pytest
from plan_tables import explained, plan, shape

from headwater.errors import SqlError, ValidationError
from headwater.plan import nodes as n

RANKED = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY n DESC) AS rn FROM {})"


def ranks(sql: str) -> list[n.Rank]:
    return [node for node in n.walk(plan(sql)) if isinstance(node, n.Rank)]


@pytest.mark.parametrize(
    ("condition", "first", "last"),
    [
        ("rn <= 3", 1, 3),
        ("rn < 3", 1, 2),
        ("3 >= rn", 1, 3),
        ("rn = 2", 2, 2),
        ("rn BETWEEN 2 AND 4", 2, 4),
        ("rn > 1 AND rn <= 3", 2, 3),
        ("rn <= 3 AND rn <= 2 AND id > 5", 1, 2),
    ],
)
def test_conditions_are_limits(condition: str, first: int, last: int) -> None:
    [rank] = ranks(f"INSERT INTO shown SELECT who, n FROM {RANKED.format('log_')} WHERE {condition}")
    assert (rank.first, rank.last) == (first, last)


def test_a_limit_reaches_through_views_joins_and_other_filters() -> None:
    [rank] = ranks(
        "INSERT INTO shown SELECT l.who, r.n FROM log_ AS l "
        f"JOIN (SELECT id AS i, who, n, rn AS place FROM {RANKED.format('ups')} WHERE n > 0) AS r ON l.who = r.who "
        "WHERE r.place <= 2"
    )
    assert rank.last == 2


@pytest.mark.parametrize("condition", ["TRUE", "rn > 3", "rn <= n", "rn <= 3 OR id = 1", "rn + 1 <= 3"])
def test_a_rank_without_a_limit_is_refused(condition: str) -> None:
    with pytest.raises(SqlError, match=r"ROW_NUMBER\(\) needs a limit") as refused:
        plan(f"INSERT INTO shown SELECT who, n FROM {RANKED.format('log_')} WHERE {condition}")
    assert refused.value.position is not None


def test_the_limit_of_a_lower_rank_is_not_pushed_below_an_upper_one() -> None:
    inner = RANKED.format("log_")
    with pytest.raises(SqlError, match="needs a limit"):
        plan(
            f"INSERT INTO shown SELECT who, n FROM (SELECT *, RANK() OVER (ORDER BY id) AS upper FROM {inner}) "
            "WHERE upper <= 3 AND rn <= 2"
        )


def test_the_first_row_of_inserts_is_a_deduplication() -> None:
    sql = f"INSERT INTO by_who SELECT who, n FROM {RANKED.format('log_')} WHERE rn = 1"
    assert shape(sql) == "Write Project Rank Scan"
    assert "Deduplicate by (who), first by (n DESC)" in explained(sql)
    assert ranks(sql)[0].keys == (("who",),)
    updating = f"INSERT INTO by_who SELECT who, n FROM {RANKED.format('ups')} WHERE rn = 1"
    assert "Rank ROW_NUMBER() OVER (PARTITION BY who ORDER BY n DESC) <= 1" in explained(updating)


def test_the_number_is_dropped_where_nobody_reads_it() -> None:
    [rank] = ranks(f"INSERT INTO shown SELECT who, n FROM {RANKED.format('ups')} WHERE rn <= 3")
    assert rank.number == ""
    [rank] = ranks(f"INSERT INTO shown SELECT who, rn FROM {RANKED.format('ups')} WHERE rn <= 3")
    assert rank.keys[0] == ("who", rank.number)


def test_rows_that_may_move_between_partitions_are_consolidated() -> None:
    sql = "INSERT INTO by_id SELECT id, n FROM {} WHERE rn <= 2"
    assert "Consolidate by (id)" in explained(sql.format(RANKED.format("ups")))
    within = "(SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY n DESC) AS rn FROM ups)"
    assert "Consolidate" not in explained(sql.format(within))


def test_over_groups() -> None:
    sql = (
        "INSERT INTO shown SELECT who, rn FROM (SELECT who, ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) AS rn "
        "FROM ups GROUP BY who) WHERE rn <= 3"
    )
    assert "Rank ROW_NUMBER() OVER (ORDER BY COUNT(*) DESC) <= 3" in explained(sql)


def test_a_named_window() -> None:
    sql = (
        "INSERT INTO shown SELECT who, r FROM (SELECT who, RANK() OVER w AS r FROM ups "
        "WINDOW w AS (PARTITION BY who ORDER BY n NULLS LAST)) WHERE r <= 3"
    )
    assert "RANK() OVER (PARTITION BY who ORDER BY n NULLS LAST)" in explained(sql)


@pytest.mark.parametrize(
    ("clauses", "shown"),
    [
        ("ORDER BY n DESC LIMIT 3", "Limit 3 order by (n DESC)"),
        ("ORDER BY 2, who LIMIT 3 OFFSET 5", "Limit 3 offset 5 order by (n, who)"),
        ("LIMIT 1", "Limit 1"),
        ("ORDER BY n FETCH FIRST 2 ROWS ONLY", "Limit 2 order by (n)"),
    ],
)
def test_limits(clauses: str, shown: str) -> None:
    assert f"{shown} " in explained(f"INSERT INTO shown SELECT who, n FROM ups {clauses}")


def test_order_by_what_is_not_selected() -> None:
    [rank] = ranks("INSERT INTO shown SELECT who, n FROM ups ORDER BY ups.extra LIMIT 2")
    assert len(rank.order) == 1
    assert plan("INSERT INTO shown SELECT who, n FROM ups ORDER BY extra LIMIT 2").input.names == ("who", "n")


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("SELECT who, n FROM ups ORDER BY n", "ORDER BY needs a LIMIT"),
        ("SELECT who, n FROM ups OFFSET 3", "OFFSET needs a LIMIT"),
        ("SELECT who, n FROM ups ORDER BY 3 LIMIT 1", "ORDER BY 3: there are 2 columns"),
        ("SELECT DISTINCT who, n FROM ups ORDER BY extra LIMIT 1", "must name a column of the result"),
        ("SELECT who, n FROM ups UNION ALL SELECT who, n FROM log_ ORDER BY id LIMIT 1", "no column 'id' to order by"),
        ("SELECT who, ROW_NUMBER() OVER (PARTITION BY who) FROM ups", "needs an ORDER BY in its OVER clause"),
        ("SELECT who, RANK() OVER w FROM ups", "no window 'w'"),
    ],
)
def test_refused(query: str, fact: str) -> None:
    with pytest.raises(SqlError, match=fact):
        plan(f"INSERT INTO shown {query}")


def test_a_rank_updates_its_result() -> None:
    with pytest.raises(ValidationError, match=r"produced by ORDER BY … LIMIT"):
        plan("INSERT INTO plain SELECT who, n FROM log_ ORDER BY n LIMIT 3")


def test_unnest() -> None:
    sql = "INSERT INTO shown SELECT tag, n FROM log_ CROSS JOIN UNNEST(tags) AS t (tag) WHERE n > 1"
    assert "Unnest tags AS (tag)" in explained(sql)
    assert plan(sql).input.mode is n.Mode.APPEND
    outer = "INSERT INTO shown SELECT tag, i FROM log_ LEFT JOIN UNNEST(tags) WITH ORDINALITY AS t (tag, i) ON TRUE"
    assert "Unnest outer tags AS (tag, i)" in explained(outer)
    assert "Unnest" in shape("INSERT INTO shown SELECT a, 1 FROM UNNEST(ARRAY['x', 'y']) AS t (a)")


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("SELECT tag, 1 FROM log_ CROSS JOIN UNNEST(tags) AS tag", ""),
        ("SELECT tag.tag, 1 FROM log_, UNNEST(tags) tag", ""),
        ("SELECT tag, tag.`ORDINALITY` FROM log_ CROSS JOIN UNNEST(tags) WITH ORDINALITY AS tag", ""),
        ("SELECT a, 1 FROM log_, UNNEST(ARRAY[ROW('x')]) AS a", ""),
        ("SELECT a, 1 FROM (VALUES ('x'), ('y')) AS a", ""),
        ("SELECT `EXPR$0`, 1 FROM log_, UNNEST(tags) AS tag", "Unknown column"),
        ("SELECT `EXPR$0`, 1 FROM (VALUES ('x')) AS a", "Unknown column"),
        ("SELECT a, 1 FROM (VALUES ('x') ORDER BY 1 LIMIT 1) AS a", "Unknown column"),
        ("SELECT a, 1 FROM (SELECT who FROM log_) AS a", "Unknown column"),
    ],
)
def test_the_only_column_of_an_unnest_is_named_by_its_alias(query: str, fact: str) -> None:
    if not fact:
        plan(f"INSERT INTO shown {query}")
        return
    with pytest.raises(SqlError, match=fact):
        plan(f"INSERT INTO shown {query}")


@pytest.mark.parametrize(
    ("joined", "fact"),
    [
        ("CROSS JOIN UNNEST(who) AS t (x)", "UNNEST takes an array, a map or a multiset, not STRING"),
        ("CROSS JOIN UNNEST(tags) AS t (x, y)", "2 column names are given for 1 columns"),
        ("RIGHT JOIN UNNEST(tags) AS t (x) ON TRUE", "CROSS JOIN, INNER JOIN and LEFT JOIN … ON TRUE"),
        ("LEFT JOIN UNNEST(tags) AS t (x) ON x = who", "CROSS JOIN, INNER JOIN and LEFT JOIN … ON TRUE"),
    ],
)
def test_unnest_refused(joined: str, fact: str) -> None:
    with pytest.raises(SqlError, match=fact):
        plan(f"INSERT INTO shown SELECT who, n FROM log_ {joined}")


@pytest.mark.parametrize(("direction", "kept", "mode"), [("", "first", "I"), ("DESC", "last", "I,UA,D")])
def test_deduplication_by_processing_time(direction: str, kept: str, mode: str) -> None:
    sql = (
        "INSERT INTO by_who SELECT who, n FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY p "
        f"{direction}) AS rn FROM (SELECT *, PROCTIME() AS p FROM log_)) WHERE rn = 1"
    )
    [rank] = ranks(sql)
    assert rank.kept == kept
    assert rank.mode.value == mode
    assert f"Deduplicate by (who), {kept} to come" in explained(sql)
