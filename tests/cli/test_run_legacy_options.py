"""`headwater run` on the tables of the old manuals, then `modernize`; the new script continues from its checkpoint."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.broker import Broker
from headwater.session import connect
from headwater.testing import CaseRunner
from headwater.testing.kafka import Kafka, Record
from headwater.testing.spark import QUICK_ARGUMENTS

pytestmark = pytest.mark.timeout(600)

SCRIPT = """\
-- What the manuals show, fed by a log and by a table that changes.
create table log_ (car_id STRING, car_owner STRING, car_brand STRING, car_speed INT) with (
  'connector' = 'kafka', 'topic' = '${log}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'csv',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'
);
create table seen (car_id STRING, car_owner STRING, car_brand STRING, car_speed INT, primary key (car_id) not enforced)
with (
  'connector' = 'upsert-kafka', 'topic' = '${seen}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'csv', 'value.format' = 'csv', 'scan.bounded.mode' = 'latest-offset'
);
create table upsertKafkaSink(
  car_id STRING,
  car_owner STRING,
  car_brand STRING,
  car_speed INT,
  primary key (car_id) not enforced
)
with (
  'connector.type' = 'upsert-kafka',
  'connector.version' = '0.11',
  'connector.topic' = '${upserts}',
  'connector.properties.bootstrap.servers' = '${kafka}',
  'format.type' = 'csv'
);
create table kafkaSink(
  car_id STRING,
  car_owner STRING,
  car_brand STRING,
  car_speed INT)
with (
  'connector.type' = 'kafka',
  'connector.version' = '0.10',
  'connector.topic' = '${rows}',
  'connector.properties.bootstrap.servers' = '${kafka}',
  'connector.sink-partitioner' = 'round-robin',
  'format.type' = 'csv'
);
create table fromLog with ('connector.topic' = '${fromlog}', 'format.type' = 'avro') like upsertKafkaSink;
insert into upsertKafkaSink select * from seen where car_speed > 50;
insert into kafkaSink select * from log_;
insert into fromLog select * from log_;
"""
NAMES = ("log", "seen", "upserts", "rows", "fromlog")


def test_both_manuals(
    broker: Broker,
    case_runner: CaseRunner,
    unique_topic: Callable[[str], str],
    start: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    kafka = Kafka(broker.bootstrap_servers)
    topics = {name: unique_topic(name) for name in NAMES}
    partitions = {topic: 2 if name == "rows" else 1 for name, topic in topics.items()}
    kafka.create(partitions)
    kafka.produce([Record(topics["log"], None, f"c{n},ann,vw,{n}".encode()) for n in range(4)])
    seen = {b"c1": b"c1,ann,vw,90", b"c2": b"c2,bob,fiat,70", b"c3": b"c3,cid,fiat,10"}
    kafka.produce([Record(topics["seen"], key, value) for key, value in seen.items()])
    (tmp_path / "cars.sql").write_text(SCRIPT, encoding="utf-8")
    values = {"kafka": broker.bootstrap_servers, **topics}
    given = [word for key, value in values.items() for word in ("--var", f"{key}={value}")]

    def headwater(*arguments: str) -> str:
        process = start(*arguments, *given)
        _, err = process.communicate(timeout=400)
        assert process.returncode == 0, err
        return err

    def written(name: str) -> list[tuple[int | None, bytes | None, bytes | None]]:
        ends = {p: end for (_, p), end in kafka.ends({topics[name]: partitions[topics[name]]}).items()}
        return [(r.partition, r.key, r.value) for r in kafka.read(topics[name], {}, ends)]

    headwater("run", "cars.sql", "--checkpoint", "state", *QUICK_ARGUMENTS)
    upserts, rows, from_log = written("upserts"), written("rows"), written("fromlog")
    assert sorted(upserts) == [(0, b"c1", b"c1,ann,vw,90"), (0, b"c2", b"c2,bob,fiat,70")]
    assert sorted(value for _, _, value in rows) == [f"c{n},ann,vw,{n}".encode() for n in range(4)]
    assert [partition for partition, _, _ in rows] == [0, 0, 1, 1]  # in turn
    assert {key for _, key, _ in rows} == {None}
    assert [key for _, key, _ in from_log] == [b"\x04c%d" % n for n in range(4)]  # Avro: a length, then the text

    assert "3 plans compared: the same as before" in headwater("modernize", "cars.sql", "--write")
    assert "connector.type" not in (tmp_path / "cars.sql").read_text(encoding="utf-8")
    # In this process: that `headwater run` continues from a checkpoint is shown by test_run.py.
    with connect(case_runner.spark(), checkpoint=str(tmp_path / "state"), variables=values) as session:
        session.sql((tmp_path / "cars.sql").read_text(encoding="utf-8"), "cars.sql")
        session.wait()
        assert [job.progress().begins.split(" batch")[0] for job in session.jobs] == ["Continues after"] * 3
    assert (written("upserts"), written("rows"), written("fromlog")) == (upserts, rows, from_log)
    kafka.delete(list(topics.values()))
    kafka.close()
