"""Which changes of a script a checkpoint can follow."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import json

import pytest
from plan_tables import TABLES, plan

from headwater.errors import IncompatibleCheckpointError
from headwater.plan import nodes as n
from headwater.plan.fingerprint import (
    Fingerprint,
    differences,
    fingerprint_of,
    operator_name,
    rows_description,
    stateful_nodes,
)
from headwater.session import Session

COUNTED = "INSERT INTO by_who SELECT who, COUNT(*) FROM ups WHERE n > 1 GROUP BY who"


def stored(root: n.Write, time_zone: str = "UTC") -> Fingerprint:
    """As a job has it from its checkpoint: it has been through JSON."""
    return Fingerprint.from_json(json.loads(json.dumps(fingerprint_of(root, time_zone).to_json())))


def compared(before: str, after: str) -> list[str]:
    return differences(stored(plan(before)), fingerprint_of(plan(after), "UTC"))


def declared(tables: str, insert: str) -> n.Write:
    session = Session()
    session.sql(tables)
    (only,) = session.check(insert)
    return only


@pytest.mark.parametrize(
    "after",
    [
        COUNTED,
        "INSERT INTO keyed SELECT who, COUNT(*) FROM ups WHERE n > 1 GROUP BY who",
        "INSERT INTO by_who SELECT who, 10 * COUNT(*) FROM ups WHERE n > 1 GROUP BY who",
        "INSERT INTO shown SELECT UPPER(who), c FROM (SELECT who, COUNT(*) AS c FROM ups WHERE n > 1 GROUP BY who) WHERE c > 7",
    ],
)
def test_what_stands_above_the_state_may_change(after: str) -> None:
    assert compared(COUNTED, after) == []


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (COUNTED, COUNTED.replace("COUNT(*)", "SUM(n)"), "the state is of 'Aggregate group by (who) [COUNT(*)"),
        (COUNTED, COUNTED.replace("n > 1", "n > 2"), "the input of 'Normalize by (id)' has changed"),
        (COUNTED, COUNTED.replace("FROM ups", "FROM log_"), "it read upsert-kafka ups, and now reads kafka log"),
        (COUNTED, "INSERT INTO by_id SELECT id, n FROM ups", "and now would for nothing"),
        ("INSERT INTO by_id SELECT id, n FROM ups WHERE n > 1", "INSERT INTO by_id SELECT id, n + 1 FROM ups WHERE n > 1", "the input of"),
        ("INSERT INTO shown SELECT who, n FROM log_", "INSERT INTO shown SELECT who, n FROM log_ UNION ALL SELECT who, n FROM plain", "it read kafka log, and now reads kafka log; kafka plain"),
        ("INSERT INTO plain VALUES ('a', 1)", "INSERT INTO plain VALUES ('a', 2)", "it read values"),
    ],
)  # fmt: skip
def test_what_the_state_cannot_follow_is_told(before: str, after: str, words: str) -> None:
    found = compared(before, after)
    assert any(words in text for text in found), found


@pytest.mark.parametrize(
    ("old", "new", "insert", "words"),
    [
        ("n BIGINT, extra", "n INT, extra", "INSERT INTO by_id SELECT id, n FROM ups WHERE n > 1", "the input of 'Normalize by (id)'"),
        ("n BIGINT, extra", "n INT, extra", "INSERT INTO shown SELECT CAST(n AS STRING), 1 FROM ups", "the input of 'Normalize by (id)'"),
        ("n BIGINT, extra", "n INT, extra", "INSERT INTO by_who SELECT who, MAX(n) FROM ups GROUP BY who", "has values (who STRING, n BIGINT) in 'rows', and now would have (who STRING, n INT)"),
        ("n BIGINT, d", "n INT, d", "INSERT INTO by_who SELECT who, COUNT(DISTINCT n) FROM log_ GROUP BY who", "has keys (who STRING, n BIGINT) in 'values of n', and now would have (who STRING, n INT)"),
        ("(id INT, who STRING, n BIGINT, d", "(id BIGINT, who STRING, n BIGINT, d", "INSERT INTO shown SELECT 'x', COUNT(*) FROM log_ GROUP BY id", "has keys (id INT) in 'groups', and now would have (id BIGINT)"),
        ("n BIGINT, d", "n INT, d", "INSERT INTO by_who SELECT who, MAX(n) FROM log_ GROUP BY who", "MAX(n) of BIGINT BIGINT"),
        ("n BIGINT, d", "n INT, d", "INSERT INTO by_who SELECT who, COUNT(*) FROM log_ WHERE n > 1 GROUP BY who", "the input of 'Aggregate group by (who)"),
    ],
)  # fmt: skip
def test_types_of_what_is_kept_and_of_what_is_below_matter(old: str, new: str, insert: str, words: str) -> None:
    before, after = declared(TABLES, insert), declared(TABLES.replace(old, new), insert)
    found = differences(stored(before), fingerprint_of(after, "UTC"))
    assert any(words in text for text in found), found


def test_distinct_values_are_of_a_type() -> None:
    """COUNT(DISTINCT n) is BIGINT whatever n is, and yet its state is another."""
    counted = "INSERT INTO by_who SELECT who, COUNT(DISTINCT {}) FROM log_ GROUP BY who"
    assert compared(counted.format("id"), counted.format("CAST(id AS BIGINT)")) != []


@pytest.mark.parametrize(
    ("sql", "matters"),
    [
        ("INSERT INTO by_who SELECT DATE_FORMAT(TO_TIMESTAMP_LTZ(n, 3), 'dd'), COUNT(*) FROM log_ GROUP BY DATE_FORMAT(TO_TIMESTAMP_LTZ(n, 3), 'dd')", True),
        (COUNTED, True),
        ("INSERT INTO plain SELECT who, n FROM log_", False),
    ],
)  # fmt: skip
def test_the_time_zone_of_state_matters(sql: str, matters: bool) -> None:
    found = differences(stored(plan(sql), "UTC"), fingerprint_of(plan(sql), "Asia/Tokyo"))
    assert found == (["'table.local-time-zone' was 'UTC', and now is 'Asia/Tokyo'"] if matters else [])


def test_versions_of_state_and_of_functions_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored(plan(COUNTED))
    monkeypatch.setattr(n.Aggregate, "state_version", 7)
    [found] = differences(before, fingerprint_of(plan(COUNTED), "UTC"))
    assert found.startswith("the state of 'Aggregate")
    assert found.endswith("has format version 1, and this release has 7")
    monkeypatch.undo()
    older = Fingerprint.from_json({**fingerprint_of(plan(COUNTED), "UTC").to_json(), "functions": 0})
    assert differences(older, before) == [
        "its state was computed by functions of version 0, and this release has version 1"
    ]


def test_a_fingerprint_of_another_release_is_refused() -> None:
    with pytest.raises(IncompatibleCheckpointError, match="another release") as caught:
        Fingerprint.from_json({"sources": [], "operators": []})
    assert "version 1; this release knows 2" in caught.value.detail


@pytest.mark.parametrize("changed", [COUNTED.replace("n > 1", "n > 2"), COUNTED.replace("SELECT who", "SELECT UPPER(who)").replace("BY who", "BY UPPER(who)"), COUNTED.replace("COUNT(*)", "SUM(n)")])  # fmt: skip
def test_every_difference_is_one_line(changed: str) -> None:
    found = compared(COUNTED, changed)
    assert found
    assert not any("\n" in text for text in found)


def test_a_source_table_may_have_another_name() -> None:
    renamed = TABLES.replace("CREATE TABLE ups", "CREATE TABLE users")
    after = declared(renamed, COUNTED.replace("FROM ups", "FROM users"))
    assert differences(stored(plan(COUNTED)), fingerprint_of(after, "UTC")) == []


def test_options_that_change_nothing_that_is_read_may_change() -> None:
    hinted = COUNTED.replace("FROM ups", "FROM ups /*+ OPTIONS('scan.parallelism' = '4') */")
    assert compared(COUNTED, hinted) == []


def test_a_table_that_is_read_twice_is_one_source() -> None:
    once = "INSERT INTO plain SELECT who, n FROM log_"
    assert compared(once, f"{once} UNION ALL SELECT who, 1 FROM log_") == []


def read_as(options: str) -> str:
    return COUNTED.replace("FROM ups", f"FROM ups /*+ OPTIONS({options}) */")


@pytest.mark.parametrize(
    "changed",
    ["'value.json.timestamp-format.standard' = 'ISO-8601'", "'value.format' = 'csv'", "'key.format' = 'csv'"],
)
def test_how_messages_are_read_matters(changed: str) -> None:
    [found] = compared(COUNTED, read_as(changed))[:1]
    assert "the input of 'Normalize by (id)' has changed" in found
    assert f"{changed.removeprefix(chr(39)).removeprefix('value.')}" in found


def test_patience_with_bad_messages_may_change() -> None:
    patient = "'value.json.ignore-parse-errors' = 'true', 'scan.bad-records' = 'skip'"
    assert compared(COUNTED, read_as(patient)) == []


def test_the_same_description_means_the_same_rows() -> None:
    log = "INSERT INTO plain SELECT who, n FROM log_"
    hinted = log + " /*+ OPTIONS('json.timestamp-format.standard' = 'ISO-8601') */"
    values = "INSERT INTO plain VALUES ('a', {})"
    found = [rows_description(plan(sql)) for sql in (log, hinted, values.format(1), values.format(2))]
    assert len(set(found)) == len(found)
    assert rows_description(plan(log)) == found[0]


def test_operators_are_named_by_kind_and_place() -> None:
    assert [part.name for part in fingerprint_of(plan(COUNTED), "UTC").operators] == ["normalize-1", "aggregate-1"]


def test_a_query_that_is_used_twice_has_one_state() -> None:
    root = plan(
        "INSERT INTO shown WITH c AS (SELECT who, COUNT(*) FROM log_ GROUP BY who) SELECT * FROM c UNION ALL SELECT * FROM c"
    )
    assert [operator_name(root, node) for node in stateful_nodes(root)] == ["aggregate-1"]


def test_what_is_written_twice_and_never_the_same_is_computed_twice() -> None:
    counted = "SELECT who, n, UUID() AS u FROM (SELECT who, COUNT(*) AS n FROM log_ GROUP BY who)"
    root = plan(f"INSERT INTO shown SELECT u, n FROM ({counted}) UNION ALL SELECT u, n FROM ({counted})")
    computed = [e.text for node in n.walk(root) if isinstance(node, n.Project) for e in node.expressions]
    assert computed.count("UUID()") == 2
    assert [operator_name(root, node) for node in stateful_nodes(root)] == ["aggregate-1"]


def test_no_secret_is_in_it() -> None:
    options = "'properties.bootstrap.servers' = 'h:1', 'properties.sasl.jaas.config' = 'hush'"
    table = f"CREATE TABLE s (n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'd', 'format' = 'json', {options});"
    root = declared(TABLES + table, "INSERT INTO shown SELECT 'a', COUNT(*) FROM s")
    assert "hush" not in json.dumps(fingerprint_of(root, "UTC").to_json())
