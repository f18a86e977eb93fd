"""Scripts in current options: what is rewritten, what stays as it was written, and that a difference is noticed."""

from __future__ import annotations

import pytest

from headwater.errors import HeadwaterError
from headwater.session.modernize import Modernizer
from headwater.sql.parser import parse_script

HEAD = "create table t (a STRING, b INT, primary key (a) not enforced)\n"
OLD = "'connector.type' = 'kafka', 'connector.topic' = 't', 'connector.properties.bootstrap.servers' = 'h:1', "
NEW = "'connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'h:1', "


def modernized(text: str, **variables: str) -> str:
    return Modernizer(variables).modernize(text).text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("'format.type' = 'csv')", "'format' = 'csv')"),
        ("'format.type'='csv' )", "'format'='csv' )"),
        ('"format.type" = "csv")', '"format" = "csv")'),
        ("'format.type' = 'CSV')", "'format' = 'csv')"),
        ("'connector.version' = '0.11', 'format.type' = 'csv')", "'format' = 'csv')"),
        ("'format.type' = 'csv', 'connector.version' = '0.11')", "'format' = 'csv')"),
        ("'format.type' = 'csv', /* any */ 'connector.version' = '0.11')", "'format' = 'csv' /* any */ )"),
        ("'connector.version' = '0.11' /* x */, 'format.type' = 'csv')", "/* x */ 'format' = 'csv')"),
        ("\n  'connector.version' = '0.11' -- x\n  , 'format.type' = 'csv')", "\n  -- x\n  'format' = 'csv')"),
        ("'format.type' = 'csv', -- yes\n'connector.version' = '0.11')", "'format' = 'csv' -- yes\n)"),
        (
            "'format.type' = 'csv', 'format.null-literal' = 'it''s $${')",
            "'format' = 'csv', 'csv.null-literal' = 'it''s $${')",
        ),
        ("'format.type'\n  =\n  '${f}')", "'format'\n  =\n  '${f}')"),
        (
            "'connector.properties.flink.partition-discovery.interval-millis' = '9', 'format.type' = 'csv')",
            "'scan.topic-partition-discovery.interval' = '9 ms', 'format' = 'csv')",
        ),
    ],
)
def test_pairs(old: str, new: str) -> None:
    assert modernized(f"{HEAD}with ({OLD}{old};", f="json") == f"{HEAD}with ({NEW}{new};"


def test_a_class_says_what_custom_said() -> None:
    custom = "'connector.sink-partitioner' = 'custom', 'connector.sink-partitioner-class' = 'a.B'"
    done = Modernizer().modernize(f"{HEAD}with ({OLD}{custom}, 'format.type' = 'csv');")
    assert done.text == f"{HEAD}with ({NEW}'sink.partitioner' = 'a.B', 'format' = 'csv');"
    assert done.rewritten[0].dropped == ()


def test_one_becomes_two_where_it_stands() -> None:
    text = f"{HEAD}with (\n  'format.type' = 'csv',  -- c\n  {OLD.replace('kafka', 'upsert-kafka').strip(', ')}\n);"
    new = modernized(text)
    assert "with (\n  'key.format' = 'csv',\n  'value.format' = 'csv',  -- c\n  'connector' = 'upsert-kafka', " in new


def test_the_rest_of_a_script_stays() -> None:
    text = """\
SET 'pipeline.name' = 'connector.type';  -- 'connector.type' = 'kafka'
create table p (a STRING) with ('connector' = 'print');
create view v as select 'connector.type' as a;
insert into p select a from v;
"""
    done = Modernizer().modernize(text)
    assert done.text == text
    assert done.rewritten == ()
    assert done.plans == 1


def test_hints_and_like_mean_what_their_table_makes_of_them() -> None:
    text = f"""{HEAD}with ({OLD.replace("kafka", "upsert-kafka")}'format.type' = 'csv');
create table u with ('connector.topic' = 'u', 'format.field-delimiter' = ';') like t;
execute statement set begin
insert into u /*+ OPTIONS('connector.sink.ignore-retraction' = 'true') */
select a, b from t /*+ OPTIONS('format.ignore-parse-errors' = 'true') */;
insert into u select * from t;
end;
"""
    new = modernized(text)
    assert "with ('topic' = 'u', 'key.csv.field-delimiter' = ';', 'value.csv.field-delimiter' = ';') like t" in new
    assert "OPTIONS('sink.ignore-retractions' = 'true')" in new
    assert "OPTIONS('key.csv.ignore-parse-errors' = 'true', 'value.csv.ignore-parse-errors' = 'true')" in new


def test_scripts_share_their_tables() -> None:
    modernizer = Modernizer()
    modernizer.modernize(f"{HEAD}with ({OLD}'format.type' = 'csv');", "a.sql")
    done = modernizer.modernize("insert into t /*+ OPTIONS('connector.topic' = 'u') */ values ('a', 1);", "b.sql")
    assert done.text == "insert into t /*+ OPTIONS('topic' = 'u') */ values ('a', 1);"
    assert [(part.table, part.line, part.options, part.dropped) for part in done.rewritten] == [("t", 1, 1, ())]


def test_a_difference_is_noticed() -> None:
    modernizer = Modernizer()
    [create] = parse_script("create table x (a INT) with ('connector' = 'print');")
    modernizer.after.apply(create)
    with pytest.raises(HeadwaterError, match="would not do the same"):
        modernizer.modernize(f"{HEAD}with ({OLD}'format.type' = 'csv');")
