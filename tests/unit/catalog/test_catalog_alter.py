"""ALTER TABLE … ADD, MODIFY, DROP and RENAME: the table that is left, and what is refused as Flink refuses it."""

from __future__ import annotations

import pytest
from catalog_scripts import KAFKA, with_clause

from headwater.catalog.describe import show_create
from headwater.errors import HeadwaterError, SqlError
from headwater.session import Session

BASE = f"""
CREATE TABLE t (id STRING, tags ARRAY<STRING>, ts TIMESTAMP(3), n INT, up AS UPPER(id), WATERMARK FOR ts AS ts)
WITH ({with_clause(KAFKA)});
"""


def altered(*changes: str, base: str = BASE) -> list[str]:
    """What is between the parentheses of the table as it is in the end."""
    session = Session()
    session.sql(base + ";".join(f"ALTER TABLE {change}" for change in changes))
    lines = show_create(session.catalog.table("t")).split("\n")
    return [line.strip().rstrip(",").replace("`", "") for line in lines[1 : lines.index(")")]]


DECLARED = ["id STRING", "tags ARRAY<STRING>", "ts TIMESTAMP(3)", "n INT", "up AS UPPER(id)"]
WATERMARK = "WATERMARK FOR ts AS ts"


def test_columns_are_added_where_they_are_wanted() -> None:
    changes = "ADD (a INT FIRST, b AS PROCTIME() AFTER id, c TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' COMMENT 'x')"
    first, *others = DECLARED
    expected = ["a INT", first, "b AS PROCTIME()", *others]
    expected.append("c TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' COMMENT 'x'")
    assert altered(f"t {changes}") == [*expected, WATERMARK]
    assert altered("t ADD (a INT, b INT AFTER a)")[5:7] == ["a INT", "b INT"]


def test_columns_are_modified_in_their_place_or_moved() -> None:
    assert altered("t MODIFY n BIGINT COMMENT 'more'")[3] == "n BIGINT COMMENT 'more'"
    assert altered("t MODIFY (n BIGINT AFTER id, up AS LOWER(id) FIRST)")[:3] == [
        "up AS LOWER(id)",
        "id STRING",
        "n BIGINT",
    ]
    assert altered("t MODIFY n AS CARDINALITY(tags)")[3] == "n AS CARDINALITY(tags)"


def test_a_watermark_comes_changes_and_goes() -> None:
    assert altered("t MODIFY WATERMARK FOR ts AS ts - INTERVAL '5' SECOND")[-1].endswith("ts - INTERVAL '5' SECOND")
    assert altered("t DROP WATERMARK") == DECLARED
    assert altered("t DROP WATERMARK", "t ADD (at AS ts, WATERMARK FOR ts AS ts)")[-2:] == ["at AS ts", WATERMARK]


def test_a_primary_key_comes_changes_and_goes() -> None:
    keyed = altered("t ADD PRIMARY KEY (id) NOT ENFORCED")
    assert (keyed[0], keyed[-1]) == ("id STRING NOT NULL", "PRIMARY KEY (id) NOT ENFORCED")
    key = "t ADD CONSTRAINT k PRIMARY KEY (id) NOT ENFORCED"
    assert altered(key, "t MODIFY PRIMARY KEY (n) NOT ENFORCED")[-1] == "PRIMARY KEY (n) NOT ENFORCED"
    assert altered(key, "t DROP PRIMARY KEY")[-1] == WATERMARK
    assert altered("t ADD PRIMARY KEY (n) NOT ENFORCED", "t RENAME n TO m")[3] == "m INT NOT NULL"
    assert altered("t ADD PRIMARY KEY (n) NOT ENFORCED", "t MODIFY n STRING")[3] == "n STRING NOT NULL"


def test_columns_are_dropped_with_what_needs_them() -> None:
    assert altered("t DROP n")[3] == "up AS UPPER(id)"
    assert altered("t DROP (up, id)")[0] == "tags ARRAY<STRING>"
    assert altered("t RENAME n TO m")[3] == "m INT"


def test_names_that_are_words_of_the_syntax() -> None:
    assert "partition INT METADATA" in altered("t ADD `partition` INT METADATA")
    assert "distribution INT" in altered("t ADD distribution INT")
    assert altered("t ADD first INT FIRST")[0] == "first INT"


def test_a_query_sees_the_columns_that_there_are() -> None:
    session = Session()
    session.sql(f"{BASE} CREATE TABLE p (v STRING) WITH ('connector' = 'print'); ALTER TABLE t ADD extra STRING;")
    session.check("INSERT INTO p SELECT extra FROM t")
    with pytest.raises(SqlError, match="Unknown column 'n'"):
        session.check("ALTER TABLE t DROP n; INSERT INTO p SELECT CAST(n AS STRING) FROM t")


@pytest.mark.parametrize(
    ("change", "fact", "under"),
    [
        ("t ADD id INT", "The table 't' already has a column 'id'.", "id"),
        ("t ADD WATERMARK FOR ts AS ts", "The table 't' already has a WATERMARK.", "t"),
        ("t ADD q INT AFTER nope", "There is no column 'nope'.", "q"),
        ("t ADD (q INT, q INT)", "The column 'q' appears twice", "q"),
        ("t ADD q AS up", "Unknown column 'up'", "up"),
        ("t ADD q AS nope + 1", "Unknown column 'nope'", "nope"),
        ("t ADD PRIMARY KEY (up) NOT ENFORCED", "Table 't' is not valid: 1 problem.", ""),
        ("t MODIFY nope BIGINT", "There is no column 'nope'.", "nope"),
        ("t MODIFY PRIMARY KEY (id) NOT ENFORCED", "The table 't' has no PRIMARY KEY to modify.", "t"),
        ("t MODIFY WATERMARK FOR n AS ts", "Table 't' is not valid: 1 problem.", ""),
        ("t MODIFY WATERMARK FOR up AS ts", "The time of a watermark must be a TIMESTAMP", ""),
        ("t MODIFY ts STRING", "Table 't' is not valid: 1 problem.", ""),
        ("t MODIFY id ARRAY<INT>", "UPPER", ""),
        ("t DROP nope", "There is no column 'nope'.", "nope"),
        ("t DROP ts", "The column 'ts' cannot be dropped: the watermark needs it.", "ts"),
        ("t DROP (n, id)", "The column 'id' cannot be dropped: the computed column 'up' needs it.", "id"),
        ("t DROP PRIMARY KEY", "The table 't' has no PRIMARY KEY to drop.", "t"),
        ("t DROP CONSTRAINT k", "ALTER TABLE … DROP CONSTRAINT is not supported", "CONSTRAINT"),
        ("t DROP PARTITION (a = 1)", "ALTER TABLE … DROP PARTITION is not supported", "PARTITION"),
        ("t ADD DISTRIBUTION BY (id)", "ALTER TABLE … ADD DISTRIBUTION is not supported", "DISTRIBUTION"),
        ("t RENAME nope TO a", "There is no column 'nope'.", "nope"),
        ("t RENAME n TO id", "The table 't' already has a column 'id'.", "id"),
        ("t RENAME id TO a", "The column 'id' cannot be renamed: the computed column 'up' needs it.", "id"),
        ("nosuch ADD a INT", "There is no table or view 'nosuch'.", "nosuch"),
    ],
)
def test_refused(change: str, fact: str, under: str) -> None:
    session = Session()
    session.sql(BASE)
    with pytest.raises(HeadwaterError) as caught:
        session.sql(f"ALTER TABLE {change}")
    assert fact in caught.value.fact
    position = getattr(caught.value, "position", None)
    if under:
        assert position is not None
        assert position.text[position.column - 1 :][: position.length] == under
    assert show_create(session.catalog.table("t")).count("\n") == 13  # as it was


def test_dropping_what_the_key_is_made_of() -> None:
    keyed = BASE + "ALTER TABLE t ADD PRIMARY KEY (n) NOT ENFORCED;"
    with pytest.raises(SqlError, match="The column 'n' cannot be dropped"):
        altered("t DROP n", base=keyed)
    with pytest.raises(SqlError, match="The table 't' already has a PRIMARY KEY"):
        altered("t ADD PRIMARY KEY (id) NOT ENFORCED", base=keyed)


def test_only_if_it_exists() -> None:
    assert altered("IF EXISTS nosuch ADD a INT", "IF EXISTS t DROP n")[3] == "up AS UPPER(id)"
