"""Old tables whose messages depend on how the input is cut, so they are played as written only."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import CaseRunner, ReplayMode, parse_case

LOG = """\
create table {name} (car_id STRING, car_speed BIGINT) with (
  'connector.type' = 'kafka', 'connector.topic' = '${{log}}', 'connector.properties.group.id' = 'g-${{log}}', {kafka},
  'format.type' = 'csv', 'format.field-delimiter' = '|', {options}
);
"""
CUSTOM = "'connector.sink-partitioner' = 'custom', 'connector.sink-partitioner-class' = 'org.mycompany.MyPartitioner'"
KAFKA = "'connector.properties.bootstrap.servers' = '${kafka}'"
TABLE = """\
create table {name} (car_id STRING, car_speed BIGINT, primary key (car_id) not enforced) with (
  'connector.type' = '{kind}', 'connector.topic' = '${{{name}}}', {kafka}, {options}
);
"""


def table(name: str, kind: str, options: str) -> str:
    return TABLE.format(name=name, kind=kind, options=options, kafka=KAFKA)


def log(name: str, options: str) -> str:
    return LOG.format(name=name, options=options, kafka=KAFKA)


MODULE = """\
class MyPartitioner:
    def partition(self, record, key, value, topic, partitions):
        return ord(record["car_id"]) % partitions
"""


def test_partitioners_update_modes_and_retractions(
    case_runner: CaseRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "org").mkdir()
    (tmp_path / "org" / "mycompany.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    case_runner.play(parse_case(CASE, "legacy.case"), ReplayMode.AS_WRITTEN)


CASE = f"""\
topic source
topic fixed partitions=3
topic round_robin partitions=3
topic custom partitions=3
topic ignored partitions=2
topic retract
topic append
topic log
topic starts

produce log
@timestamp=1000 null => a|1
@timestamp=2000 null => b|2
@timestamp=3000 null => c|3

sql
{log("earliest", "'connector.startup-mode' = 'earliest-offset'")}
{log("latest", "'connector.startup-mode' = 'latest-offset'")}
{log("group_", "'connector.startup-mode' = 'group-offsets', 'connector.properties.auto.offset.reset' = 'earliest'")}
{log("offsets", "'connector.startup-mode' = 'specific-offsets', 'connector.specific-offsets' = 'partition:0,offset:1'")}
{log("time_", "'connector.startup-mode' = 'timestamp', 'connector.startup-timestamp-millis' = '2500'")}
create table starts (start STRING, car_id STRING, car_speed BIGINT) with (
  'connector.type' = 'kafka', 'connector.version' = 'universal', 'connector.topic' = '${{starts}}', {KAFKA},
  'format.type' = 'csv', 'format.field-delimiter' = ';', 'format.null-literal' = 'n/a'
);
insert into starts
select 'earliest', * from earliest union all select 'latest', * from latest union all select 'group', * from group_
union all select 'offsets', * from offsets union all select 'time', * from time_;
{table("source", "upsert-kafka", "'format.type' = 'csv'")}
{table("fixed", "kafka", "'format.type' = 'csv', 'connector.sink-partitioner' = 'fixed'")}
{table("round_robin", "upsert-kafka", "'format.type' = 'csv', 'connector.sink-partitioner' = 'round-robin'")}
{table("custom", "upsert-kafka", f"'format.type' = 'csv', {CUSTOM}")}
{table("ignored", "upsert-kafka", "'format.type' = 'json', 'connector.sink.ignore-retraction' = 'true'")}
{table("retract", "upsert-kafka", "'format.type' = 'avro', 'update-mode' = 'retract'")}
{table("append", "kafka", "'format.type' = 'json', 'update-mode' = 'append'")}
insert into fixed select * from source;
insert into round_robin select * from source;
insert into custom select * from source;
insert into ignored select * from source;
insert into retract select * from source;
insert into append values ('a', 1);

expect starts any-order
null => earliest;a;1
null => earliest;b;2
null => earliest;c;3
null => group;a;1
null => group;b;2
null => group;c;3
null => offsets;b;2
null => offsets;c;3
null => time;c;3

expect append exact
{{"car_id":"a"}} => {{"car_id":"a","car_speed":1}}

produce source
a => a,1
b => b,2
c => c,3

expect fixed any-order
@partition=0 a => a,1
@partition=1 b => b,2
@partition=0 c => c,3

expect round_robin any-order
@partition=1 a => a,1
@partition=2 b => b,2
@partition=0 c => c,3

expect custom any-order
@partition=1 a => a,1
@partition=2 b => b,2
@partition=0 c => c,3

expect ignored per-key
{{"car_id":"a"}} => {{"car_id":"a","car_speed":1}}
{{"car_id":"b"}} => {{"car_id":"b","car_speed":2}}
{{"car_id":"c"}} => {{"car_id":"c","car_speed":3}}

expect retract per-key
@header.rowkind=+I avro{{"car_id":"a"}} => avro{{"car_id":"a","car_speed":1}}
@header.rowkind=+I avro{{"car_id":"b"}} => avro{{"car_id":"b","car_speed":2}}
@header.rowkind=+I avro{{"car_id":"c"}} => avro{{"car_id":"c","car_speed":3}}

produce source
a => null
b => b,5

expect fixed any-order
@partition=0 a => null
@partition=1 b => b,5

expect round_robin any-order
a => null
b => b,5

expect custom any-order
@partition=1 a => null
@partition=2 b => b,5

expect ignored exact
{{"car_id":"b"}} => {{"car_id":"b","car_speed":5}}

expect retract per-key
@header.rowkind=-D avro{{"car_id":"a"}} => null
@header.rowkind=-U avro{{"car_id":"b"}} => null
@header.rowkind=+U avro{{"car_id":"b"}} => avro{{"car_id":"b","car_speed":5}}

table ignored
a | 1
b | 5
c | 3
"""
