"""Types as written in a script: every form, its canonical form, its Spark type, and what is refused where."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusals import refused_at

from headwater.errors import SqlError
from headwater.sql import types
from headwater.sql.parser import parse_expression, parse_type
from headwater.sql.trees import data_type_node, to_type
from headwater.sql.types import Field, SqlType

FORMS = [
    # written, canonical, Spark
    ("CHAR", "CHAR(1)", "STRING"),
    ("character(3)", "CHAR(3)", "STRING"),
    ("CHAR VARYING(4)", "VARCHAR(4)", "STRING"),
    ("VARCHAR", "VARCHAR(1)", "STRING"),
    ("VARCHAR(20)", "VARCHAR(20)", "STRING"),
    ("VARCHAR(2147483647)", "STRING", "STRING"),
    ("STRING", "STRING", "STRING"),
    ("BOOLEAN", "BOOLEAN", "BOOLEAN"),
    ("BINARY", "BINARY(1)", "BINARY"),
    ("BINARY(16)", "BINARY(16)", "BINARY"),
    ("VARBINARY", "VARBINARY(1)", "BINARY"),
    ("VARBINARY(2147483647)", "BYTES", "BINARY"),
    ("BYTES", "BYTES", "BINARY"),
    ("DECIMAL", "DECIMAL(10, 0)", "DECIMAL(10,0)"),
    ("DEC(5)", "DECIMAL(5, 0)", "DECIMAL(5,0)"),
    ("NUMERIC(38, 38)", "DECIMAL(38, 38)", "DECIMAL(38,38)"),
    ("TINYINT", "TINYINT", "TINYINT"),
    ("SMALLINT", "SMALLINT", "SMALLINT"),
    ("INT", "INT", "INT"),
    ("INTEGER", "INT", "INT"),
    ("BIGINT", "BIGINT", "BIGINT"),
    ("FLOAT", "FLOAT", "FLOAT"),
    ("DOUBLE", "DOUBLE", "DOUBLE"),
    ("DOUBLE PRECISION", "DOUBLE", "DOUBLE"),
    ("DATE", "DATE", "DATE"),
    ("TIME", "TIME(0)", "INT"),
    ("TIME(3)", "TIME(3)", "INT"),
    ("TIME(9) WITHOUT TIME ZONE", "TIME(9)", "INT"),
    ("TIMESTAMP", "TIMESTAMP(6)", "TIMESTAMP_NTZ"),
    ("TIMESTAMP(0)", "TIMESTAMP(0)", "TIMESTAMP_NTZ"),
    ("TIMESTAMP(3) WITHOUT TIME ZONE", "TIMESTAMP(3)", "TIMESTAMP_NTZ"),
    ("TIMESTAMP WITH LOCAL TIME ZONE", "TIMESTAMP_LTZ(6)", "TIMESTAMP"),
    ("timestamp(9) with local time zone", "TIMESTAMP_LTZ(9)", "TIMESTAMP"),
    ("TIMESTAMP_LTZ", "TIMESTAMP_LTZ(6)", "TIMESTAMP"),
    ("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(3)", "TIMESTAMP"),
    ("INTERVAL DAY TO SECOND(3)", "INTERVAL DAY", "INTERVAL DAY TO SECOND"),
    ("INTERVAL YEAR", "INTERVAL YEAR", "INTERVAL YEAR TO MONTH"),
    ("ARRAY<INT>", "ARRAY<INT>", "ARRAY<INT>"),
    ("INT ARRAY", "ARRAY<INT>", "ARRAY<INT>"),
    ("INT NOT NULL ARRAY NOT NULL", "ARRAY<INT NOT NULL> NOT NULL", "ARRAY<INT>"),
    ("INT MULTISET ARRAY", "ARRAY<MULTISET<INT>>", "ARRAY<MAP<INT,INT>>"),
    ("MULTISET<STRING>", "MULTISET<STRING>", "MAP<STRING,INT>"),
    ("MAP<STRING, ARRAY<BIGINT NULL>>", "MAP<STRING, ARRAY<BIGINT>>", "MAP<STRING,ARRAY<BIGINT>>"),
    ("ROW<a INT, b STRING 'a comment'>", "ROW<`a` INT, `b` STRING>", "STRUCT<`a`:INT,`b`:STRING>"),
    ("ROW(a INT NOT NULL, `b c` DATE)", "ROW<`a` INT NOT NULL, `b c` DATE>", "STRUCT<`a`:INT,`b c`:DATE>"),
    (
        "ROW<r ROW<timestamp TIMESTAMP(3)>>",
        "ROW<`r` ROW<`timestamp` TIMESTAMP(3)>>",
        "STRUCT<`r`:STRUCT<`timestamp`:TIMESTAMP_NTZ>>",
    ),
    ("BIGINT NOT NULL", "BIGINT NOT NULL", "BIGINT"),
    ("BIGINT NULL", "BIGINT", "BIGINT"),
]


@pytest.mark.parametrize(("written", "canonical", "spark"), FORMS)
def test_a_type_has_one_canonical_form(written: str, canonical: str, spark: str) -> None:
    sql_type = parse_type(written)
    assert str(sql_type) == canonical
    assert sql_type.spark() == spark
    assert parse_type(canonical) == sql_type


@pytest.mark.parametrize(("written", "canonical", "spark"), FORMS)
def test_a_cast_carries_its_type(written: str, canonical: str, spark: str) -> None:
    node = parse_expression(f"CAST(x AS {written})")
    assert str(to_type(node.copy().args["to"])) == canonical


def test_a_field_keeps_its_comment_but_is_no_other_type() -> None:
    row = parse_type("ROW<b STRING 'it''s'>")
    assert row.fields[0].comment == "it's"
    assert row == SqlType("ROW", fields=(Field("b", types.STRING),))


def test_to_type_refuses_what_did_not_come_from_a_script() -> None:
    with pytest.raises(TypeError, match="not a type"):
        to_type(parse_expression("x"))
    assert to_type(data_type_node(types.INT)) == types.INT


REFUSED = [
    # written, column of the caret, its length, the fact
    ("DECIMAL(0)", 9, 1, "The precision of DECIMAL must be between 1 and 38, not 0"),
    ("DECIMAL(39)", 9, 2, "The precision of DECIMAL must be between 1 and 38, not 39"),
    ("DECIMAL(3, 4)", 12, 1, "The scale of DECIMAL must be between 0 and 3, not 4"),
    ("DECIMAL(3, 2, 1)", 15, 1, "Too many numbers in the type"),
    ("DECIMAL(a)", 9, 1, "Expected a whole number, found 'a'"),
    ("TIMESTAMP(10)", 11, 2, "The precision of TIMESTAMP must be between 0 and 9, not 10"),
    ("TIMESTAMP_LTZ(10)", 15, 2, "The precision of TIMESTAMP_LTZ must be between 0 and 9, not 10"),
    ("TIME(12)", 6, 2, "The precision of TIME must be between 0 and 9, not 12"),
    ("CHAR(0)", 6, 1, "The length of CHAR must be between 1 and 2147483647, not 0"),
    ("VARBINARY(2147483648)", 11, 10, "The length of VARBINARY must be between 1 and 2147483647, not 2147483648"),
    ("INT(3)", 4, 1, "INT takes no length"),
    ("STRING(3)", 7, 1, "STRING takes no length"),
    ("TIMESTAMP WITH TIME ZONE", 1, 9, "TIMESTAMP WITH TIME ZONE is not supported"),
    ("TIME WITH LOCAL TIME ZONE", 1, 4, "TIME WITH LOCAL TIME ZONE is not supported"),
    ("TEXT", 1, 4, "Unknown type 'TEXT'"),
    ("struct<a INT>", 1, 6, "Unknown type 'struct'"),
    ("FOO", 1, 3, "Unknown type 'FOO'"),
    ("VARIANT", 1, 7, "The type VARIANT is not supported"),
    ("ARRAY", 6, 1, "Expected '<', found the end of the statement"),
    ("ARRAY<INT", 10, 1, "Expected '>', found the end of the statement"),
    ("MAP<INT>", 8, 1, "Expected ',', found '>'"),
    ("ROW<>", 4, 2, "A ROW needs at least one field"),
    ("ROW<a INT, a INT>", 12, 1, "The field 'a' appears twice in a ROW"),
    ("ROW<a>", 6, 1, "Expected a type, found '>'"),
    ("`INT`", 1, 5, "Expected a type, found 'INT'"),
    ("'INT'", 1, 5, "Expected a type, found the string 'INT'"),
    ("INTERVAL FOO", 10, 3, "Expected YEAR or MONTH or DAY or HOUR or MINUTE or SECOND, found 'FOO'"),
    ("INT INT", 5, 3, "Unexpected 'INT'"),
    ("", 1, 1, "Expected a type, found the end of the statement"),
]


@pytest.mark.parametrize(("written", "column", "length", "fact"), REFUSED)
def test_a_wrong_type_is_refused_at_its_place(written: str, column: int, length: int, fact: str) -> None:
    assert refused_at(parse_type, written) == (1, column, length, fact)


@pytest.mark.parametrize(("written", "hint"), [("TEXT", "STRING"), ("DATETIME", "TIMESTAMP(p)"), ("STRUCT", "ROW<")])
def test_the_names_of_other_databases_get_a_hint(written: str, hint: str) -> None:
    with pytest.raises(SqlError) as caught:
        parse_type(written)
    assert hint in caught.value.hint


_NAMES = st.sampled_from(["a", "b_1", "select", "two words", "back`quote", "größe"])
_LEAVES = st.one_of(
    st.sampled_from([types.BOOLEAN, types.INT, types.STRING, types.BYTES, types.DATE, types.DOUBLE]),
    st.integers(0, 9).map(types.timestamp),
    st.integers(0, 9).map(types.timestamp_ltz),
    st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: types.decimal(p, s))),
    st.integers(1, 2147483646).map(lambda n: SqlType("VARCHAR", length=n)),
)


def _nested(inner: st.SearchStrategy[SqlType]) -> st.SearchStrategy[SqlType]:
    fields = st.lists(st.tuples(_NAMES, inner), min_size=1, max_size=3, unique_by=lambda f: f[0])
    return st.one_of(
        inner.map(lambda t: SqlType("ARRAY", element=t)),
        inner.map(lambda t: SqlType("MULTISET", element=t)),
        st.tuples(inner, inner).map(lambda kv: SqlType("MAP", key=kv[0], element=kv[1])),
        fields.map(lambda fs: SqlType("ROW", fields=tuple(Field(n, t) for n, t in fs))),
        inner.map(lambda t: t.not_null()),
    )


@settings(max_examples=100, deadline=None)
@given(st.recursive(_LEAVES, _nested, max_leaves=6))
def test_every_type_reads_back_as_written(sql_type: SqlType) -> None:
    assert parse_type(str(sql_type)) == sql_type
