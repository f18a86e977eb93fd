"""Whatever the text, a script is a list of statements or a SqlError with a place that can be shown."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from headwater.errors import SqlError
from headwater.sql.parser import parse_expression, parse_script
from headwater.sql.writer import write_sql

WORDS = re.split(
    r"\s+",
    """
SELECT FROM WHERE GROUP|BY HAVING ORDER|BY LIMIT OFFSET FETCH FIRST ROWS ONLY WITH AS ( ) ( ) , . ; [ ] < > = + - * / %
a b t `x|y` 'text' 'it''s' "dq" 1 2.5 1e3 .5 NULL TRUE UNKNOWN AND OR NOT IN LIKE ESCAPE BETWEEN IS DISTINCT CASE WHEN
THEN ELSE END CAST INT ROW ARRAY MAP MULTISET STRING DECIMAL(3,2) TIMESTAMP(3) TIMESTAMP DATE INTERVAL '1' DAY SECOND TO
CREATE TEMPORARY TABLE VIEW IF EXISTS PRIMARY KEY ENFORCED CONSTRAINT WATERMARK FOR METADATA VIRTUAL COMMENT PARTITIONED
INSERT INTO VALUES EXECUTE STATEMENT SET BEGIN EXPLAIN PLAN DROP SHOW TABLES DESCRIBE RESET OVER PARTITION|BY RANGE
UNBOUNDED PRECEDING CURRENT WINDOW FILTER UNION ALL INTERSECT JOIN LEFT CROSS NATURAL ON USING LATERAL UNNEST DESCRIPTOR
TUMBLE SYSTEM_TIME OF /*+|OPTIONS('k'='v')|*/ /*c*/ --c COUNT SUM f TRIM BOTH SUBSTRING EXTRACT JSON_VALUE RETURNING
JSON_OBJECT VALUE => : ? @ # $ \\ { } {# ~ ! <> & ^ x'0a' x'0 U&'\\0041' UESCAPE N'q' é ${v} ${w} $${ ' ` " /* */
""".strip(),
)

_tokens = st.sampled_from([word.replace("|", " ") for word in WORDS] + ["||", "\n"])
_starts = st.sampled_from(
    [
        *("", "SELECT", "SELECT * FROM", "SELECT a FROM t WHERE", "SELECT CAST(a AS", "CREATE TABLE t ("),
        *(
            "CREATE TABLE t (a INT",
            "INSERT INTO t SELECT",
            "EXECUTE STATEMENT SET BEGIN INSERT INTO t SELECT",
            "SET",
            "EXPLAIN",
        ),
    ]
)


def refusal(text: str) -> SqlError | None:
    """The error of a script, or None if it can be read."""
    try:
        statements = parse_script(text, variables={"v": "x'y"})
    except SqlError as error:
        return error
    assert all(statement.text in text for statement in statements)
    return None


@settings(max_examples=400, deadline=None)
@given(_starts, st.lists(_tokens, max_size=14))
def test_a_soup_of_words_is_read_or_refused(start: str, words: list[str]) -> None:
    text = " ".join([start, *words])
    error = refusal(text)
    if error is None:
        return
    assert error.fact
    assert "sqlglot" not in str(error)
    assert "\x1b" not in str(error)
    assert error.position is not None
    assert 1 <= error.position.line <= text.count("\n") + 1
    assert 1 <= error.position.column <= len(error.position.text) + 1


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    refusal(text)
    refusal(f"SELECT {text} FROM t")


_operands = st.sampled_from(["a", "`b`", "1", "'x'", "NULL", "TRUE", "t.c", "x[1]", "f(a)", "COUNT(*)"])
_operators = st.sampled_from(
    ["+", "-", "*", "/", "%", "||", "=", "<>", "<", ">=", "AND", "OR", "LIKE", "NOT LIKE", "IS DISTINCT FROM"]
)


def _longer(part: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    not_ = st.sampled_from(["", "NOT "])
    return st.one_of(
        st.tuples(part, _operators, part).map(" ".join),
        st.tuples(st.sampled_from(["NOT ", "-", "+"]), part).map("".join),
        st.builds("({})".format, part),
        st.builds("{} IS {}{}".format, part, not_, st.sampled_from(["NULL", "TRUE", "UNKNOWN", "JSON"])),
        st.builds("{} {}IN ({}, {})".format, part, not_, part, part),
        st.builds("{} {}BETWEEN {} AND {}".format, part, not_, part, part),
        st.builds("CASE WHEN {} THEN {} END".format, part, part),
    )


@settings(max_examples=400, deadline=None)
@given(st.recursive(_operands, _longer, max_leaves=8))
def test_what_is_written_reads_back_as_the_same_tree(text: str) -> None:
    """Whatever operators meet, and whether or not they have parentheses."""
    try:
        node = parse_expression(text)
    except SqlError:
        return
    assert parse_expression(write_sql(node)) == node
