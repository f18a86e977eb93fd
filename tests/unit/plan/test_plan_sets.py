"""INTERSECT and EXCEPT as plans."""

from __future__ import annotations

import pytest
from plan_tables import explained, plan, query, shape

from headwater.errors import SqlError
from headwater.plan.nodes import Mode


def test_both_sides_give_full_changelogs() -> None:
    assert shape("INSERT INTO changes SELECT who, n FROM log_ EXCEPT SELECT who, n FROM ups") == (
        "Write Project SetOperation Project Normalize Scan Project Scan"
    )


@pytest.mark.parametrize(
    ("function", "mode"), [("INTERSECT", Mode.APPEND), ("INTERSECT ALL", Mode.APPEND), ("EXCEPT", Mode.RETRACT)]
)
def test_the_intersection_of_logs_only_grows(function: str, mode: Mode) -> None:
    assert query(f"SELECT who, n FROM log_ {function} SELECT who, n FROM log_").mode is mode


def test_keys() -> None:
    assert query("SELECT id, n FROM ups EXCEPT ALL SELECT id, n FROM log_").keys == (("id",),)
    assert query("SELECT id, n FROM log_ EXCEPT ALL SELECT id, n FROM ups").keys == ()
    assert query("SELECT id, n FROM log_ INTERSECT ALL SELECT id, n FROM ups").keys == (("id",),)
    assert query("SELECT id, n FROM log_ EXCEPT SELECT id, n FROM ups").keys == (("id", "n"),)
    assert plan("INSERT INTO by_id SELECT id, n FROM ups INTERSECT SELECT id, n FROM ups WHERE n > 1")


def test_types_are_made_the_same() -> None:
    node = query("SELECT id FROM log_ EXCEPT SELECT n FROM log_")
    assert [str(c.type) for c in node.columns] == ["BIGINT"]
    text = explained("INSERT INTO changes SELECT who, n FROM log_ EXCEPT ALL SELECT who, n FROM ups")
    assert "ExceptAll" in text
    assert "state: how often each row is on either side" in text


def test_refusals() -> None:
    with pytest.raises(SqlError, match=r"The parts of INTERSECT have 1 and 2 columns\."):
        query("SELECT id FROM log_ INTERSECT SELECT id, n FROM log_")
    with pytest.raises(SqlError, match=r"EXCEPT cannot compare values of type MAP"):
        query("SELECT MAP['a', id] AS m FROM log_ EXCEPT SELECT MAP['a', id] FROM log_")
