"""The metrics of all jobs, in the text form of Prometheus (docs/monitoring.md lists them)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate

from headwater.control.history import BOUNDS, Histogram
from headwater.control.monitor import Monitor
from headwater.control.status import JobStatus, RunStatus

__all__ = ["CONTENT_TYPE", "METRICS", "metrics_text"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_STATUSES = ("starting", "running", "retrying", "finished", "stopped", "failed")

Labels = dict[str, str]
Values = Iterable[tuple[Labels, float]]


@dataclass(frozen=True)
class Metric:
    """`values` gives what it is for one job; one without a value gives nothing."""

    name: str
    kind: str
    meaning: str
    values: Callable[[JobStatus], Values]


def _one(value: Callable[[JobStatus], float | None]) -> Callable[[JobStatus], Values]:
    def values(job: JobStatus) -> Values:
        found = value(job)
        return [] if found is None else [({}, found)]

    return values


def _positions(job: JobStatus) -> Values:
    for position in job.positions:
        for key, offset in position.items():
            topic, colon, partition = key.rpartition(":")
            if colon:
                yield {"topic": topic, "partition": partition}, offset


def _operators(fact: str) -> Callable[[JobStatus], Values]:
    return lambda job: [({"operator": name}, facts[fact]) for name, facts in job.operators.items()]


METRICS = (
    Metric(
        "headwater_job_status",
        "gauge",
        "1 for the status that the job has, 0 for all others.",
        lambda job: [({"status": status}, float(status == job.status)) for status in _STATUSES],
    ),
    Metric("headwater_job_rows_read_total", "counter", "Messages or rows read.", _one(lambda job: job.rows_in)),
    Metric("headwater_job_rows_written_total", "counter", "Messages or rows written.", _one(lambda job: job.rows_out)),
    Metric(
        "headwater_job_bad_messages_total",
        "counter",
        "Messages that could not be decoded and were left out.",
        _one(lambda job: job.bad_records),
    ),
    Metric(
        "headwater_job_late_rows_total",
        "counter",
        "Rows that came behind the watermark and were dropped.",
        _one(lambda job: job.late_rows),
    ),
    Metric("headwater_job_batches_total", "counter", "Batches of this process.", _one(lambda job: job.batches)),
    Metric(
        "headwater_job_last_batch",
        "gauge",
        "Number of the last committed batch, over all runs of the job.",
        _one(lambda job: job.batch),
    ),
    Metric(
        "headwater_job_lag_messages",
        "gauge",
        "Messages between the last commit and the end of the input.",
        _one(lambda job: job.lag),
    ),
    Metric("headwater_job_state_rows", "gauge", "Rows of state, with tombstones.", _one(lambda job: job.state_rows)),
    Metric("headwater_job_state_bytes", "gauge", "Size of the state.", _one(lambda job: job.state_bytes)),
    Metric(
        "headwater_job_watermark_timestamp_seconds",
        "gauge",
        "The least watermark of the job's sources.",
        _one(lambda job: None if job.watermark is None else job.watermark / 1000),
    ),
    Metric(
        "headwater_job_start_timestamp_seconds",
        "gauge",
        "When the job was started.",
        _one(lambda job: job.started / 1000),
    ),
    Metric("headwater_operator_rows_in_total", "counter", "Rows that a stateful operator took.", _operators("rows_in")),
    Metric(
        "headwater_operator_rows_out_total",
        "counter",
        "Changes that it emitted.",
        _operators("rows_out"),
    ),
    Metric(
        "headwater_operator_batch_seconds",
        "gauge",
        "Time of a stateful operator in the last batch, added up over its tasks.",
        _operators("seconds"),
    ),
    Metric(
        "headwater_operator_state_rows",
        "gauge",
        "Rows of its state, with tombstones.",
        _operators("state_rows"),
    ),
    Metric("headwater_operator_state_bytes", "gauge", "Size of its state.", _operators("state_bytes")),
    Metric("headwater_job_position", "gauge", "The next offset to read, as of the last commit.", _positions),
)

_HISTOGRAMS = (
    ("headwater_job_batch_seconds", "Duration of batches.", "batch_times"),
    (
        "headwater_job_latency_seconds",
        "Age of the oldest row of a batch when it was committed, since it could be read.",
        "latencies",
    ),
)
_COMMITTED = ("headwater_job_last_commit_timestamp_seconds", "Time of the last commit of this process.")


def metrics_text(monitor: Monitor) -> str:
    run = monitor.status()
    return "".join(f"{line}\n" for line in _lines(monitor, run))


def _lines(monitor: Monitor, run: RunStatus) -> Iterator[str]:
    yield from _head("headwater_info", "gauge", "Always 1; labels say what runs.")
    yield _line("headwater_info", {"version": run.version, "title": run.title}, 1)
    for metric in METRICS:
        yield from _head(metric.name, metric.kind, metric.meaning)
        for job in run.jobs:
            yield from (_line(metric.name, {"job": job.name, **labels}, value) for labels, value in metric.values(job))
    histories = {job.name: monitor.history(job.name) for job in run.jobs}
    yield from _head(_COMMITTED[0], "gauge", _COMMITTED[1])
    for name, history in histories.items():
        if history.committed:
            yield _line(_COMMITTED[0], {"job": name}, history.committed)
    for metric_name, meaning, attribute in _HISTOGRAMS:
        yield from _head(metric_name, "histogram", meaning)
        for name, history in histories.items():
            yield from _histogram(metric_name, name, getattr(history, attribute))


def _histogram(metric: str, job: str, histogram: Histogram) -> Iterator[str]:
    bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
    # Prometheus' buckets are cumulative: each counts all values up to its bound.
    counts = list(accumulate(histogram.counts))
    for bound, count in zip(bounds, counts, strict=True):
        yield _line(f"{metric}_bucket", {"job": job, "le": bound}, count)
    yield _line(f"{metric}_sum", {"job": job}, histogram.total)
    yield _line(f"{metric}_count", {"job": job}, counts[-1])


def _head(name: str, kind: str, meaning: str) -> Iterator[str]:
    yield f"# HELP {name} {meaning}"
    yield f"# TYPE {name} {kind}"


def _line(name: str, labels: Labels, value: float) -> str:
    shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{name}{{{shown}}} {value!r}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
