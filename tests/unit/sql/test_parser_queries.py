"""Queries: where the parts of a query stand in its tree, and what is refused where."""

from __future__ import annotations

import pytest
from refusals import refused_at
from sqlglot import exp

from headwater.sql.parser import parse_query
from headwater.sql.trees import table_options
from headwater.sql.writer import write_sql


def select(text: str) -> exp.Select:
    query = parse_query(text)
    assert isinstance(query, exp.Select)
    return query


def source(text: str) -> exp.Expr:
    found: exp.Expr = select(f"SELECT * FROM {text}").args["from_"].this
    return found


def test_the_parts_of_a_select() -> None:
    query = select(
        "SELECT DISTINCT a, COUNT(*) AS n, t.* FROM t WHERE a > 1 GROUP BY a HAVING COUNT(*) > 1 "
        "WINDOW w AS (ORDER BY a) ORDER BY n DESC, a NULLS LAST LIMIT 5 OFFSET 2 ROWS"
    )
    assert isinstance(query.args["distinct"], exp.Distinct)
    assert [e.alias_or_name for e in query.expressions] == ["a", "n", "*"]
    assert isinstance(query.args["where"].this, exp.GT)
    assert [e.name for e in query.args["group"].expressions] == ["a"]
    assert isinstance(query.args["having"].this, exp.GT)
    assert query.args["windows"][0].this.name == "w"
    assert [(o.args["desc"], o.args["nulls_first"]) for o in query.args["order"].expressions] == [
        (True, False),
        (False, False),
    ]
    assert query.args["limit"].expression.name == "5"
    assert query.args["offset"].expression.name == "2"


def test_nulls_are_the_smallest_values_by_default() -> None:
    order = select("SELECT a FROM t ORDER BY a, b DESC, c DESC NULLS FIRST").args["order"].expressions
    assert [o.args["nulls_first"] for o in order] == [True, False, True]


def test_fetch_is_a_limit() -> None:
    assert select("SELECT 1 FETCH FIRST 3 ROWS ONLY").args["limit"].expression.name == "3"
    assert select("SELECT 1 FETCH NEXT ROW ONLY").args["limit"].expression.name == "1"
    assert select("SELECT 1 LIMIT ALL").args.get("limit") is None


def test_aliases_with_and_without_as() -> None:
    names = [e.alias_or_name for e in select("SELECT a AS `x y`, b y, c offset_, `d` FROM t").expressions]
    assert names == ["x y", "y", "offset_", "d"]


def test_options_of_a_table_are_in_its_hints() -> None:
    table = source("t /*+ OPTIONS('a'='b', \"c\" = 'it''s') */ AS x")
    assert table.alias == "x"
    assert table_options(table) == {"a": "b", "c": "it's"}
    assert table_options(source("t")) == {}


def test_a_string_in_a_hint_may_look_like_its_end() -> None:
    assert table_options(source("t /*+ OPTIONS('a' = '*/', 'b' = '/*') */")) == {"a": "*/", "b": "/*"}


def test_hints_of_a_query() -> None:
    hint = select("SELECT /*+ STATE_TTL('t' = '1d', 'u' = '2d'), BROADCAST(t), X('y') */ a FROM t").args["hint"]
    state, broadcast, other = hint.expressions
    assert [h.name for h in hint.expressions] == ["STATE_TTL", "BROADCAST", "X"]
    assert [(p.this.name, p.args["value"].name) for p in state.expressions] == [("t", "1d"), ("u", "2d")]
    assert isinstance(broadcast.expressions[0], exp.Identifier)
    assert isinstance(other.expressions[0], exp.Literal)


def test_a_name_may_carry_the_only_catalog() -> None:
    table = source("`default_catalog`.default_database.`my t`")
    assert isinstance(table, exp.Table)
    assert (table.name, table.db, table.catalog) == ("my t", "default_database", "")


def test_a_hint_on_the_table_of_a_table_function() -> None:
    table = source("TUMBLE(TABLE t /*+ OPTIONS('a'='b') */, DESCRIPTOR(ts), INTERVAL '1' MINUTE)")
    inner = table.this.expressions[0]
    assert isinstance(inner, exp.Table)
    assert table_options(inner) == {"a": "b"}


@pytest.mark.parametrize("wrapped", ["TUMBLE({})", "TABLE(TUMBLE({}))"])
@pytest.mark.parametrize(
    "arguments",
    [
        "TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE",
        "DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE",
    ],
)
def test_a_window_function_is_a_table(wrapped: str, arguments: str) -> None:
    table = source(wrapped.format(arguments) + " AS w")
    assert isinstance(table, exp.Table)
    function = table.this
    assert isinstance(function, exp.Anonymous)
    assert function.name == "TUMBLE"
    values = [a.expression if isinstance(a, exp.Kwarg) else a for a in function.expressions]
    assert isinstance(values[0], exp.Table)
    assert values[1].name == "DESCRIPTOR"
    assert isinstance(values[2], exp.Interval)
    assert table.alias == "w"


@pytest.mark.parametrize(("keys", "names"), [("a", ["a"]), ("(a, b)", ["a", "b"])])
def test_the_partitions_of_a_session_window(keys: str, names: list[str]) -> None:
    table = source(f"SESSION(TABLE t PARTITION BY {keys}, DESCRIPTOR(ts), INTERVAL '1' MINUTE)")
    assert len(table.this.expressions) == 3
    assert [k.name for k in table.this.expressions[0].args["partition"].expressions] == names


def test_system_time() -> None:
    join = select("SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF a.ts AS r ON a.x = r.x").args["joins"][0]
    assert join.this.args["version"].expression.sql() == "a.ts"
    assert join.this.alias == "r"


def test_derived_tables_lateral_and_unnest() -> None:
    derived = source("(SELECT a FROM t) AS q (x, y)")
    assert isinstance(derived, exp.Subquery)
    assert [c.name for c in derived.args["alias"].columns] == ["x", "y"]
    joins = select(
        "SELECT * FROM t CROSS JOIN UNNEST(arr) WITH ORDINALITY AS u (v, n) "
        "LEFT JOIN LATERAL TABLE(split(a)) AS s (w) ON TRUE, LATERAL (SELECT 1) AS z"
    ).args["joins"]
    assert [type(j.this) for j in joins] == [exp.Unnest, exp.Lateral, exp.Lateral]
    assert joins[0].this.args["offset"] is True
    assert joins[1].this.this.name == "split"
    assert isinstance(joins[2].this.this, exp.Subquery)


@pytest.mark.parametrize(
    ("text", "kind", "side"),
    [
        ("a JOIN b ON x", "INNER", ""),
        ("a INNER JOIN b ON x", "INNER", ""),
        ("a LEFT JOIN b ON x", "OUTER", "LEFT"),
        ("a RIGHT OUTER JOIN b ON x", "OUTER", "RIGHT"),
        ("a FULL OUTER JOIN b ON x", "OUTER", "FULL"),
        ("a CROSS JOIN b", "CROSS", ""),
        ("a, b", "CROSS", ""),
    ],
)
def test_joins(text: str, kind: str, side: str) -> None:
    join = select(f"SELECT * FROM {text}").args["joins"][0]
    assert (join.kind, join.side) == (kind, side)
    assert (join.args.get("on") is not None) == (" ON " in text)


def test_using_natural_and_nested_joins() -> None:
    using, natural = select("SELECT * FROM a JOIN b USING (x, y) NATURAL JOIN c").args["joins"]
    assert [i.name for i in using.args["using"]] == ["x", "y"]
    assert natural.args["method"] == "NATURAL"
    nested = source("(a JOIN b ON TRUE) AS q")
    assert isinstance(nested, exp.Subquery)
    assert isinstance(nested.this, exp.Table)
    assert len(nested.this.args["joins"]) == 1


def test_set_operations_and_their_order() -> None:
    query = parse_query("SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4 ORDER BY 1 LIMIT 1")
    assert isinstance(query, exp.Except)
    assert isinstance(query.this, exp.Union)
    assert query.this.args["distinct"] is False
    assert isinstance(query.this.expression, exp.Intersect)
    assert query.args["order"] is not None
    assert query.args["limit"] is not None


def test_a_parenthesised_query_keeps_its_own_limit() -> None:
    query = parse_query("(SELECT a FROM t LIMIT 1) UNION (SELECT b FROM u ORDER BY b) LIMIT 5")
    assert isinstance(query, exp.Union)
    assert query.this.this.args["limit"].expression.name == "1"
    assert query.expression.this.args["order"] is not None
    assert query.args["limit"].expression.name == "5"


def test_common_table_expressions() -> None:
    query = select("WITH a AS (SELECT 1), b (x) AS (VALUES (1), (2)) SELECT * FROM a, b")
    ctes = query.args["with_"].expressions
    assert [c.alias for c in ctes] == ["a", "b"]
    assert isinstance(ctes[1].this, exp.Values)


def test_values() -> None:
    values = parse_query("VALUES (1, 'a'), ROW(2, 'b')")
    assert isinstance(values, exp.Values)
    assert [len(row.expressions) for row in values.expressions] == [2, 2]
    assert [len(row.expressions) for row in parse_query("VALUES 1, 2").expressions] == [1, 1]


def test_grouping() -> None:
    group = select("SELECT 1 FROM t GROUP BY a, ROLLUP (b), CUBE (c, d), GROUPING SETS ((a, b), (), c)").args["group"]
    assert [type(e) for e in group.expressions] == [exp.Column, exp.Rollup, exp.Cube, exp.GroupingSets]
    assert [type(e) for e in group.expressions[3].expressions] == [exp.Tuple, exp.Tuple, exp.Column]


def test_comments_are_no_part_of_the_tree() -> None:
    query = parse_query("SELECT /* one */ a -- two\n FROM t /* three */")
    assert not any(node.comments for node in query.walk())


QUERIES = [
    (
        "SELECT DISTINCT a, COUNT(*) AS n, t.* FROM t WHERE a > 1 GROUP BY a HAVING COUNT(*) > 1 WINDOW w AS "
        "(ORDER BY a) ORDER BY n DESC, a NULLS LAST LIMIT 5 OFFSET 2 ROWS"
    ),
    "SELECT 1 FETCH FIRST 3 ROWS ONLY",
    "SELECT * FROM t /*+ OPTIONS('a'='b', 'c' = 'it''s') */ AS x",
    "SELECT /*+ STATE_TTL('t' = '1d'), BROADCAST(t, u) */ DISTINCT a FROM t",
    "SELECT * FROM TUMBLE(TABLE t /*+ OPTIONS('a'='b') */, DESCRIPTOR(ts), INTERVAL '1' MINUTE) AS w",
    "SELECT * FROM TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '1' MINUTE)",
    "SELECT * FROM SESSION(TABLE t PARTITION BY (a, b), DESCRIPTOR(ts), INTERVAL '1' MINUTE)",
    "SELECT * FROM a JOIN b FOR SYSTEM_TIME AS OF a.ts AS r ON a.x = r.x",
    "SELECT * FROM (SELECT a FROM t) AS q (x, y)",
    (
        "SELECT * FROM t CROSS JOIN UNNEST(arr) WITH ORDINALITY AS u (v, n) LEFT JOIN LATERAL "
        "TABLE(split(a)) AS s (w) ON TRUE, LATERAL (SELECT 1) AS z"
    ),
    "SELECT * FROM a LEFT JOIN b ON x RIGHT JOIN c ON y FULL OUTER JOIN d ON z CROSS JOIN e, f",
    "SELECT * FROM a JOIN b USING (x, y) NATURAL JOIN c",
    "SELECT * FROM (a JOIN b ON TRUE) AS q",
    "SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3 EXCEPT SELECT 4 ORDER BY 1 LIMIT 1",
    "SELECT 1 EXCEPT ALL SELECT 2 UNION DISTINCT SELECT 3",
    "(SELECT a FROM t LIMIT 1) UNION (SELECT b FROM u ORDER BY b) LIMIT 5",
    "WITH a AS (SELECT 1), b (x) AS (VALUES (1), (2)) SELECT * FROM a, b",
    "VALUES (1, 'a'), ROW(2, 'b')",
    "SELECT * FROM (VALUES (1, 2), (3, 4)) AS t (a, b)",
    "SELECT 1 FROM t GROUP BY a, ROLLUP (b), CUBE (c, d), GROUPING SETS ((a, b), (), c)",
    "SELECT a, SUM(b) OVER w FROM t WINDOW w AS (PARTITION BY c ORDER BY d ROWS 5 PRECEDING)",
    "SELECT a FROM t WHERE EXISTS (SELECT 1) AND b IN (SELECT 2) AND (c = 1 OR d = 2)",
    "SELECT (SELECT 1), ((SELECT 1) UNION SELECT 2)",
    "SELECT `order` AS `x y`, `a``b` FROM `t u`",
    "SELECT * FROM TABLE(CUMULATE(TABLE t, DESCRIPTOR(ts), INTERVAL '2' MINUTES, INTERVAL '10' MINUTES))",
    (
        "SELECT window_start, SUM(a) FROM HOP(TABLE t, DESCRIPTOR(ts), INTERVAL '5' MINUTE, INTERVAL '10' MINUTE) "
        "GROUP BY window_start, window_end, GROUPING SETS ((b), ())"
    ),
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY a ORDER BY b DESC) AS n FROM t) WHERE n <= 3",
    "SELECT ARRAY_AGG(DISTINCT a IGNORE NULLS), LAST_VALUE(b) RESPECT NULLS OVER w FROM t WINDOW w AS (ORDER BY c)",
    "SELECT * FROM a, b WHERE a.ts BETWEEN b.ts - INTERVAL '4' HOUR AND b.ts AND NOT EXISTS (SELECT 1 FROM c)",
    "SELECT * FROM t LEFT JOIN UNNEST(m) AS u (k, v) ON TRUE WHERE (k, v) NOT IN (SELECT 1, 2)",
]


@pytest.mark.parametrize("text", QUERIES)
def test_a_query_is_written_so_that_it_reads_back(text: str) -> None:
    query = parse_query(text)
    assert parse_query(write_sql(query)) == query


WRONG = [
    # text, line, column, length, fact
    ("SELECT FROM t", 1, 8, 4, "Expected an expression, found 'FROM'"),
    ("SELECT a, FROM t", 1, 11, 4, "Expected an expression, found 'FROM'"),
    ("SELECT a FROM", 1, 14, 1, "Expected the name of a table, found the end of the statement"),
    ("SELECT a\nFROM t\nWHERE", 3, 6, 1, "Expected an expression, found the end of the statement"),
    ("SELECT a FROM t WHERE a = 1 GROUP a", 1, 29, 5, "Unexpected 'GROUP'"),
    ("SELECT a FROM t GROUP a", 1, 17, 5, "GROUP needs BY"),
    ("SELECT a FROM t HAVING a WHERE b", 1, 26, 5, "Unexpected 'WHERE'"),
    ("SELECT a AS FROM t", 1, 13, 4, "Expected an alias, found the key word 'FROM'"),
    ("SELECT * AS x FROM t", 1, 10, 2, "Unexpected 'AS'"),
    ("SELECT t.* x FROM t", 1, 12, 1, "A star takes no alias"),
    ("SELECT a FROM t LIMIT a", 1, 23, 1, "Expected a whole number, found 'a'"),
    ("SELECT a FROM t LIMIT 1, 2", 1, 24, 1, "Unexpected ','"),
    ("SELECT a FROM t LIMIT 1 LIMIT 2", 1, 25, 5, "A second LIMIT"),
    ("SELECT a FROM x.y.t", 1, 15, 1, "Unknown catalog 'x'"),
    ("SELECT a FROM t /*+ BROADCAST(t) */", 1, 21, 9, "Unknown hint 'BROADCAST'"),
    ("SELECT a FROM t LEFT ANTI JOIN u ON a = b", 1, 22, 4, "LEFT ANTI JOIN is not Flink SQL"),
    ("SELECT a FROM TABLE(TUMBLE(TABLE (SELECT 1)))", 1, 34, 1, "Expected the name of a table, found '('"),
    ("SELECT a FROM t /*+ */", 1, 21, 2, "An empty hint"),
    ("SELECT a FROM t /*+ OPTIONS('a'='b', 'a'='c') */", 1, 38, 3, "The option 'a' appears twice"),
    ("SELECT a FROM t /*+ OPTIONS('a') */", 1, 32, 1, "Expected '=', found ')'"),
    ("SELECT a FROM t AS x /*+ OPTIONS('a'='b') */", 1, 22, 3, "A hint stands right behind the name of its table"),
    ("SELECT /*+ */ a FROM t", 1, 12, 2, "An empty hint"),
    ("SELECT /*+ 'a' */ a FROM t", 1, 12, 3, "Expected the name of a hint, found the string 'a'"),
    ("SELECT /*+ A(1) */ a FROM t", 1, 14, 1, "Expected the name of a table, found '1'"),
    ("SELECT /*+ A B */ a FROM t", 1, 14, 1, "Expected '*/', found 'B'"),
    ("SELECT a /*+ OPTIONS('a'='b') */ FROM t", 1, 10, 3, "Unexpected hint"),
    ("/*+ OPTIONS('a'='b') */ SELECT 1", 1, 1, 3, "Expected a query (SELECT, VALUES or WITH), found the hint"),
    ("SELECT a FROM t JOIN u", 1, 23, 1, "Expected 'ON' or 'USING', found the end of the statement"),
    ("SELECT a FROM t LEFT u", 1, 22, 1, "Expected 'JOIN', found 'u'"),
    ("SELECT a FROM t, u RIGHT JOIN v ON TRUE", 1, 20, 5, "A RIGHT JOIN behind a comma is ambiguous"),
    ("SELECT a FROM t MATCH_RECOGNIZE (x)", 1, 17, 15, "MATCH_RECOGNIZE is not supported"),
    ("SELECT a FROM t AS u MATCH_RECOGNIZE (x)", 1, 22, 15, "MATCH_RECOGNIZE is not supported"),
    ("SELECT a FROM t AS u GROUP a", 1, 22, 5, "GROUP needs BY"),
    ("SELECT a FROM t TABLESAMPLE SYSTEM (1)", 1, 17, 11, "TABLESAMPLE is not supported"),
    ("SELECT a FROM t FOR UPDATE", 1, 21, 6, "Expected 'SYSTEM_TIME', found 'UPDATE'"),
    ("SELECT a FROM (SELECT b FROM t", 1, 31, 1, "Expected ')', found the end of the statement"),
    ("SELECT a FROM WHERE (b)", 1, 15, 5, "Expected a table, found 'WHERE'"),
    ("SELECT a FROM LATERAL f(x)", 1, 23, 1, "Expected 'TABLE' or '(', found 'f'"),
    ("WITH RECURSIVE a AS (SELECT 1) SELECT 1", 1, 6, 9, "Recursive queries are not supported"),
    ("WITH a AS (SELECT 1)", 1, 21, 1, "Expected a query (SELECT, VALUES or WITH), found the end of the statement"),
    ("WITH a AS (SELECT 1) VALUES (1)", 1, 22, 6, "WITH needs a SELECT"),
    ("VALUES (1, 2), (3)", 1, 16, 1, "This row has 1 values, the first one has 2"),
    ("SELECT 1 UNION", 1, 15, 1, "Expected a query (SELECT, VALUES or WITH), found the end of the statement"),
    ("TABLE 1", 1, 7, 1, "Expected the name of a table, found '1'"),
    ("SELECT a FROM t QUALIFY x", 1, 17, 7, "QUALIFY is not supported"),
    ("SELECT TOP 5 a FROM t", 1, 12, 1, "Unexpected '5'"),
    ("FROM t SELECT a", 1, 1, 4, "Expected a query (SELECT, VALUES or WITH), found 'FROM'"),
    ("SELECT a INTO b FROM t", 1, 10, 4, "Unexpected 'INTO'"),
    ("SELECT a FROM t |> WHERE b", 1, 17, 1, "Unexpected '|'"),
]


@pytest.mark.parametrize(("text", "line", "column", "length", "fact"), WRONG)
def test_a_wrong_query_is_refused_at_its_place(text: str, line: int, column: int, length: int, fact: str) -> None:
    assert refused_at(parse_query, text) == (line, column, length, fact)
