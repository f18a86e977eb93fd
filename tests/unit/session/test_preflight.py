"""What is found out before Spark starts. Brokers and topics are in tests/cli/test_job_control.py."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from headwater.connectors.kafka.clients import rdkafka_admin
from headwater.control.registry import Registration
from headwater.errors import CheckpointTakenError, IncompatibleCheckpointError, KafkaUnavailableError
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.records import Genesis
from headwater.protocol.storage import open_storage
from headwater.session.definitions import Definitions, JobPlan
from headwater.session.preflight import check_start
from headwater.sql.parser import parse_script

GENERATED = """
CREATE TABLE clicks (who STRING, page STRING) WITH ('connector' = 'datagen');
CREATE TABLE totals (k STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO totals SELECT {key}, COUNT(*) FROM clicks GROUP BY {key};
"""


def planned(script: str, root: Path) -> JobPlan:
    definitions = Definitions(checkpoint=str(root))
    (job,) = [job for statement in parse_script(script, "a.sql") for job in definitions.apply(statement)]
    return job


def begun(job: JobPlan) -> None:
    genesis = Genesis("id", job.fingerprint.rows, 2, [{}], [None], [], job.fingerprint.to_json())
    checkpoint = Checkpoint(open_storage(f"{job.root}/{job.name}"))
    checkpoint.begin(genesis)
    checkpoint.release()


def test_a_checkpoint_of_the_same_query_is_fine(tmp_path: Path) -> None:
    job = planned(GENERATED.format(key="who"), tmp_path)
    check_start(job, [job])
    begun(job)
    check_start(job, [job])


def test_a_checkpoint_of_another_query_is_refused(tmp_path: Path) -> None:
    begun(planned(GENERATED.format(key="who"), tmp_path))
    job = planned(GENERATED.format(key="page"), tmp_path)
    with pytest.raises(IncompatibleCheckpointError, match="this SQL cannot continue"):
        check_start(job, [job])


def test_who_holds_a_checkpoint_is_named(tmp_path: Path) -> None:
    job = planned(GENERATED.format(key="who"), tmp_path)
    begun(job)
    with (tmp_path / "totals" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CheckpointTakenError) as unknown:
            check_start(job, [job])
        Registration(4711, "here", "/nowhere", 1_700_000_000_000).enter(str(tmp_path / "totals"))
        with pytest.raises(CheckpointTakenError) as known:
            check_start(job, [job])
    assert unknown.value.detail == f"Checkpoint: {tmp_path / 'totals'}"
    assert "Process 4711 on here runs it since 2023-11-14 22:13:20 UTC." in known.value.detail
    assert "headwater stop totals" in known.value.hint


def test_a_broker_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdkafka_admin, "_REQUEST_SECONDS", 1.0)  # what a request waits for is not what is tested
    script = """
    CREATE TABLE clicks (who STRING) WITH ('connector' = 'kafka', 'topic' = 'a', 'format' = 'raw',
      'properties.bootstrap.servers' = '127.0.0.1:1');
    CREATE TABLE nowhere (who STRING) WITH ('connector' = 'blackhole');
    INSERT INTO nowhere SELECT who FROM clicks;
    """
    job = planned(script, tmp_path)
    with pytest.raises(KafkaUnavailableError, match="No Kafka broker answers"):
        check_start(job, [job])
