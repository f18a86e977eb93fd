"""What a job tells of itself, and what becomes of it between two runs: lag, tasks that print, state partitions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kafka_lab import Lab

from headwater.execution.job import Job
from headwater.execution.rescale import rescale_checkpoint

Until = Callable[[Callable[[], object], Job | None], None]


def test_lag_is_what_lies_between_the_last_commit_and_the_end_of_the_input(lab: Lab, until: Until) -> None:
    """Ten messages a batch, and an interval that lets only the first one run."""
    source = lab.topic("in")
    lab.produce(source, [{"n": n} for n in range(100)])
    session = lab.session("state")
    session.sql(
        "SET 'headwater.batch.max-rows' = '10'; SET 'headwater.batch.interval' = '1 h';"
        + lab.ddl("source", "n INT", topic=source, scan__startup__mode="earliest-offset")
        + "CREATE TABLE out (n INT) WITH ('connector' = 'blackhole'); INSERT INTO out SELECT n FROM source;"
    )
    [job] = session.jobs
    until(lambda: job.progress().batches == 1, job)
    assert job.progress().lag == 90
    session.stop_jobs()
    assert (job.progress().status, job.progress().lag) == ("stopped", 90)


def test_several_tasks_print_with_their_numbers(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    session = lab.session()
    session.sql(
        "CREATE TABLE shown (n INT) WITH ('connector' = 'print', 'print-identifier' = 'out', 'sink.parallelism' = '2');"
        "INSERT INTO shown VALUES (1), (2), (3), (4);"
    )
    session.wait()
    lines = capsys.readouterr().out.splitlines()
    assert sorted(line.partition("> ")[2] for line in lines) == ["+I[1]", "+I[2]", "+I[3]", "+I[4]"]
    assert {line.partition("> ")[0] for line in lines} == {"out:1", "out:2"}


def test_state_is_continued_in_another_number_of_partitions(lab: Lab, until: Until) -> None:
    source, sink = lab.topic("in"), lab.topic("out")
    script = (
        lab.ddl("source", "who STRING, n INT", topic=source, scan__startup__mode="earliest-offset")
        + lab.ddl(
            "totals",
            "who STRING, c BIGINT, d BIGINT, PRIMARY KEY (who) NOT ENFORCED",
            connector="upsert-kafka",
            topic=sink,
        )
        + "INSERT INTO totals SELECT who, COUNT(*), COUNT(DISTINCT n) FROM source GROUP BY who;"
    )
    rows = [{"who": f"w{i % 20}", "n": i % 60} for i in range(400)]
    for partitions, part in ((1, rows[:200]), (3, rows[200:])):
        lab.produce(source, part)
        session = lab.session("state")
        session.sql(f"SET 'headwater.state.partitions' = '1'; {script}")
        [job] = session.jobs
        until(lambda: job.progress().lag == 0 and job.progress().batches, job)  # noqa: B023 - waited for at once
        session.stop_jobs()
        assert job.error is None
        if partitions == 1:
            done = rescale_checkpoint(job.location, 3)
            assert (done.before, done.after) == (1, 3)
    newest = {row["who"]: row for row in lab.values(sink)}
    assert newest == {f"w{w}": {"who": f"w{w}", "c": 20, "d": 3} for w in range(20)}


def test_a_start_says_that_there_are_more_cores_than_state_partitions(lab: Lab, until: Until) -> None:
    source = lab.topic("in")
    lab.produce(source, [{"who": "ann"}])
    script = (
        lab.ddl("source", "who STRING", topic=source, scan__startup__mode="earliest-offset")
        + "CREATE TABLE out (who STRING, c BIGINT) WITH ('connector' = 'blackhole');"
        + "SET 'headwater.state.partitions' = '1'; INSERT INTO out SELECT who, COUNT(*) FROM source GROUP BY who;"
    )
    warnings = []
    for _ in range(2):
        session = lab.session("state")
        session.sql(script)
        [job] = session.jobs
        until(lambda: job.progress().status == "running" and job.progress().lag == 0, job)  # noqa: B023
        session.stop_jobs()
        warnings.append([w for w in job.progress().warnings if "headwater checkpoint rescale --partitions 2" in w])
        lab.produce(source, [{"who": "bob"}])
    assert [len(found) for found in warnings] == [0, 1]
