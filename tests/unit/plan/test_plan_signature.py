"""Which changes of a script a checkpoint can follow."""

# ruff: noqa: E501 - a statement and what becomes of it stand on one line
from __future__ import annotations

import json

import pytest
from plan_tables import TABLES, plan

from headwater.plan.chance import keeps_tasks
from headwater.plan.signature import Signature, dealt_by, differences, fed_by, signature_of
from headwater.session import Session

COUNTED = "INSERT INTO by_who SELECT who, COUNT(*) FROM ups WHERE n > 1 GROUP BY who"


def compared(before: str, after: str) -> list[str]:
    """As a job does it: what is stored has been through JSON."""
    stored = Signature.from_json(json.loads(json.dumps(signature_of(plan(before)).to_json())))
    return differences(stored, signature_of(plan(after)))


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
        (COUNTED, COUNTED.replace("n > 1", "n > 2"), "what feeds 'Normalize by (id)' has changed"),
        (COUNTED, COUNTED.replace("FROM ups", "FROM log_"), "it read upsert-kafka ups, and now reads kafka log"),
        (COUNTED, "INSERT INTO by_id SELECT id, n FROM ups", "and now would for nothing"),
        ("INSERT INTO by_id SELECT id, n FROM ups WHERE n > 1", "INSERT INTO by_id SELECT id, n + 1 FROM ups WHERE n > 1", "what feeds"),
        ("INSERT INTO shown SELECT who, n FROM log_", "INSERT INTO shown SELECT who, n FROM log_ UNION ALL SELECT who, n FROM plain", "it read kafka log, and now reads kafka log; kafka plain"),
        ("INSERT INTO plain VALUES ('a', 1)", "INSERT INTO plain VALUES ('a', 2)", "it read values"),
    ],
)  # fmt: skip
def test_what_the_state_cannot_follow_is_told(before: str, after: str, words: str) -> None:
    found = compared(before, after)
    assert any(words in text for text in found), found


def test_types_of_what_is_kept_matter() -> None:
    before = signature_of(plan("INSERT INTO by_id SELECT id, n FROM ups WHERE n > 1"))
    changed = Session()
    changed.check(TABLES.replace("who STRING, n BIGINT, extra", "who STRING, n INT, extra"))
    (after,) = changed.check("INSERT INTO by_id SELECT id, n FROM ups WHERE n > 1")
    assert differences(before, signature_of(after)) != []


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
    assert "what feeds 'Normalize by (id)' has changed" in found
    assert f"{changed.removeprefix(chr(39)).removeprefix('value.')}" in found


def test_patience_with_bad_messages_may_change() -> None:
    patient = "'value.json.ignore-parse-errors' = 'true', 'scan.bad-records' = 'skip'"
    assert compared(COUNTED, read_as(patient)) == []


def test_the_same_text_means_the_same_rows() -> None:
    log = "INSERT INTO plain SELECT who, n FROM log_"
    hinted = log + " /*+ OPTIONS('json.timestamp-format.standard' = 'ISO-8601') */"
    texts = [fed_by(plan(sql)) for sql in (log, hinted, "INSERT INTO plain VALUES ('a', 1)")]
    texts += [fed_by(plan("INSERT INTO plain VALUES ('a', 2)"))]
    assert len(set(texts)) == len(texts)
    assert fed_by(plan(log)) == texts[0]


def test_operators_are_named_by_their_place() -> None:
    assert [part.name for part in signature_of(plan(COUNTED)).operators] == ["1-normalize", "2-aggregate"]


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("INSERT INTO plain SELECT UPPER(who), n FROM log_ WHERE n > 1", True),
        ("INSERT INTO plain SELECT who, n FROM log_ UNION ALL SELECT who, n FROM log_ WHERE n > 1", True),
        ("INSERT INTO by_who SELECT who, COUNT(*) FROM log_ GROUP BY who", False),
        ("INSERT INTO by_id SELECT id, n FROM ups", True),
        ("INSERT INTO shown SELECT who, n FROM ups", False),
    ],
)
def test_rows_stay_in_their_tasks_unless_they_are_brought_together(sql: str, kept: bool) -> None:
    assert keeps_tasks(plan(sql)) is kept


def test_what_deals_out_messages_is_told_without_values_of_properties() -> None:
    session = Session()
    options = (
        "'properties.bootstrap.servers' = 'h:1', 'properties.sasl.jaas.config' = 'secret', 'scan.parallelism' = '3'"
    )
    session.check(
        TABLES
        + f"""
CREATE TABLE dealt (n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'd', 'format' = 'json', {options});"""
    )
    (only,) = session.check("INSERT INTO shown SELECT 'a', n FROM dealt")
    given = "'connector' = 'kafka', 'format' = 'json', properties.bootstrap.servers, properties.sasl.jaas.config"
    listed = f"{given}, 'scan.parallelism' = '3', 'topic' = 'd'"
    assert dealt_by(only) == f"way 1\ndealt: {listed}"
