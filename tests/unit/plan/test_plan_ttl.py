"""`table.exec.state.ttl` in plans."""

from __future__ import annotations

from plan_tables import explained, plan


def test_the_setting_is_part_of_the_plan() -> None:
    sql = "INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who"
    assert plan(sql).ttl == 0
    assert plan(f"SET 'table.exec.state.ttl' = '1 h'; {sql}").ttl == 3_600_000
    assert "unused state is kept for 3600 s" in explained(f"SET 'table.exec.state.ttl' = '1 h'; {sql}")
