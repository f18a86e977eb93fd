"""What the parser reads and no plan can be made of yet: each construct is refused by its name, at its position."""

from __future__ import annotations

import pytest
from plan_tables import plan

from headwater.errors import SqlError


@pytest.mark.parametrize(
    ("query", "what", "at"),
    [
        ("SELECT x, 1 FROM TABLE(ML_PREDICT(TABLE log_, 1)) AS u (x)", "The table function ML_PREDICT", "ML_PREDICT"),
        ("SELECT who, n FROM ups FOR SYSTEM_TIME AS OF PROCTIME()", "FOR SYSTEM_TIME AS OF", "ups"),
        ("SELECT who, LAST_VALUE(n RESPECT NULLS) FROM log_", "LAST_VALUE", "LAST_VALUE"),
        ("SELECT who, LISTAGG(who) WITHIN GROUP (ORDER BY n) FROM log_", "WITHIN GROUP", "WITHIN"),
        ("SELECT who, LOWER(who) IGNORE NULLS FROM log_", "IGNORE NULLS", "LOWER"),
        (
            "SELECT l.who, u.n FROM log_ l LEFT JOIN ups u ON l.id = u.id AND l.n IN (SELECT n FROM ups)",
            "A query in IN",
            "l.n IN",
        ),
        ("SELECT 'x', COUNT(*) FROM log_ GROUP BY n IN (SELECT n FROM ups)", "A query in IN", "n IN"),
        ("SELECT who, n FROM log_ WHERE n > ALL (SELECT n FROM ups)", "A comparison with ANY or ALL", "ALL"),
    ],
)
def test_it_is_refused_by_name(query: str, what: str, at: str) -> None:
    text = f"INSERT INTO plain {query}"
    with pytest.raises(SqlError) as caught:
        plan(text)
    assert caught.value.fact.startswith(f"{what} ")
    assert "not supported" in caught.value.fact
    assert caught.value.position is not None
    assert caught.value.position.column == text.index(at) + 1


@pytest.mark.parametrize(
    ("query", "fact", "hint"),
    [
        ("SELECT x, 1 FROM LATERAL TABLE(f(1)) AS u (x)", "There is no table function F.", "CREATE FUNCTION f AS"),
        ("SELECT x, 1 FROM log_, LATERAL TABLE(f(who)) AS u (x)", "There is no table function F.", "LANGUAGE PYTHON"),
        ("SELECT x, 1 FROM TABLE(UPPER('a')) AS u (x)", "There is no table function UPPER.", "it stands in SELECT"),
        ("SELECT 1, 1 FROM TABLE(TUMBL(TABLE log_, 1))", "There is no table function TUMBL.", "Did you mean 'TUMBLE'?"),
        ("SELECT f(who), COUNT(*) FROM log_ GROUP BY n", "Unknown function F", "headwater docs functions-python"),
        ("SELECT n, LISTAG(who) FROM log_ GROUP BY n", "Unknown function LISTAG", "Did you mean LISTAGG?"),
    ],
)
def test_a_function_that_nobody_knows_is_what_is_reported(query: str, fact: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        plan(f"INSERT INTO plain {query}")
    assert caught.value.fact == fact
    assert hint in caught.value.hint
