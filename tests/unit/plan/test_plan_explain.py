"""EXPLAIN, and that nothing is read, shuffled or kept that nobody needs."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import re

import pytest
from plan_tables import explained, plan, session

from headwater.errors import SqlError, ValidationError
from headwater.plan import nodes as n


def lines_of(sql: str) -> list[list[str]]:
    """Each line of EXPLAIN cut at its wide gaps: operator, changes, key, state, how a table is read."""
    return [re.split(r"  +(?=changes=|key=|state:|read:)", line) for line in explained(sql).splitlines()]


def test_explain_tells_changes_keys_and_state() -> None:
    sql = """INSERT INTO by_who SELECT who, MAX(n) + COUNT(DISTINCT extra) FROM ups WHERE id > 0
             GROUP BY who HAVING COUNT(*) > 1"""
    calls, read = "MAX(n), COUNT(DISTINCT extra), COUNT(*)", "read: in columns, by librdkafka"
    kept = "state: one row per group, values of n per group, values of extra per group"
    assert lines_of(sql) == [
        ["Write by_who (upsert-kafka)", "changes=I,UA,D", "key=(who)"],
        ["└─ Consolidate by (who)", "changes=I,UA,D", "key=(who)"],
        ["   └─ Project [who, (MAX(n) + COUNT(DISTINCT extra)) AS n]", "changes=I,UB,UA,D", "key=(who)"],
        ["      └─ Filter (COUNT(*) > 1)", "changes=I,UB,UA,D", "key=(who)"],
        [f"         └─ Aggregate group by (who) [{calls}]", "changes=I,UB,UA,D", "key=(who)", kept],
        ["            └─ Normalize by (id)", "changes=I,UB,UA,D", "key=(id)", "state: last row per (id)"],
        ["               └─ FilterToDelete (id > 0) (else delete)", "changes=I,UA,D", "key=(id)"],
        ["                  └─ Scan ups (upsert-kafka) [id, who, n, extra]", "changes=I,UA,D", "key=(id)", read],
    ]


def test_the_columns_of_explain_are_aligned() -> None:
    lines = explained("INSERT INTO by_who SELECT who, COUNT(*) FROM ups GROUP BY who").splitlines()
    assert len({line.index("changes=") for line in lines}) == 1
    assert lines == [line.rstrip() for line in lines]


def test_explain_draws_unions() -> None:
    sql = "INSERT INTO plain SELECT who, n FROM log_ UNION ALL SELECT who, n + 1 FROM log_"
    assert [line[0] for line in lines_of(sql)] == [
        "Write plain (kafka)",
        "└─ Project [who, n]",
        "   └─ UnionAll",
        "      ├─ Project [who, n]",
        "      │  └─ Scan log_ (kafka) [who, n]",
        "      └─ Project [who, (n + 1) AS n]",
        "         └─ Scan log_ (kafka) [who, n]",
    ]


def test_explain_as_a_statement_gives_lines() -> None:
    (result,) = session().sql("EXPLAIN INSERT INTO plain SELECT who, n FROM log_")
    assert result.header == ("plan",)
    assert result.rows[0][0].startswith("Write plain (kafka)")
    (several,) = session().sql(
        "EXPLAIN STATEMENT SET BEGIN INSERT INTO plain SELECT who, n FROM log_; INSERT INTO shown VALUES ('a', 1); END"
    )
    assert [row[0].split(" (")[0] for row in several.rows if row[0].startswith("Write")] == [
        "Write plain",
        "Write shown",
    ]
    (alone,) = session().sql("EXPLAIN ESTIMATED_COST, CHANGELOG_MODE SELECT who, n FROM log_")
    assert alone.rows[0][0].startswith("Project [who, n]")
    assert [note.split(" ")[0] for note in alone.notes] == ["ESTIMATED_COST"]


KERBEROS = "'properties.sasl.kerberos.service.name' = 'k'"
AVRO = "'avro-confluent.url' = 'http://registry:8081'"


@pytest.mark.parametrize(
    ("query", "format_", "more", "read"),
    [
        ("SELECT s, n FROM t", "json", "", "in columns, by librdkafka"),
        ("SELECT s, m FROM t", "json", "", "by expressions because of m, by librdkafka"),
        ("SELECT r.a FROM t", "json", "", "in columns, by librdkafka"),
        ("SELECT r FROM t", "json", "", "by expressions because of r, by librdkafka"),
        # Which messages are bad does not depend on the query: all fields are read.
        ("SELECT r.a FROM t", "json", "'scan.bad-records' = 'skip'", "by expressions because of r, by librdkafka"),
        ("SELECT s FROM t", "json", KERBEROS, "in columns, by Spark's Kafka client, because of properties.sasl.kerberos.service.name"),
        ("SELECT s FROM t", "avro-confluent", AVRO, "in columns or by expressions, as its schemas are, by librdkafka"),
    ],
)  # fmt: skip
def test_explain_says_how_messages_are_read(query: str, format_: str, more: str, read: str) -> None:
    used = session()
    given = {"connector": "kafka", "topic": "t", "properties.bootstrap.servers": "k:1", "format": format_}
    options = [*(f"'{key}' = '{value}'" for key, value in given.items()), *([more] if more else [])]
    columns = "s STRING, n INT, m MAP<STRING, INT>, r ROW<a INT, b MAP<STRING, INT>>"
    used.sql(f"CREATE TABLE t ({columns}) WITH ({', '.join(options)})")
    (result,) = used.sql(f"EXPLAIN {query}")
    assert [row[0].partition("  read: ")[2] for row in result.rows if "Scan" in row[0]] == [read]


def test_explain_says_why_spark_writes() -> None:
    used = session()
    given = (
        f"'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'k:1', 'format' = 'json', {KERBEROS}"
    )
    used.sql(f"CREATE TABLE t (who STRING) WITH ({given})")
    (result,) = used.sql("EXPLAIN INSERT INTO t SELECT who FROM log_")
    assert result.rows[0][0].endswith("by: Spark's Kafka client, because of properties.sasl.kerberos.service.name")


def scanned(sql: str) -> list[tuple[str, ...]]:
    return [node.names for node in n.walk(plan(sql)) if isinstance(node, n.Scan)]


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("INSERT INTO plain SELECT who, 1 FROM log_", [("who",)]),
        ("INSERT INTO plain SELECT who, 1 FROM log_ WHERE id > 1", [("id", "who")]),
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who", [("who",)]),
        ("INSERT INTO by_who SELECT 'all', COUNT(*) FROM log_", [("id",)]),  # a message is decoded to see that it can be
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM ups GROUP BY who", [("id", "who")]),  # upserts need their key
        ("INSERT INTO by_who SELECT who, COUNT(*) FILTER (WHERE n > 1) FROM log_ GROUP BY who", [("who", "n")]),
        ("INSERT INTO plain SELECT w, 1 FROM (SELECT who AS w, n * id AS x, d FROM log_)", [("who",)]),
        ("INSERT INTO plain SELECT who, n FROM log_ UNION ALL SELECT 'x', n FROM log_", [("who", "n"), ("n",)]),
        ("INSERT INTO by_who SELECT a, c FROM (SELECT who AS a, COUNT(*) AS c, MAX(n) AS m FROM log_ GROUP BY who)", [("who",)]),
    ],
)  # fmt: skip
def test_only_needed_columns_are_read(sql: str, columns: list[tuple[str, ...]]) -> None:
    assert scanned(sql) == columns


def test_aggregates_nobody_asks_for_are_dropped() -> None:
    sql = "INSERT INTO by_who SELECT a, c FROM (SELECT who AS a, COUNT(*) AS c, MAX(n) AS m FROM log_ GROUP BY who)"
    (aggregate,) = [node for node in n.walk(plan(sql)) if isinstance(node, n.Aggregate)]
    assert [call.function for call in aggregate.calls] == ["COUNT"]


def test_equal_aggregates_are_computed_once() -> None:
    sql = "INSERT INTO by_who SELECT who, SUM(n) + SUM(n) FROM log_ GROUP BY who HAVING SUM(n) > 1"
    (aggregate,) = [node for node in n.walk(plan(sql)) if isinstance(node, n.Aggregate)]
    assert len(aggregate.calls) == 1


@pytest.mark.parametrize(
    ("sql", "fact", "column"),
    [
        ("INSERT INTO plain SELECT who, id FROM log_ GROUP BY who", "Column 'id' is neither in GROUP BY nor", 31),
        ("INSERT INTO plain SELECT who, 1 FROM log_ GROUP BY who, tags", "cannot be grouped by a value of type ARRAY", None),
        ("INSERT INTO by_who SELECT 'x', COUNT(*) FROM log_ GROUP BY RAND()", "a value that changes by itself", None),
        ("INSERT INTO plain (who, m) SELECT who, n FROM log_", "Table 'plain' has no column 'm' that can be written", None),
        ("INSERT INTO plain (who, who) SELECT who, who FROM log_", "The column 'who' appears twice", None),
        ("INSERT INTO plain SELECT x.* FROM log_ AS t", "There is no table 'x' in FROM", None),
        ("INSERT INTO plain SELECT who, n FROM log_ UNION ALL SELECT who FROM log_", "UNION have 2 and 1 columns", None),
        ("INSERT INTO plain SELECT who, n FROM log_ UNION ALL SELECT who, tags FROM log_", "cannot stand in one column", None),
        ("INSERT INTO plain SELECT a, b FROM (SELECT who, n FROM log_) AS t (a)", "1 column names are given for 2", None),
        ("INSERT INTO plain SELECT who, n FROM log_ FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP", "not supported", None),
    ],
)  # fmt: skip
def test_what_is_not_supported_is_shown_at_its_place(sql: str, fact: str, column: int | None) -> None:
    with pytest.raises(SqlError) as raised:
        plan(sql)
    assert fact in raised.value.fact
    assert raised.value.position is not None
    if column is not None:
        assert raised.value.position.column == column


def test_windows_over_aggregates_of_a_subquery_are_over_its_own_rows() -> None:
    shown = explained("INSERT INTO changes SELECT who, (SELECT SUM(COUNT(*)) OVER () FROM ups) FROM log_")
    over, join = (next(i for i, line in enumerate(shown.splitlines()) if word in line) for word in ("Over", "Join"))
    assert over > join, "it is computed below the join"


def test_a_query_in_a_query_of_aggregates() -> None:
    shown = explained(
        "INSERT INTO changes SELECT who, (SELECT MAX(u.n) - (SELECT MAX(n) FROM plain) FROM ups AS u "
        "WHERE u.id = l.id) FROM log_ AS l"
    )
    assert shown.count("Aggregate") == 2


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("WITH x AS (SELECT n FROM ups) SELECT COUNT(*) FROM x", "has no WITH of its own"),
        (
            "SELECT COUNT(*) + u.id FROM ups AS u WHERE u.id = l.id",
            "selects aggregates, and expressions over them alone",
        ),
    ],
)
def test_what_has_no_value_of_no_rows_is_refused(query: str, fact: str) -> None:
    with pytest.raises(SqlError, match=fact):
        plan(f"INSERT INTO changes SELECT who, ({query}) FROM log_ AS l")


def test_a_value_that_is_never_the_same_twice_is_computed_once() -> None:
    used = session()
    used.sql("CREATE TABLE two (a STRING, b STRING) WITH ('connector' = 'print')")
    (root,) = used.check("INSERT INTO two SELECT u, u FROM (SELECT UUID() AS u FROM log_)")
    computed = [e.text for node in n.walk(root) if isinstance(node, n.Project) for e in node.expressions]
    assert computed.count("UUID()") == 1


@pytest.mark.parametrize(
    "call",
    [
        "AVG(n) FILTER (WHERE RAND() < 0.5)",
        "SUM(CASE WHEN RAND() < 0.5 THEN n END)",
        "COUNT(DISTINCT CASE WHEN RAND() < 0.5 THEN n END)",
        "SUM(RAND_INTEGER(9)) + SUM(RAND_INTEGER(9)) FILTER (WHERE RAND() < 0.5)",
    ],
)
def test_what_is_aggregated_is_computed_once(call: str) -> None:
    """An accumulator adds values up, and another one counts them: both see the same."""
    root = plan(f"INSERT INTO changes SELECT who, CAST({call} AS BIGINT) FROM log_ GROUP BY who")
    (aggregate,) = (node for node in n.walk(root) if isinstance(node, n.Aggregate))
    assert [e.text for e in aggregate.decisive if not e.deterministic] == []


@pytest.mark.parametrize(
    "frame",
    [
        "2 PRECEDING AND 3 PRECEDING",
        "3 FOLLOWING AND 2 FOLLOWING",
        "CURRENT ROW AND 1 PRECEDING",
        "CURRENT ROW AND UNBOUNDED PRECEDING",
        "UNBOUNDED FOLLOWING AND CURRENT ROW",
    ],
)
def test_a_frame_does_not_end_before_it_begins(frame: str) -> None:
    with pytest.raises(SqlError, match="The frame of an OVER clause must not end before it begins"):
        plan(f"INSERT INTO plain SELECT who, SUM(n) OVER (PARTITION BY who ORDER BY id ROWS BETWEEN {frame}) FROM log_")


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        ("INSERT INTO plain SELECT who FROM log_", "different number of columns"),
        ("INSERT INTO plain SELECT n, who FROM log_", "Incompatible types for sink column 'who' of table 'plain'."),
        ("INSERT INTO plain SELECT who, d FROM log_", "The query returns DECIMAL(10, 2), the table has BIGINT."),
        ("INSERT INTO plain SELECT who, tags FROM log_", "Hint: Write CAST(tags AS BIGINT) in the query, or change the table."),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_table(sql: str, text: str) -> None:
    with pytest.raises(ValidationError) as raised:
        plan(sql)
    assert text in str(raised.value)


def test_a_place_in_a_plan_names_its_script() -> None:
    with pytest.raises(SqlError, match=r"jobs\.sql:1:31"):
        session().check("INSERT INTO plain SELECT who, nope FROM log_", "jobs.sql")
