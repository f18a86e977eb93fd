"""`headwater jobs`, `headwater status` and `headwater stop`: jobs that run in other terminals of the same user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.completion import job_names
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from headwater.control.client import Found
    from headwater.control.status import JobStatus

__all__ = ["jobs", "status", "stop"]

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The job: 'headwater jobs' lists them.", autocompletion=job_names)
]
Process = Annotated[
    int | None, typer.Option(metavar="N", help="The process that runs it, if several run a job of that name.")
]
Checkpoint = Annotated[
    str, typer.Option(metavar="DIR", help="As given to 'run --checkpoint': finds jobs that are not running, too.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Everything, for programs: one line of JSON per job.")]


def jobs(checkpoint: Checkpoint = "", as_json: AsJson = False) -> None:
    """List running jobs: their state, rates, lag and batches.

    \b
    Examples:
      headwater jobs
      headwater jobs --checkpoint state --json
    """
    from headwater.cli.style import show_table
    from headwater.control.client import Found, runs

    answered = runs()
    found = [Found(job, run, registration) for registration, run in answered for job in run.jobs]
    rest = _not_running(checkpoint, found) if checkpoint else []
    if as_json:
        for one in found:
            typer.echo(_json({**one.job.to_json(), "process": one.run.process}))
        for stored in rest:
            typer.echo(_json(stored.to_json()))
    elif found or rest:
        rows = [*(_row(f.job, str(f.run.process)) for f in found), *(_row(job, "–") for job in rest)]
        show_table(_HEADER, rows, _SPARE)
    else:
        typer.echo("No jobs are running.")
    for _, run in answered:
        if not run.answers:
            typer.echo(f"Process {run.process} does not answer.", err=True)


def status(name: Name, checkpoint: Checkpoint = "", process: Process = None, as_json: AsJson = False) -> None:
    """Show all about a job. Exit code 1 if it failed or is not known.

    \b
    Examples:
      headwater status totals
      headwater status totals --checkpoint state --json
    """
    shown, found = _find(name, checkpoint, process)
    if as_json:
        run = {} if found is None else {name: getattr(found.run, name) for name in ("process", "page", "spark_ui")}
        typer.echo(_json({**shown.to_json(), **run}))
    else:
        for line in _lines(shown, found):
            typer.echo(line)
    if shown.status == "failed":
        raise typer.Exit(1)


def stop(
    name: Name,
    checkpoint: Checkpoint = "",
    process: Process = None,
    timeout: Annotated[float, typer.Option(metavar="SECONDS", help="How long to wait for the current batch.")] = 300,
) -> None:
    """Stop a job after its current batch, and wait for it. Its state is kept if it has a --checkpoint.

    \b
    Example:
      headwater stop totals
    """
    from headwater.cli.style import count
    from headwater.control.client import find_job, stop_job
    from headwater.protocol.locations import join

    found = find_job(name, process, join(checkpoint, name) if checkpoint else "")
    ended = found.job if not found.job.is_running else stop_job(found, timeout)
    if ended is None:
        raise HeadwaterError(
            f"Job '{name}' has not stopped within {timeout:g} s.",
            detail="It was asked to, and will after its current batch.",
            hint=f"'kill -9 {found.run.process}' ends its process at once; the next run repeats the batch.",
        )
    batches, rows = ("1 batch" if ended.batches == 1 else f"{count(ended.batches)} batches"), count(ended.rows_in)
    typer.echo(f"Job '{name}' is {ended.status}: {batches}, {rows} rows in.")
    if ended.status == "failed":
        typer.echo(ended.error, err=True)
        raise typer.Exit(1)


def _find(name: str, checkpoint: str, process: int | None) -> tuple[JobStatus, Found | None]:
    from headwater.control.client import find_job
    from headwater.errors import JobError
    from headwater.protocol.locations import join

    try:
        found = find_job(name, process, join(checkpoint, name) if checkpoint else "")
    except JobError:
        stored = next((job for job in _not_running(checkpoint, []) if job.name == name), None) if checkpoint else None
        if stored is None:
            raise
        return stored, None
    return found.job, found


def _not_running(checkpoint: str, running: list[Found]) -> list[JobStatus]:
    """What the checkpoints say of jobs that nobody runs. How a job ended is not written there."""
    from headwater.control.status import JobStatus
    from headwater.protocol.inspect import described, find_checkpoints
    from headwater.protocol.locations import shown
    from headwater.protocol.storage import open_storage

    places = {found.job.checkpoint for found in running}
    rest = []
    for found in find_checkpoints(checkpoint):
        # Compared as they are shown: a running job does not tell the credentials of its checkpoint.
        if shown(found.location) in places:
            continue
        content = described(open_storage(found.location))
        rest.append(
            JobStatus(
                found.name or shown(found.location),
                "not running",
                batch=content["batch"],
                started=(content["claim"] or {}).get("time", 0),
                state_rows=sum(table["rows"] for table in content["state"]),
                state_bytes=sum(table["bytes"] for table in content["state"]),
                checkpoint=shown(found.location),
                positions=tuple(content["positions"]),
            )
        )
    return rest


_HEADER = ("job", "status", "rows in", "/s", "rows out", "/s", "lag", "batch", "took", "state", "process")
_SPARE = (7, 5, 9, 8, 10, 4, 3, 2)  # from 'batch' to 'rows in'; what stays is the status and the lag


def _row(job: JobStatus, process: str) -> tuple[str, ...]:
    from headwater.cli.style import count, rate, seconds

    if job.status == "not running":
        return (job.name, job.status, *("–",) * 5, count(job.batch), "–", count(job.state_rows), process)
    return (
        job.name,
        job.status,
        count(job.rows_in),
        rate(job.rate_in),
        count(job.rows_out),
        rate(job.rate_out),
        count(job.lag),
        count(job.batch),
        seconds(job.batch_seconds),
        count(job.state_rows),
        process,
    )


def _lines(job: JobStatus, found: Found | None) -> list[str]:
    from headwater.cli.style import aligned, when

    facts = [("job", job.name), ("status", job.status), ("note", job.note), ("error", job.error.replace("\n", " "))]
    if found is not None:
        facts += [
            ("writes", job.table),
            ("reads", ", ".join(job.sources)),
            ("script", job.origin),
            ("process", f"{found.run.process}, since {when(job.started)}"),
            ("start", job.begins),
            *_numbers(job),
            ("page", found.run.page),
            ("spark ui", found.run.spark_ui),
        ]
    else:
        facts += [("last batch", str(job.batch)), ("state", _state(job)), ("last start", when(job.started))]
    facts += [("checkpoint", job.checkpoint), *(("warning", warning) for warning in job.warnings)]
    return aligned([fact for fact in facts if fact[1]])


def _numbers(job: JobStatus) -> list[tuple[str, str]]:
    from headwater.cli.style import count, rate, seconds

    out = "–" if job.rows_out is None else f"{count(job.rows_out)}, {rate(job.rate_out)}/s"
    return [
        ("rows in", f"{count(job.rows_in)}, {rate(job.rate_in)}/s"),
        ("rows out", out),
        ("bad messages", count(job.bad_records) if job.bad_records else ""),
        ("lag", count(job.lag)),
        ("last batch", f"{count(job.batch)}, {seconds(job.batch_seconds)}" if job.batches else "none in this run"),
        ("latency", seconds(job.latency_seconds)),
        ("state", _state(job)),
    ]


def _state(job: JobStatus) -> str:
    from headwater.cli.style import count, size

    return f"{count(job.state_rows)} rows, {size(job.state_bytes)}" if job.state_rows else ""


def _json(content: dict[str, Any]) -> str:
    import json

    return json.dumps(content, sort_keys=True, ensure_ascii=False)
