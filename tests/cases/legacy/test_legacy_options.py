"""Old tables whose messages depend on how the input is cut, so they are played as written only."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater.testing import CaseRunner, Way, parse_case

CUSTOM = "'connector.sink-partitioner' = 'custom', 'connector.sink-partitioner-class' = 'org.mycompany.MyPartitioner'"
KAFKA = "'connector.properties.bootstrap.servers' = '${kafka}'"
TABLE = """\
create table {name} (car_id STRING, car_speed BIGINT, primary key (car_id) not enforced) with (
  'connector.type' = '{kind}', 'connector.topic' = '${{{name}}}', {kafka}, {options}
);
"""


def table(name: str, kind: str, options: str) -> str:
    return TABLE.format(name=name, kind=kind, options=options, kafka=KAFKA)


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
    case_runner.play(parse_case(CASE, "legacy.case"), Way.AS_WRITTEN)


CASE = f"""\
topic source
topic fixed partitions=3
topic round_robin partitions=3
topic custom partitions=3
topic ignored partitions=2
topic retract
topic append

sql
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
