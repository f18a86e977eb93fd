"""LIKE: what a table takes from another one."""

from __future__ import annotations

import pytest
from catalog_scripts import KAFKA, run, with_clause

from headwater.catalog import Catalog
from headwater.errors import HeadwaterError, ValidationError

BASE = f"""
CREATE TABLE base (
  id BIGINT, ts TIMESTAMP(3), later AS ts, off BIGINT METADATA FROM 'offset' VIRTUAL,
  WATERMARK FOR ts AS ts, PRIMARY KEY (id) NOT ENFORCED
) COMMENT 'the base' WITH ({with_clause(KAFKA)});
"""


@pytest.fixture
def catalog() -> Catalog:
    made = Catalog()
    run(made, BASE)
    return made


def test_everything_is_taken_and_options_are_overwritten(catalog: Catalog) -> None:
    run(catalog, "CREATE TABLE t (extra INT) WITH ('topic' = 'other') LIKE base")
    table = catalog.table("t")
    assert [c.name for c in table.columns] == ["id", "ts", "later", "off", "extra"]
    assert table.primary_key == ("id",)
    assert table.watermark is not None
    assert table.comment == "the base"
    assert table.raw_options == {**KAFKA, "topic": "other"}


def test_features_can_be_left_out(catalog: Catalog) -> None:
    excluding = "EXCLUDING GENERATED EXCLUDING METADATA EXCLUDING CONSTRAINTS EXCLUDING WATERMARKS"
    run(catalog, f"CREATE TABLE t (extra INT) LIKE base ({excluding})")
    table = catalog.table("t")
    assert [c.name for c in table.columns] == ["id", "ts", "extra"]
    assert (table.primary_key, table.watermark) == ((), None)


def test_all_can_be_left_out_but_options(catalog: Catalog) -> None:
    run(catalog, "CREATE TABLE t (extra INT) LIKE base (EXCLUDING ALL INCLUDING OPTIONS)")
    table = catalog.table("t")
    assert [c.name for c in table.columns] == ["id", "ts", "extra"]
    assert table.raw_options == KAFKA


def test_generated_columns_can_be_replaced(catalog: Catalog) -> None:
    run(catalog, "CREATE TABLE t (later AS id) LIKE base (OVERWRITING GENERATED)")
    assert [c.name for c in catalog.table("t").columns] == ["id", "ts", "off", "later"]


@pytest.mark.parametrize(
    ("rest", "problem"),
    [
        ("(id INT) LIKE base", "A column named 'id' already exists in the base table 'base'."),
        ("(later INT) LIKE base", "EXCLUDING GENERATED or OVERWRITING GENERATED"),
        ("WITH ('topic' = 'x') LIKE base (INCLUDING OPTIONS)", "There already exists an option ['topic']"),
        ("(x INT, PRIMARY KEY (x) NOT ENFORCED) LIKE base", "both have a PRIMARY KEY"),
        ("(x TIMESTAMP(3), WATERMARK FOR x AS x) LIKE base", "both have a WATERMARK"),
        ("LIKE bass", "Did you mean 'base'?"),
        ("(x INT) LIKE base (EXCLUDING ALL)", "options do not contain an option key 'connector'"),
    ],
)
def test_what_cannot_be_merged(catalog: Catalog, rest: str, problem: str) -> None:
    with pytest.raises(HeadwaterError) as raised:
        run(catalog, f"CREATE TABLE t {rest}")
    assert problem in str(raised.value)


def test_a_view_is_no_base(catalog: Catalog) -> None:
    run(catalog, "CREATE VIEW v AS SELECT 1")
    with pytest.raises(ValidationError, match="'v' is a view"):
        run(catalog, "CREATE TABLE t LIKE v")
