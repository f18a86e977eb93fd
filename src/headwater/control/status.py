"""A job at one moment, as plain values: what travels between processes, to the page and to programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

__all__ = ["ENDED", "JobStatus", "RunStatus"]

ENDED = ("finished", "stopped", "failed")


@dataclass(frozen=True)
class JobStatus:
    """Counts are of this run; `batch` is the number of the last commit, over all runs. Times are in milliseconds since
    1970; `committed` is that of the last commit of this run. `begins` says from where the job began or continues. Rates
    of a job that has ended are over its whole life."""

    name: str
    status: str = "starting"
    note: str = ""
    error: str = ""
    origin: str = ""
    table: str = ""
    sources: tuple[str, ...] = ()
    started: int = 0
    ended: int | None = None
    begins: str = ""
    batch: int = 0
    batches: int = 0
    committed: int | None = None
    rows_in: int = 0
    rows_out: int | None = None
    rate_in: float = 0.0
    rate_out: float | None = None
    lag: int = 0
    batch_seconds: float = 0.0
    spark_seconds: float = 0.0
    latency_seconds: float = 0.0
    state_rows: int = 0
    state_bytes: int = 0
    bad_records: int = 0
    late_rows: int = 0
    watermark: int | None = None
    checkpoint: str = ""
    route: str = ""
    warnings: tuple[str, ...] = ()
    positions: tuple[Mapping[str, int], ...] = ()
    operators: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        return self.status not in ENDED

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> JobStatus:
        """Of another version too: what is not known here is left out."""
        known = {f.name for f in fields(JobStatus)}
        found: dict[str, Any] = {
            key: tuple(v) if isinstance(v, list) else v for key, v in content.items() if key in known
        }
        return JobStatus(**found)


@dataclass(frozen=True)
class RunStatus:
    """A process that runs jobs. `page` is the address of its page, with the token that opens it. One that `answers` not
    (it was paused, or its machine is too busy) has no jobs here."""

    process: int
    title: str = ""
    host: str = ""
    version: str = ""
    started: int = 0
    spark_ui: str = ""
    page: str = ""
    answers: bool = True
    jobs: tuple[JobStatus, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(content: Mapping[str, Any]) -> RunStatus:
        known = {f.name for f in fields(RunStatus)} - {"jobs"}
        jobs = tuple(JobStatus.from_json(job) for job in content.get("jobs", ()))
        return RunStatus(**{key: value for key, value in content.items() if key in known}, jobs=jobs)
