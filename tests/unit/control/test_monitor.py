"""What is remembered of jobs: events, the last hour, rates."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from headwater.control.history import KEPT_SECONDS, Event, History
from headwater.control.monitor import Monitor
from headwater.control.status import JobStatus, RunStatus
from headwater.errors import JobError
from headwater.execution.job import Job, Progress

MakeJob = Callable[..., Job]


def texts(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.level, event.text) for event in events]


def test_what_happens_to_a_job_is_an_event_once(make_job: MakeJob) -> None:
    monitor, job = Monitor("totals.sql"), make_job()
    monitor.add(job, "totals.sql:9")
    job.on_batch = monitor.saw
    job.report(status="running", begins="Begins at orders:0 offset 0.")
    job.report(batches=1, rows_in=10, warnings=("Something is odd.",))
    job.report(batches=2, rows_in=20)
    job.report(status="retrying", note="The broker does not answer. Trying again in 1 s.")
    job.report(status="running", note="")
    job.error = JobError("It broke.", detail="Really.")
    job.report(status="failed")
    assert texts(monitor.events()) == [
        ("info", "Begins at orders:0 offset 0."),
        ("info", "running"),
        ("warning", "Something is odd."),
        ("warning", "retrying: The broker does not answer. Trying again in 1 s."),
        ("info", "running"),
        ("error", "failed: It broke."),
    ]
    assert [event.number for event in monitor.events()] == [1, 2, 3, 4, 5, 6]
    (status,) = monitor.status().jobs
    assert (status.table, status.sources, status.origin) == ("totals", ("orders",), "totals.sql:9")
    assert status.error == "It broke.\nReally."
    assert status.ended is not None
    assert not status.is_running


def test_a_status_survives_json_and_other_versions() -> None:
    job = JobStatus("totals", "running", sources=("a", "b"), rows_out=None, positions=({"a:0": 3},))
    run = RunStatus(17, "totals.sql", jobs=(job,))
    content = run.to_json()
    content["jobs"][0]["unheard_of"] = 1
    content["unheard_of"] = 2
    assert RunStatus.from_json(content) == run


def test_an_hour_is_kept_in_buckets() -> None:
    history, progress = History(), Progress("t", "running")
    for second in range(0, 2 * KEPT_SECONDS, 2):
        more = progress.batches + 1
        seconds = 0.5 if second % 10 == 4 else 0.1
        progress = replace(progress, batches=more, rows_in=more * 100, rows_out=more, lag=second, batch_seconds=seconds)
        history.add(progress, 1_000_000 + second)
    assert len(history.samples) == KEPT_SECONDS // 5
    assert sum(sample.batches for sample in list(history.samples)[1:-1]) * 100 == sum(
        sample.rows_in for sample in list(history.samples)[1:-1]
    )
    whole = list(history.samples)[-3]
    assert whole.batches in (2, 3)
    assert history.samples[-1].lag == 2 * KEPT_SECONDS - 2


def test_a_job_that_runs_again_is_another_one(make_job: MakeJob) -> None:
    monitor, first = Monitor(), make_job()
    monitor.add(first)
    first.on_batch = monitor.saw
    first.report(status="stopped")
    assert monitor.stop("totals")
    assert not first.stopping.is_set()
    assert not monitor.stop("other")
    monitor.add(make_job())
    assert monitor.stop("totals")
    assert [job.status for job in monitor.status().jobs] == ["starting"]


def test_a_job_whose_broker_does_not_answer_is_not_running(make_job: MakeJob) -> None:
    job = make_job()
    job.report(status="running", batch=4)
    job.asking_since = time.monotonic()
    assert job.progress().status == "running"
    job.asking_since = time.monotonic() - 3
    assert job.progress().status == "retrying"
    assert "brokers of the input" in job.progress().note
    job.asking_since, job.batch_since = None, time.monotonic() - 61
    assert (job.progress().status, job.progress().note) == ("running", "Batch 5 takes longer than 60 s.")
    job.report(status="retrying", note="It is away.")
    assert job.progress().note == "It is away."
