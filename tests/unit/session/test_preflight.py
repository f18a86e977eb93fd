"""What is found out before Spark starts. Brokers and topics are in tests/cli/test_job_control.py."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from headwater.control.registry import Registration
from headwater.errors import (
    CheckpointTakenError,
    IncompatibleCheckpointError,
    KafkaUnavailableError,
    StorageRefusedError,
)
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.records import Genesis
from headwater.protocol.storage import open_storage
from headwater.session.definitions import Definitions, JobPlan
from headwater.session.orphaned_checkpoints import check_unused
from headwater.session.preflight import check_start
from headwater.sql.parser import parse_script

GENERATED = """
CREATE TABLE clicks (who STRING, page STRING) WITH ('connector' = 'datagen');
CREATE TABLE totals (k STRING, n BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO totals SELECT {key}, COUNT(*) FROM clicks GROUP BY {key};
"""

AWAY = """
CREATE TABLE clicks (who STRING) WITH (
  'connector' = 'kafka', 'topic' = 'a', 'format' = 'raw', 'properties.bootstrap.servers' = '{servers}');
CREATE TABLE nowhere (who STRING) WITH ('connector' = 'blackhole');
INSERT INTO nowhere SELECT who FROM clicks;
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
    check_start(job, [job.plan])
    begun(job)
    check_start(job, [job.plan])


def test_a_checkpoint_of_another_query_is_refused(tmp_path: Path) -> None:
    begun(planned(GENERATED.format(key="who"), tmp_path))
    job = planned(GENERATED.format(key="page"), tmp_path)
    with pytest.raises(IncompatibleCheckpointError, match="this SQL cannot continue"):
        check_start(job, [job.plan])


def test_who_holds_a_checkpoint_is_named(tmp_path: Path) -> None:
    job = planned(GENERATED.format(key="who"), tmp_path)
    begun(job)
    with (tmp_path / "totals" / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(CheckpointTakenError) as unknown:
            check_start(job, [job.plan])
        Registration(4711, "here", "/nowhere", 1_700_000_000_000).enter(str(tmp_path / "totals"))
        with pytest.raises(CheckpointTakenError) as known:
            check_start(job, [job.plan])
    assert unknown.value.detail == f"Checkpoint: {tmp_path / 'totals'}"
    assert "Process 4711 on here runs it since 2023-11-14 22:13:20 UTC." in known.value.detail
    assert "headwater stop totals" in known.value.hint


def checked(job: JobPlan) -> None:
    """In the order of a run."""
    check_unused([job], ())
    check_start(job, [job.plan])


def refusal(root: Path) -> StorageRefusedError:
    with pytest.raises(StorageRefusedError) as raised:
        checked(planned(GENERATED.format(key="who"), root))
    return raised.value


def test_a_directory_that_cannot_be_created(tmp_path: Path) -> None:
    nowhere = refusal(Path("/proc/headwater"))
    assert nowhere.fact == "'/proc/headwater/totals' cannot be used as a checkpoint."
    assert nowhere.detail == f"creating '/proc/headwater': {os.strerror(errno.ENOENT)}"
    assert nowhere.hint.startswith("Choose a directory")
    (tmp_path / "file").touch()
    assert refusal(tmp_path / "file").fact == f"'{tmp_path / 'file' / 'totals'}' cannot be used as a checkpoint."


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
@pytest.mark.parametrize("mode", [0o000, 0o500])
def test_a_directory_of_somebody_else(tmp_path: Path, mode: int) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode)
    assert os.strerror(errno.EACCES) in refusal(closed).detail
    assert os.strerror(errno.EACCES) in refusal(closed / "below").detail


def test_a_job_that_cannot_start_leaves_no_directory(tmp_path: Path) -> None:
    job = planned(AWAY.format(servers="127.0.0.1:1"), tmp_path)
    with pytest.raises(KafkaUnavailableError):
        check_start(job, [job.plan])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("servers", "fact", "detail"),
    [
        ("127.0.0.1:1", "No Kafka broker answers at '127.0.0.1:1'.", "Connection refused"),
        ("nowhere.invalid:1", "The host name in 'nowhere.invalid:1' is not known.", "Failed to resolve"),
    ],
)
def test_a_broker_that_is_not_there(tmp_path: Path, servers: str, fact: str, detail: str) -> None:
    job = planned(AWAY.format(servers=servers), tmp_path)
    with pytest.raises(KafkaUnavailableError) as raised:
        check_start(job, [job.plan])
    assert raised.value.fact == fact
    assert detail in raised.value.detail
    assert "Check" in raised.value.hint
