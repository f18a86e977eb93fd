"""`table.exec.state.ttl`, and hints, in plans."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import pytest
from plan_tables import explained, plan, session

from headwater.errors import SqlError
from headwater.plan import nodes as n


def test_the_setting_is_part_of_the_plan() -> None:
    sql = "INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who"
    assert plan(sql).ttl == 0
    assert plan(f"SET 'table.exec.state.ttl' = '1 h'; {sql}").ttl == 3_600_000
    assert "unused state is kept for 3600 s" in explained(f"SET 'table.exec.state.ttl' = '1 h'; {sql}")


HOUR = 3_600_000


@pytest.mark.parametrize(
    ("sql", "ttls"),
    [
        ("SELECT /*+ STATE_TTL('a' = '1 h', 'b' = '0 s') */ a.who, b.n FROM log_ a JOIN ups b ON a.id = b.id WHERE a.n > 3", {"Join": (HOUR, 0)}),
        ("SELECT /*+ STATE_TTL('ups' = '1 h') */ a.who, ups.n FROM log_ a LEFT JOIN ups ON a.id = ups.id", {"Join": (None, HOUR)}),
        ("SELECT /*+ STATE_TTL('c' = '1 h') */ a.who, c.n FROM log_ a JOIN ups b ON a.id = b.id JOIN by_id c ON c.id = b.n", {"Join": (None, HOUR)}),
        ("SELECT /*+ STATE_TTL('log_' = '1 h') */ who, COUNT(*) FROM log_ GROUP BY who", {"Aggregate": (HOUR,)}),
        ("SELECT /*+ STATE_TTL('l' = '1 h'), STATE_TTL('l' = '2 h') */ DISTINCT who, n FROM log_ l", {"Aggregate": (HOUR,)}),
        ("SELECT /*+ STATE_TTL('q' = '1 h') */ who, MAX(m) FROM (SELECT who, COUNT(*) AS m FROM log_ GROUP BY who, n) AS q GROUP BY who", {"Aggregate": (HOUR,)}),
        ("SELECT who, n FROM (SELECT /*+ STATE_TTL('log_' = '1 h') */ *, ROW_NUMBER() OVER (PARTITION BY who ORDER BY n DESC) AS r FROM log_) WHERE r < 3", {"Rank": (HOUR,)}),
        ("WITH v AS (SELECT id, who, n FROM log_) SELECT /*+ STATE_TTL('a' = '1 h') */ a.who, b.n FROM v a JOIN v b ON a.id = b.id", {"Join": (HOUR, None)}),
        ("SELECT /*+ STATE_TTL('log_' = '1 h') */ who, n FROM log_", {}),
        ("SELECT /*+ BROADCAST(b), LOOKUP('table' = 'b') */ a.who, b.n FROM log_ a JOIN ups b ON a.id = b.id", {}),
    ],
)  # fmt: skip
def test_state_ttl_is_that_of_the_operator_that_reads_the_table(
    sql: str, ttls: dict[str, tuple[int | None, ...]]
) -> None:
    found = {type(node).__name__: node.ttls for node in n.walk(plan(f"INSERT INTO shown {sql}")) if node.ttls}
    assert found == ttls


@pytest.mark.parametrize(
    ("hint", "fact", "said", "at"),
    [
        ("STATE_TTL('log' = '1 h')", "STATE_TTL names 'log', which is not in FROM.", "Did you mean 'log_'?", "'log'"),
        ("STATE_TTL('ups' = '1 h')", "STATE_TTL names 'ups', which is not in FROM.", "named by that", "'ups'"),
        ("STATE_TTL('log_' = '1 x')", "STATE_TTL takes a duration.", "", "'1 x'"),
        ("STATE_TTL(log_)", "STATE_TTL takes names and durations.", "/*+ STATE_TTL(", "log_"),
        ("STATETTL('log_' = '1 h')", "Unknown hint 'STATETTL'.", "Did you mean 'STATE_TTL'?", "STATETTL"),
        ("OPTIONS('a' = 'b')", "OPTIONS is a hint of a table, not of a query.", "Write FROM t /*+ OPTIONS", "OPTIONS"),
    ],
)
def test_wrong_hints(hint: str, fact: str, said: str, at: str) -> None:
    text = f"INSERT INTO shown SELECT /*+ {hint} */ who, COUNT(*) FROM log_ GROUP BY who"
    with pytest.raises(SqlError) as caught:
        plan(text)
    assert caught.value.fact == fact
    assert said in caught.value.hint
    assert caught.value.position is not None
    assert caught.value.position.column == text.index(at) + 1


def test_a_hint_is_shown_and_one_without_effect_is_noted() -> None:
    hinted = "SELECT /*+ STATE_TTL('a' = '1 h', 'b' = '0 s'), BROADCAST(b) */ a.who, b.n FROM log_ a JOIN ups b ON a.id = b.id"
    assert "state: the rows of both sides, kept left for 3600 s, right forever" in explained(
        f"INSERT INTO shown {hinted}"
    )
    outcome = session().sql(f"EXPLAIN INSERT INTO shown {hinted}; CREATE VIEW v AS {hinted}")
    for result in outcome:
        assert "The hint BROADCAST has no effect: how a join is computed is not chosen by hints." in result.notes
