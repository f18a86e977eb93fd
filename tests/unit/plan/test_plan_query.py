"""A SELECT on its own: what ends it, what the driver sorts and cuts, and what it refuses."""

from __future__ import annotations

import pytest
from plan_tables import KAFKA, session

from headwater.errors import HeadwaterError, SqlError, ValidationError
from headwater.plan.nodes import Mode, Normalize, walk
from headwater.plan.query import Ordering, PlannedQuery

ENDS = f"""
CREATE TABLE ended (id INT, who STRING, tags ARRAY<STRING>) WITH (
  'connector' = 'kafka', 'topic' = 'log', {KAFKA}, 'format' = 'json', 'scan.bounded.mode' = 'latest-offset');
CREATE VIEW both_ AS SELECT id, who FROM ended UNION ALL SELECT id, who FROM log_;
"""


def planned(sql: str, settings: str = "") -> PlannedQuery:
    defined = session()
    defined.sql(ENDS + settings)
    definitions = defined._definitions()
    from headwater.sql.parser import parse_script

    (statement,) = parse_script(sql)
    found = definitions.outcome(statement).query
    assert found is not None
    return found.query


def test_it_ends_if_all_its_tables_do() -> None:
    assert planned("SELECT id FROM ended").bounded
    assert planned("SELECT 1 AS a").bounded
    assert not planned("SELECT id FROM log_").bounded
    assert not planned("SELECT id FROM both_").bounded


def test_in_batch_mode_tables_end_with_what_is_there() -> None:
    batch = "SET 'execution.runtime-mode' = 'batch';"
    for table in ("ended", "log_", "ups", "both_"):
        assert planned(f"SELECT * FROM {table}", batch).bounded
    with pytest.raises(ValidationError, match="unbounded table 'numbers'"):
        planned("SELECT * FROM numbers", batch + "CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen');")


def test_an_updating_query_gives_a_full_changelog_with_the_key_of_its_rows() -> None:
    grouped = planned("SELECT who, COUNT(*) AS n FROM log_ GROUP BY who")
    assert (grouped.updating, grouped.key, grouped.plan.input.mode) == (True, ("who",), Mode.RETRACT)
    table = planned("SELECT who, id FROM ups")
    assert (table.updating, table.key) == (True, ("id",))
    assert any(isinstance(node, Normalize) for node in walk(table.plan))
    assert planned("SELECT who FROM ups").key is None
    assert planned("SELECT COUNT(*) FROM log_").key == ()
    inserts = planned("SELECT who FROM log_")
    assert (inserts.updating, inserts.key) == (False, None)


def test_order_and_limit_of_a_query_that_ends_are_left_to_the_driver() -> None:
    query = planned("SELECT id AS a, who FROM ended ORDER BY a DESC, UPPER(who), 2 NULLS LAST LIMIT 3 OFFSET 1")
    assert [c.name for c in query.columns] == ["a", "who"]
    assert query.plan.names == ("a", "who", "__hw_order2")
    by_hidden = Ordering("__hw_order2", False, True)
    assert query.order == (Ordering("a", True, False), by_hidden, Ordering("who", False, False))
    assert (query.limit, query.offset) == (3, 1)
    assert planned("SELECT * FROM ended ORDER BY id").plan.names == ("id", "who", "tags", "__hw_order1")
    assert planned("SELECT who, COUNT(*) FROM ended GROUP BY who ORDER BY COUNT(*)").order[0].column == "__hw_order2"
    united = planned("SELECT id FROM ended UNION SELECT id FROM ended ORDER BY id FETCH FIRST ROW ONLY")
    assert (united.order, united.limit) == ((Ordering("id", False, True),), 1)


def test_limit_ends_a_query_that_only_inserts() -> None:
    query = planned("SELECT id FROM log_ LIMIT 5")
    assert (query.bounded, query.limit) == (False, 5)


def test_the_first_rows_of_a_query_without_an_end_change() -> None:
    query = planned("SELECT who, n FROM log_ ORDER BY n DESC, 1 LIMIT 5")
    assert (query.bounded, query.updating, query.limit) == (False, True, None)
    assert query.order == (Ordering("n", True, False), Ordering("who", False, True))
    assert planned("SELECT who FROM log_ ORDER BY UPPER(who) LIMIT 5").order == ()


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT id FROM ended ORDER BY 2", "The result has no column 2"),
        ("SELECT DISTINCT id FROM ended ORDER BY who", "The result has no column 'who'"),
        ("SELECT DISTINCT id FROM ended ORDER BY id + 1", "columns of the result"),
        ("SELECT * FROM ended ORDER BY tags", "have no order"),
        ("SELECT * FROM nothing", "no table or view 'nothing'"),
        ("SELECT id FROM ended ORDER BY nothing", "nothing"),
    ],
)
def test_what_is_wrong_is_shown_in_its_place(sql: str, words: str) -> None:
    with pytest.raises(HeadwaterError, match=words) as raised:
        planned(sql)
    assert isinstance(raised.value, SqlError)
    assert raised.value.position is not None
