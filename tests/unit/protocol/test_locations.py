"""Locations of checkpoints: what is a path, what is a key, what is a setting, and what is never shown."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from headwater.errors import StorageRefusedError
from headwater.protocol.locations import join, parse_location, shown
from headwater.protocol.storage import open_storage, task_storage

SECRET = "s3://b/jobs?access_key_id=AKIDOFMINE&secret_access_key=verysecret&region=eu-central-1"


def test_paths_stay_paths(tmp_path: Path) -> None:
    assert parse_location(f"{tmp_path}/a?b#c").path == f"{tmp_path}/a?b#c"
    assert parse_location(f"file://{tmp_path}/a%20b").path == f"{tmp_path}/a b"
    assert parse_location("jobs").path == str(Path("jobs").absolute())


def test_a_query_holds_settings_and_is_no_part_of_a_key() -> None:
    """Defect j: with a query, every file went to one key."""
    found = parse_location("s3://bucket/a/b%3Fc/?endpoint=http://127.0.0.1:9000&allow_http=true&region=x")
    assert (found.scheme, found.bucket, found.path) == ("s3", "bucket", "a/b?c")
    assert found.settings == {"endpoint": "http://127.0.0.1:9000", "allow_http": True, "region": "x"}
    assert parse_location("s3a://bucket").path == ""


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("hdfs://host/jobs", "'hdfs://'"),
        ("http://host/jobs", "'http://'"),
        ("file://host/jobs", "absolute path"),
        ("file:///jobs?x=1", "absolute path"),
        ("s3://bucket/jobs?endpiont=x", "'endpiont'"),
        ("s3://bucket/jobs?region=a&region=b", "'region'"),
        ("s3://bucket/jobs?allow_http=perhaps", "'allow_http'"),
        ("s3://bucket/jobs?endpoint=http://host", "not encrypted"),
        ("s3://bucket/jobs#part", "'#'"),
        ("s3:///jobs", "not complete"),
        ("s3://bucket/a/../b", "dots"),
        ("gs://bucket/jobs?region=x", "'region'"),
    ],
)
def test_what_cannot_be_used_is_refused(location: str, said: str) -> None:
    with pytest.raises(StorageRefusedError, match=said) as refused:
        open_storage(location)
    assert refused.value.hint


def test_a_password_in_the_host_is_refused_unseen() -> None:
    with pytest.raises(StorageRefusedError) as refused:
        open_storage("s3://key:verysecret@bucket/jobs")
    assert "verysecret" not in str(refused.value)


def test_secrets_are_not_shown() -> None:
    storage = open_storage(SECRET)
    assert shown(SECRET) == "s3://b/jobs?access_key_id=******&region=eu-central-1&secret_access_key=******"
    for text in (repr(storage), str(storage), repr(parse_location(SECRET)), str(parse_location(SECRET))):
        assert "verysecret" not in text
        assert "AKIDOFMINE" not in text


def test_a_name_is_joined_before_the_settings() -> None:
    assert join("s3://b/jobs/?region=x", "1-totals") == "s3://b/jobs/1-totals?region=x"
    assert join("s3://b?region=x", "a b") == "s3://b/a%20b?region=x"
    assert join("/var/jobs", "1-totals") == "/var/jobs/1-totals"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../up", "a\\b"])
def test_a_job_name_is_one_segment(name: str) -> None:
    """Defect m: a pipeline.name could lead out of the directory."""
    with pytest.raises(StorageRefusedError):
        join("/var/jobs", name)


def test_a_storage_is_opened_again_in_a_worker(tmp_path: Path) -> None:
    for location in (str(tmp_path / "cp"), SECRET):
        again = pickle.loads(pickle.dumps(open_storage(location)))
        assert again.location == parse_location(location).path or again.location == location


FORK = """
import os, sys
from headwater.protocol.storage import task_storage

mine = task_storage(sys.argv[1])
child = os.fork()
if not child:
    os._exit(7 if task_storage(sys.argv[1]) is not mine else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_tasks_of_a_process_share_an_object_store(tmp_path: Path) -> None:
    assert task_storage(SECRET) is task_storage(SECRET)
    assert task_storage(join(SECRET, "a")) is not task_storage(SECRET)
    assert task_storage(str(tmp_path)) is not task_storage(str(tmp_path))


def test_a_forked_worker_opens_its_own() -> None:
    """The threads and connections of a client do not survive a fork."""
    assert subprocess.run([sys.executable, "-c", FORK, SECRET], check=False).returncode == 7
