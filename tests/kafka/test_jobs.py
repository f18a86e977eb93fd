"""What a job tells of itself, and what becomes of it between two runs: lag, tasks that print, state partitions."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from kafka_lab import Lab
from pyspark import cloudpickle

from headwater.execution.job import Job
from headwater.execution.loop import Loop
from headwater.execution.rescale import rescale_checkpoint
from headwater.plan.nodes import Scan, walk

Until = Callable[[Callable[[], object], Job | None], None]

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests


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


def test_lag_is_right_while_a_batch_runs_and_after_a_stop_in_the_middle_of_it(
    lab: Lab, until: Until, tmp_path: Path
) -> None:
    """A batch of ten messages over a backlog of a hundred waits in a function; meanwhile five more arrive."""
    source, begun, end = lab.topic("in"), tmp_path / "begun", tmp_path / "end"
    lab.produce(source, [{"n": n} for n in range(100)])

    def held(n: int) -> int:
        begun.touch()
        while not end.exists():
            time.sleep(0.01)
        return n

    session = lab.session("state")
    session.register("held", held)
    session.sql(
        "SET 'headwater.batch.max-rows' = '10';"
        + lab.ddl("source", "n INT", topic=source, scan__startup__mode="earliest-offset")
        + "CREATE TABLE out (n BIGINT) WITH ('connector' = 'blackhole'); INSERT INTO out SELECT held(n) FROM source;"
    )
    [job] = session.jobs
    try:
        until(begun.exists, job)
        assert (job.progress().batches, job.progress().lag) == (0, 100)
        lab.produce(source, [{"n": n} for n in range(5)])
        job.request_stop()
    finally:
        end.touch()
    session.stop_jobs()
    assert job.progress().status == "stopped"
    assert (job.progress().batches, job.progress().lag) == (1, 95)


def test_the_size_of_chunks_is_a_setting(lab: Lab) -> None:
    topic = lab.topic("chunks")
    lab.produce(topic, [{"n": n} for n in range(7)])
    session = lab.session()
    options = {"topic": topic, "scan__startup__mode": "earliest-offset", "scan__bounded__mode": "latest-offset"}
    session.sql(lab.ddl("t", "n INT", **options) + "CREATE TABLE s (n INT) WITH ('connector' = 'blackhole');")
    session.sql("SET 'headwater.source.chunk-rows' = '3'; INSERT INTO s SELECT n FROM t;")
    [job] = session.jobs
    assert job.wait(60)
    loop = Loop(job)
    [scan] = [node for node in walk(job.plan) if isinstance(node, Scan)]
    plan = loop.inputs.scan(scan)
    assert plan is not None
    assert plan.reader is not None
    assert [batch.num_rows for batch in plan.reader([[topic, 0, 0, 7]])] == [3, 3, 1]
    loop.inputs.close()
    loop.sink.close()


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


def test_values_are_printed_by_their_sql_types(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    session = lab.session()
    session.sql(
        "CREATE TABLE shown (t TIME, f FLOAT, at TIMESTAMP(3), m MAP<STRING, TIME>, r ROW<a BYTES, b DOUBLE>)"
        " WITH ('connector' = 'print');"
        "INSERT INTO shown SELECT TIME '12:30:00', CAST(0.1 AS FLOAT), TIMESTAMP '2024-01-01 00:00:00',"
        " MAP['k', TIME '12:30:01'], ROW(x'00ff', CAST(1e10 AS DOUBLE));"
    )
    session.wait()
    assert capsys.readouterr().out == "+I[12:30, 0.1, 2024-01-01T00:00, {k=12:30:01}, +I[[0, -1], 1.0E10]]\n"


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
        route = f"2 reading tasks, {partitions} state partitions, pre-aggregates 'source' while reading"
        assert job.progress().route == route
        if partitions == 1:
            done = rescale_checkpoint(job.location, 3)
            assert (done.before, done.after) == (1, 3)
    newest = {row["who"]: row for row in lab.values(sink)}
    assert newest == {f"w{w}": {"who": f"w{w}", "c": 20, "d": 3} for w in range(20)}


@pytest.mark.parametrize(("first", "then", "rescaled"), [(2, 4, 0), (3, 2, 0), (2, 2, 3)])
def test_a_hash_aggregation_of_spark_keeps_to_the_state_partitions(
    lab: Lab, until: Until, first: int, then: int, rescaled: int
) -> None:
    """A plain COUNT or SUM is shuffled by Spark's own aggregation, into as many tasks as the checkpoint has state
    partitions, whatever the settings are now: two tasks must not change one state partition."""
    source, sink = lab.topic("in", partitions=2), lab.topic("out")
    script = (
        lab.ddl("source", "who STRING, n INT", topic=source, scan__startup__mode="earliest-offset")
        + lab.ddl(
            "totals",
            "who STRING, c BIGINT, s BIGINT, PRIMARY KEY (who) NOT ENFORCED",
            connector="upsert-kafka",
            topic=sink,
        )
        + "INSERT INTO totals SELECT UPPER(who), COUNT(*), SUM(CAST(n AS BIGINT)) FROM source GROUP BY UPPER(who);"
    )
    rows = [{"who": f"w{i % 50}", "n": i} for i in range(200)]
    produced = 0
    for partitions in (first, then):
        session = lab.session("state")
        session.sql(f"SET 'headwater.state.partitions' = '{partitions}'; {script}")
        [job] = session.jobs
        for part in range(1, 4):  # what a batch loses, the next one misses
            lab.produce(source, rows, partition=produced % 2)
            produced += 1
            until(lambda: job.progress().rows_in == part * len(rows), job)  # noqa: B023 - waited for at once
        session.stop_jobs()
        assert job.error is None
        if rescaled and partitions == first:
            rescale_checkpoint(job.location, rescaled)
    newest = {row["who"]: (row["c"], row["s"]) for row in lab.values(sink)}
    sums = {f"W{w}": sum(row["n"] for row in rows if row["who"] == f"w{w}") for w in range(50)}
    assert newest == {who: (4 * produced, total * produced) for who, total in sums.items()}


def test_an_interval_between_batches_does_not_keep_windows_of_processing_time_from_reading(
    lab: Lab, until: Until
) -> None:
    """Time moves on in every interval, and makes a batch of its own due; the input must not wait for ever behind it."""
    source = lab.topic("in")
    session = lab.session("state")
    session.sql(
        "SET 'headwater.batch.interval' = '1 s';"
        + lab.ddl("source", "who STRING, p AS PROCTIME()", topic=source, scan__startup__mode="earliest-offset")
        + "CREATE TABLE nowhere (who STRING, n BIGINT) WITH ('connector' = 'blackhole');"
        + "INSERT INTO nowhere SELECT who, COUNT(*) FROM"
        + " TABLE(TUMBLE(TABLE source, DESCRIPTOR(p), INTERVAL '1' SECOND)) GROUP BY who, window_start, window_end;"
    )
    [job] = session.jobs
    for number in range(1, 4):
        lab.produce(source, [{"who": "ann"}])
        until(lambda: job.progress().rows_in == number, job)  # noqa: B023 - waited for at once
    session.stop_jobs()
    assert job.error is None


def test_parallelism_is_that_of_readers_and_state(lab: Lab, until: Until) -> None:
    source = lab.topic("in", partitions=4)
    lab.produce(source, [{"who": f"w{i % 20}"} for i in range(100)])
    session = lab.session("state")
    session.sql(
        "SET 'parallelism.default' = '3';"
        + lab.ddl("source", "who STRING", topic=source, scan__startup__mode="earliest-offset")
        + "CREATE TABLE nowhere (who STRING, n BIGINT) WITH ('connector' = 'blackhole');"
        + "INSERT INTO nowhere SELECT who, COUNT(*) FROM source GROUP BY who;"
    )
    [job] = session.jobs
    until(lambda: job.progress().rows_in == 100, job)
    session.stop_jobs()
    assert job.error is None
    assert job.progress().route.startswith("3 reading tasks, 3 state partitions")


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
        warnings.append([w for w in job.progress().warnings if f"rescale {job.location} --partitions 2'" in w])
        lab.produce(source, [{"who": "bob"}])
    assert [len(found) for found in warnings] == [0, 1]
