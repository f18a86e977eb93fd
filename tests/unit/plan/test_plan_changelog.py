"""Who emits which changes: where Normalize, FilterToDelete and Consolidate are put, and which sinks refuse."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import pytest
from plan_tables import explained, plan, shape

from headwater.errors import ValidationError
from headwater.plan import nodes as n
from headwater.plan.nodes import Mode


@pytest.mark.parametrize(
    ("sql", "operators"),
    [
        # a log needs nothing
        ("INSERT INTO plain SELECT who, n FROM log_ WHERE id > 1", "Write Project Filter Scan"),
        ("INSERT INTO by_who SELECT who, n FROM log_", "Write Project Scan"),
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who", "Write Project Aggregate Scan"),
        ("INSERT INTO plain VALUES ('a', 1)", "Write Project Values"),
        # upserts with the key of the sink pass; a filter needs to know what passed before
        ("INSERT INTO by_id SELECT id, n FROM ups", "Write Project Scan"),
        ("INSERT INTO by_id SELECT id, n + 1 FROM ups WHERE n > 1", "Write Normalize Project FilterToDelete Scan"),
        (
            "INSERT INTO by_id SELECT id, n FROM (SELECT * FROM ups WHERE n > 0) WHERE n < 9",
            "Write Normalize Project FilterToDelete FilterToDelete Scan",
        ),
        # a wider key of the sink: a row that changes it moves
        ("INSERT INTO by_id_n SELECT id, n FROM ups", "Write Consolidate Normalize Project Scan"),
        ("INSERT INTO by_who SELECT 'all', COUNT(*) FROM log_", "Write Consolidate Project Aggregate Scan"),
        # what counts rows needs exact changes
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM ups GROUP BY who", "Write Project Aggregate Normalize Scan"),
        (
            "INSERT INTO by_who SELECT who, COUNT(*) FROM ups WHERE n > 1 GROUP BY who",
            "Write Project Aggregate Normalize FilterToDelete Scan",
        ),
        # HAVING needs both images and one net change
        (
            "INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who HAVING COUNT(*) > 1",
            "Write Consolidate Project Filter Aggregate Scan",
        ),
        # a sink that shows every change gets exact ones
        ("INSERT INTO shown SELECT who, n FROM ups", "Write Project Normalize Scan"),
        ("INSERT INTO shown SELECT who, COUNT(*) FROM log_ GROUP BY who", "Write Project Aggregate Scan"),
        ("INSERT INTO shown SELECT who, n FROM log_", "Write Project Scan"),
        ("INSERT INTO changes SELECT who, n FROM ups", "Write Project Normalize Scan"),
        ("INSERT INTO changes SELECT who, n FROM log_", "Write Project Scan"),
        ("INSERT INTO keyed_changes SELECT who, COUNT(*) FROM log_ GROUP BY who", "Write Project Aggregate Scan"),
        # each part of a union for itself
        (
            "INSERT INTO by_who SELECT who, SUM(n) FROM (SELECT who, n FROM ups UNION ALL SELECT who, n FROM log_) GROUP BY who",
            "Write Project Aggregate UnionAll Project Scan Project Normalize Scan",
        ),
        ("INSERT INTO plain SELECT who, n FROM log_ UNION ALL SELECT who, n + 1 FROM log_", "Write Project UnionAll Project Scan Project Scan"),
        # DISTINCT is a group without functions
        ("INSERT INTO by_who SELECT who, 1 FROM (SELECT DISTINCT who FROM ups)", "Write Project Project Aggregate Normalize Scan"),
    ],
)  # fmt: skip
def test_shapes(sql: str, operators: str) -> None:
    assert shape(sql) == operators


def nodes_of(sql: str, kind: type[n.Node]) -> list[n.Node]:
    return [node for node in n.walk(plan(sql)) if isinstance(node, kind)]


def test_before_images_are_kept_only_where_somebody_needs_them() -> None:
    inner = "SELECT who, COUNT(*) AS c FROM ups GROUP BY who"
    (outer, below) = reversed(
        nodes_of(
            f"INSERT INTO by_id SELECT CAST(c AS INT), COUNT(*) FROM ({inner}) GROUP BY CAST(c AS INT)", n.Aggregate
        )
    )
    assert isinstance(outer, n.Aggregate)
    assert isinstance(below, n.Aggregate)
    assert not outer.before
    assert below.before
    (filtered,) = nodes_of("INSERT INTO by_id SELECT id, n FROM ups WHERE n > 1", n.Normalize)
    (counted,) = nodes_of("INSERT INTO by_who SELECT who, COUNT(*) FROM ups GROUP BY who", n.Normalize)
    assert isinstance(filtered, n.Normalize)
    assert isinstance(counted, n.Normalize)
    assert not filtered.before
    assert counted.before


@pytest.mark.parametrize(
    ("sql", "mode", "key"),
    [
        ("INSERT INTO plain SELECT who, n FROM log_", Mode.APPEND, None),
        ("INSERT INTO by_id SELECT id, n FROM ups", Mode.UPSERT, ("id",)),
        ("INSERT INTO by_id_n SELECT id, n FROM ups", Mode.UPSERT, ("n", "id")),
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM ups GROUP BY who", Mode.UPSERT, ("who",)),
        ("INSERT INTO shown SELECT who, COUNT(*) FROM ups GROUP BY who", Mode.RETRACT, ("who",)),
        ("INSERT INTO shown SELECT who, n FROM ups", Mode.RETRACT, None),
        ("INSERT INTO keyed_changes SELECT who, COUNT(*) FROM ups GROUP BY who", Mode.RETRACT, ("who",)),
    ],
)
def test_what_reaches_the_sink(sql: str, mode: Mode, key: tuple[str, ...] | None) -> None:
    below = plan(sql).input
    assert below.mode is mode
    assert below.key == key


def test_keys_are_followed_under_new_names() -> None:
    sql = "INSERT INTO by_id SELECT k, v FROM (SELECT id AS k, n AS v FROM ups)"
    assert plan(sql).input.key == ("id",)
    assert shape(sql) == "Write Project Scan"


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        (
            "INSERT INTO plain SELECT who, COUNT(*) FROM log_ GROUP BY who",
            [
                "Table 'plain' doesn't support consuming update and delete changes, which are produced by GROUP BY who.",
                "It is a 'kafka' table without a PRIMARY KEY: it can only append rows.",
                "Hint: Declare PRIMARY KEY (who) NOT ENFORCED on 'plain', or make it an 'upsert-kafka' table, or write a query that only inserts.",
            ],
        ),
        ("INSERT INTO plain SELECT who, n FROM ups", ["produced by the upsert-kafka table 'ups'", "PRIMARY KEY (…)"]),
        ("INSERT INTO plain SELECT 'x', COUNT(*) FROM log_", ["produced by the aggregate over all rows"]),
        ("INSERT INTO plain SELECT DISTINCT who, n FROM log_", ["produced by GROUP BY who, n"]),
        (
            "INSERT INTO by_who SELECT who, n FROM ups",
            [
                "PRIMARY KEY (who) of table 'by_who' is not unique in the query that writes it.",
                "no column of its result identifies a row",
            ],
        ),
        (
            "INSERT INTO keyed SELECT CAST(MAX(id) AS STRING), n FROM ups GROUP BY n",
            ["PRIMARY KEY (who) of table 'keyed'", "identified by (n)", "Declare PRIMARY KEY (n) NOT ENFORCED, or group by (who)"],
        ),
        ("INSERT INTO keyed_changes SELECT who, n FROM ups", ["PRIMARY KEY (who) of table 'keyed_changes' is not unique"]),
        (
            "INSERT INTO keyed /*+ OPTIONS('sink.changelog' = 'append') */ SELECT who, COUNT(*) FROM log_ GROUP BY who",
            ["produced by GROUP BY who", "'sink.changelog' = 'append' means that it takes inserts only."],
        ),
        ("INSERT INTO by_id SELECT id + 1, n FROM ups", ["PRIMARY KEY (id) of table 'by_id' is not unique"]),
        ("INSERT INTO by_who SELECT who, n FROM ups UNION ALL SELECT who, n FROM log_", ["is not unique"]),
    ],
)  # fmt: skip
def test_what_a_sink_cannot_take(sql: str, texts: list[str]) -> None:
    with pytest.raises(ValidationError) as raised:
        plan(f"SET 'table.exec.sink.upsert-materialize' = 'none'; {sql}")
    for text in texts:
        assert text in str(raised.value)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("INSERT INTO by_who SELECT who, n FROM ups", "Write Materialize Project Normalize Scan"),
        ("INSERT INTO keyed_changes SELECT who, n FROM ups", "Write Materialize Project Normalize Scan"),
        ("INSERT INTO by_id SELECT id, n FROM ups ON CONFLICT DO ERROR", "Write Project Scan"),
        ("INSERT INTO by_who SELECT who, n FROM log_", "Write Project Scan"),
        ("INSERT INTO by_who SELECT who, n FROM log_ ON CONFLICT DO DEDUPLICATE", "Write Project Scan"),
        ("INSERT INTO by_who SELECT who, n FROM log_ ON CONFLICT DO NOTHING", "Write Materialize Project Scan"),
        ("SET 'table.exec.sink.upsert-materialize' = 'force'; INSERT INTO by_id SELECT id, n FROM ups",
         "Write Materialize Normalize Project Scan"),
    ],
)  # fmt: skip
def test_rows_that_the_sinks_key_does_not_tell_apart_are_materialized(sql: str, expected: str) -> None:
    assert shape(sql) == expected


def test_what_is_kept_of_a_key_is_shown() -> None:
    text = explained("INSERT INTO by_who SELECT who, n FROM ups ON CONFLICT DO NOTHING")
    assert "Materialize by (who) [first row]" in text
    assert "state: all rows per (who)" in text
    (node,) = [
        one for one in n.walk(plan("INSERT INTO by_who SELECT who, n FROM ups")) if isinstance(one, n.Materialize)
    ]
    assert (node.conflict, node.before) == ("last", False)


@pytest.mark.parametrize(
    ("sql", "texts"),
    [
        (
            "INSERT INTO by_who SELECT r, COUNT(*) FROM (SELECT CAST(RAND() AS STRING) AS r FROM ups) GROUP BY r",
            ["CAST(RAND() AS STRING) is non-deterministic", "because of the upsert-kafka table 'ups'"],
        ),
        ("INSERT INTO changes SELECT UUID(), n FROM ups WHERE n > 1", ["UUID() is non-deterministic"]),
        ("INSERT INTO by_who SELECT who, SUM(RAND_INTEGER(9)) FROM ups GROUP BY who", ["RAND_INTEGER(9) is non-deterministic"]),
        ("INSERT INTO by_who SELECT who, COUNT(*) FILTER (WHERE RAND() > 0.5) FROM ups GROUP BY who", ["RAND()"]),
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who HAVING RAND() > 0.5", ["because of GROUP BY who"]),
        ("INSERT INTO by_id_n SELECT CAST(n AS INT), CAST(RAND() AS BIGINT) FROM (SELECT id, COUNT(*) AS n FROM ups GROUP BY id)", ["CAST(RAND() AS BIGINT) is non-deterministic"]),
        ("INSERT INTO by_id_n SELECT id, RAND_INTEGER(9) FROM (SELECT id, COUNT(*) AS c FROM ups GROUP BY id)", ["RAND_INTEGER(9)"]),
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM (SELECT UUID() AS who FROM ups UNION ALL SELECT who FROM log_) GROUP BY who", ["UUID()"]),
    ],
)  # fmt: skip
def test_what_is_retracted_must_be_deterministic(sql: str, texts: list[str]) -> None:
    with pytest.raises(ValidationError) as raised:
        plan(sql)
    for text in texts:
        assert text in str(raised.value)


@pytest.mark.parametrize(
    "sql",
    [
        "INSERT INTO by_who SELECT who, COUNT(*) FROM ups WHERE RAND() > 0.5 GROUP BY who",  # judged once, then kept
        "INSERT INTO by_id SELECT id, RAND_INTEGER(9) FROM ups WHERE RAND() > 0.5",
        "INSERT INTO by_who SELECT who, COUNT(*) + RAND_INTEGER(3) FROM ups GROUP BY who",  # only shown
        "INSERT INTO by_who SELECT who, COUNT(*) FROM log_ WHERE RAND() > 0.5 GROUP BY who",  # nothing is retracted
        "INSERT INTO shown SELECT UUID(), n FROM ups",
    ],
)
def test_non_deterministic_is_fine_where_nothing_is_retracted_by_it(sql: str) -> None:
    plan(sql)


def test_a_kafka_table_with_a_key_takes_updates() -> None:
    assert plan("INSERT INTO keyed SELECT who, COUNT(*) FROM ups GROUP BY who").by == ("who",)
    assert plan("INSERT INTO plain SELECT who, n FROM log_").by == ()
