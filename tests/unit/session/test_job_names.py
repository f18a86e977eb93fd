"""How jobs are named, and checkpoints that no job uses. None of it needs Spark."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from headwater.errors import IncompatibleCheckpointError, SqlError
from headwater.protocol.checkpoint import Checkpoint
from headwater.protocol.records import Genesis
from headwater.protocol.storage import open_storage
from headwater.session import Session
from headwater.session.definitions import Definitions, JobPlan
from headwater.session.orphaned_checkpoints import check_unused
from headwater.sql.parser import parse_script

TABLES = """
CREATE TABLE events (who STRING, n BIGINT) WITH ('connector' = 'kafka', 'topic' = 'events',
  'properties.bootstrap.servers' = 'h:1', 'format' = 'json');
CREATE TABLE totals (who STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE copied (who STRING, n BIGINT) WITH ('connector' = 'print');
CREATE TABLE `odd/name` (who STRING, n BIGINT) WITH ('connector' = 'print');
"""
COUNT = "INSERT INTO totals SELECT who, COUNT(*) FROM events GROUP BY who;"
COPY = "INSERT INTO copied SELECT who, n FROM events;"
LARGE = "INSERT INTO copied SELECT who, n FROM events WHERE n > 100;"


def planned(script: str, root: str = "state") -> list[JobPlan]:
    definitions = Definitions(checkpoint=root)
    return [job for statement in parse_script(TABLES + script, "jobs.sql") for job in definitions.apply(statement)]


def names(script: str, root: str = "state") -> list[str]:
    return [job.name for job in planned(script, root)]


def stored(root: Path, name: str, job: JobPlan) -> None:
    """The checkpoint of a job, as far as its name and plan fingerprint go."""
    checkpoint = Checkpoint(open_storage(str(root / name)))
    checkpoint.begin(Genesis("id", "", 2, [], [], facts=job.fingerprint.to_json()))
    checkpoint.storage.unlock()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (COUNT + COPY, ["totals", "copied"]),
        (COPY + COUNT, ["copied", "totals"]),
        (f"SET 'pipeline.name' = 'daily'; {COUNT} RESET 'pipeline.name'; {COPY}", ["daily", "copied"]),
        (f"SET 'pipeline.name' = 'a'; {COUNT} SET 'pipeline.name' = 'b'; {COUNT}", ["a", "b"]),
        (f"EXECUTE STATEMENT SET BEGIN {COUNT} {COPY} END;", ["totals", "copied"]),
        (f"SET 'pipeline.name' = 'x'; EXECUTE STATEMENT SET BEGIN {COUNT} {COPY} END;", ["x-totals", "x-copied"]),
        (f"SET 'pipeline.name' = 'x'; EXECUTE STATEMENT SET BEGIN {COUNT} END;", ["x-totals"]),
        (f"EXPLAIN {COUNT} {COUNT}", ["totals"]),
    ],
)
def test_a_job_is_named_by_what_it_writes_and_not_by_its_place(script: str, expected: list[str]) -> None:
    assert names(script) == expected


@pytest.mark.parametrize(
    ("script", "name", "hint"),
    [
        (COPY + LARGE, "copied", "SET 'pipeline.name' = '…' before each of them"),
        (f"SET 'pipeline.name' = 'x'; {COUNT} {COPY}", "x", "SET 'pipeline.name' = '…' before each of them"),
        (f"EXECUTE STATEMENT SET BEGIN {COPY} {LARGE} END;", "copied", "Write one INSERT with UNION ALL"),
    ],
)
def test_two_jobs_of_one_name_are_refused(script: str, name: str, hint: str) -> None:
    with pytest.raises(SqlError, match=f"Two INSERTs would be the same job '{name}'.") as caught:
        names(script)
    assert hint in caught.value.hint
    assert caught.value.position is not None


def test_where_nothing_is_kept_a_number_will_do() -> None:
    values = "INSERT INTO totals VALUES ('a', 1);"
    assert names(values * 3, root="") == ["totals", "totals-2", "totals-3"]


@pytest.mark.parametrize("name", ["../x", "a/b", "a\\b", "..", ".hidden", "a..b", " ", "x\ty", "n" * 300])
def test_a_name_that_is_no_directory_is_refused_where_it_is_set(name: str) -> None:
    with pytest.raises(SqlError, match=r"Invalid value for option 'pipeline.name'.") as caught:
        names(f"SET 'pipeline.name' = '{name}';")
    assert caught.value.position is not None
    assert caught.value.position.column == len("SET 'pipeline.name' = ") + 1
    assert caught.value.position.length == len(name) + 2


def test_a_table_that_is_no_directory_needs_a_name() -> None:
    insert = "INSERT INTO `odd/name` SELECT who, n FROM events;"
    with pytest.raises(SqlError, match="A job cannot be named after table 'odd/name'"):
        names(insert)
    assert names(f"SET 'pipeline.name' = 'odd'; {insert}") == ["odd"]


def test_an_insert_in_front_leaves_the_others_what_they_have(tmp_path: Path) -> None:
    for job in planned(COUNT):
        stored(tmp_path, job.name, job)
    assert check_unused(planned(COPY + COUNT, str(tmp_path)), ()) == ()


def test_an_unused_checkpoint_is_named(tmp_path: Path) -> None:
    for job in planned(COUNT + COPY):
        stored(tmp_path, job.name, job)
    (tmp_path / "notes").mkdir()  # no checkpoint
    [warning] = check_unused(planned(COUNT, str(tmp_path)), ())
    assert warning == (
        f"Checkpoint 'copied' is not used by any INSERT of this script: {tmp_path}/copied. If the job was renamed, "
        "rename the directory or SET 'pipeline.name'; if it is gone, remove it."
    )
    assert check_unused(planned(COUNT, str(tmp_path)), {"copied"}) == ()


@pytest.mark.parametrize("insert", [COUNT, COPY])
def test_a_renamed_job_does_not_start_from_scratch_silently(tmp_path: Path, insert: str) -> None:
    [job] = planned(insert)
    stored(tmp_path, "before", job)
    renamed = f"SET 'pipeline.name' = 'after'; {insert}"
    with pytest.raises(IncompatibleCheckpointError, match="Job 'after' would start from scratch") as caught:
        check_unused(planned(renamed, str(tmp_path)), ())
    assert f"Rename that directory to '{tmp_path}/after', or SET 'pipeline.name' = 'before'" in caught.value.hint
    [warning] = check_unused(
        planned(f"SET 'headwater.checkpoint.ignore-orphaned' = 'true'; {renamed}", str(tmp_path)), ()
    )
    assert warning.startswith("Checkpoint 'before' is not used")


def test_a_job_that_has_a_checkpoint_does_not_start_from_scratch(tmp_path: Path) -> None:
    [job] = planned(COUNT)
    stored(tmp_path, "before", job)
    stored(tmp_path, "totals", job)
    [warning] = check_unused(planned(COUNT, str(tmp_path)), ())
    assert "'before'" in warning


def test_another_query_on_the_same_topic_is_another_job(tmp_path: Path) -> None:
    [job] = planned(COPY)
    stored(tmp_path, "copied", job)
    [warning] = check_unused(planned(f"SET 'pipeline.name' = 'large'; {LARGE}", str(tmp_path)), ())
    assert "'copied'" in warning


def test_what_another_process_runs_is_used(tmp_path: Path) -> None:
    [job] = planned(COUNT)
    stored(tmp_path, "before", job)
    with (tmp_path / "before" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert check_unused(planned(COUNT, str(tmp_path)), ()) == ()
    with pytest.raises(IncompatibleCheckpointError):
        check_unused(planned(COUNT, str(tmp_path)), ())


@pytest.mark.parametrize(
    ("directory", "script"), [("1-totals", COUNT), ("7-totals", COUNT), ("x-2", f"SET 'pipeline.name' = 'x'; {COUNT}")]
)
def test_a_checkpoint_of_an_earlier_release_is_explained(tmp_path: Path, directory: str, script: str) -> None:
    (tmp_path / directory).mkdir()
    (tmp_path / directory / "job.json").write_text('{"signature": {"sources": [], "operators": []}, "partitions": 2}')
    with pytest.raises(IncompatibleCheckpointError, match="written by an earlier release") as caught:
        check_unused(planned(script, str(tmp_path)), ())
    assert "numbered jobs by their place in the script" in caught.value.detail
    [warning] = check_unused(planned(COPY, str(tmp_path)), ())
    assert f"Checkpoint '{directory}' is not used" in warning


def test_a_check_leaves_the_session_as_it_was() -> None:
    session = Session()
    script = TABLES + "SET 'table.local-time-zone' = 'Asia/Tokyo';" + COUNT
    [plan] = session.check(script)
    assert session.explain(script).startswith("Write totals")
    assert (session.catalog.names(), session.settings["table.local-time-zone"]) == ((), "UTC")
    session.sql(TABLES)
    assert session.check(COUNT) == [plan]
    assert session.check("DROP TABLE totals") == []
    assert "totals" in session.catalog.names()


def test_a_script_with_an_error_does_nothing() -> None:
    session = Session()
    with pytest.raises(SqlError):
        session.sql(TABLES + "SET 'pipeline.name' = 'x'; INSERT INTO totals SELECT nothing FROM events;")
    assert session.catalog.names() == ()
    assert session.settings["pipeline.name"] is None
