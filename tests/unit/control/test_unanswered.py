"""A batch that waits for a broker which is away: the job is not running, everywhere it is shown, and says why."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from headwater.connectors.kafka.clients import answering
from headwater.connectors.runtime import UnchangingSource
from headwater.control.monitor import Monitor
from headwater.execution import unanswered
from headwater.execution.job import Job
from headwater.ui.metrics import metrics_text

MakeJob = Callable[..., Job]
AWAY = {"bootstrap.servers": "127.0.0.1:9", "client.id": "ann"}  # nobody listens on the discard port


class Party(UnchangingSource):
    """Asks as the table's source and sink do."""

    def __init__(self, properties: dict[str, str]) -> None:
        self.properties = properties

    def unanswered(self) -> str:
        return answering.unanswered("totals", self.properties) if self.properties else ""


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unanswered, "_FIRST_SECONDS", 0.05)
    monkeypatch.setattr(unanswered, "_EVERY_SECONDS", 0.05)
    monkeypatch.setattr(answering, "_SECONDS", 0.5)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_batch_that_waits_for_a_broker(make_job: MakeJob) -> None:
    monitor, job, party = Monitor("totals.sql"), make_job(), Party(AWAY)
    monitor.add(job)
    job.on_batch = monitor.saw
    job.report(status="running")
    with unanswered.watched(job, time.monotonic(), [Party({}), party]):  # type: ignore[list-item]
        until(lambda: job.progress().status == "retrying")
        (status,) = monitor.status().jobs
        assert status.note.startswith("The broker of table 'totals' at 127.0.0.1:9 does not answer: ")
        assert "refused" in status.note
        assert 'headwater_job_status{job="totals",status="retrying"} 1' in metrics_text(monitor)
        assert [event.text for event in monitor.events()] == ["running", f"retrying: {status.note}"]
        party.properties = {}
        until(lambda: job.progress().status == "running")
        party.properties = AWAY
        until(lambda: job.progress().status == "retrying")
    assert job.progress().status == "running"
    assert (monitor.readings()[0].progress.note, monitor.events()[-1].text) == ("", "running")


def test_an_answer_that_comes_late_says_nothing_about_the_next_batch(make_job: MakeJob) -> None:
    job = make_job()
    job.report(status="running")
    with unanswered.watched(job, 1.0, [Party(AWAY)]):  # type: ignore[list-item]
        until(lambda: job.progress().status == "retrying")
    with unanswered.watched(job, 2.0, []):
        assert job.progress().status == "running"
