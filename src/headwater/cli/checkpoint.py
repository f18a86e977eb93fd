"""`headwater checkpoint`: look at what jobs keep, check it, copy it (also while they run), and rescale it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headwater.protocol.inspect import FoundCheckpoint

__all__ = ["app"]

app = typer.Typer(help="Show, verify, copy and rescale checkpoints.", no_args_is_help=True)

Location = Annotated[
    str, typer.Argument(metavar="DIR", help="As given to 'run --checkpoint', or the one of a single job below it.")
]


@app.command()
def show(
    location: Location,
    as_json: Annotated[
        bool, typer.Option("--json", help="Everything, for programs: one line of JSON per job.")
    ] = False,
) -> None:
    """Show batches, positions, watermarks, operators and state sizes.

    \b
    Examples:
      headwater checkpoint show state
      headwater checkpoint show 's3://bucket/jobs?region=eu-central-1' --json
    """
    from headwater.protocol.inspect import described, find_checkpoints
    from headwater.protocol.storage import open_storage

    for number, found in enumerate(find_checkpoints(location)):
        content = described(open_storage(found.location))
        if as_json:
            typer.echo(_one_line({"job": found.name, **content}))
            continue
        if number:
            typer.echo()
        _show(found, content)


@app.command()
def verify(location: Location) -> None:
    """Check that all files of the kept commits exist and are intact.

    Exit code 1 if not.

    \b
    Example:
      headwater checkpoint verify state
    """
    from headwater.protocol.inspect import find_checkpoints
    from headwater.protocol.inspect import verify as verified
    from headwater.protocol.storage import open_storage

    wrong = 0
    for found in find_checkpoints(location):
        storage = open_storage(found.location)
        problems = verified(storage)
        wrong += len(problems)
        typer.echo(f"{found.name or storage}: {'all is well' if not problems else f'{len(problems)} problems'}")
        for problem in problems:
            typer.echo(f"  {problem}")
    if wrong:
        raise typer.Exit(1)


@app.command()
def copy(
    location: Location,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="A directory that does not exist yet, or a URI.")],
) -> None:
    """Copy checkpoints, each as of one batch, also of running jobs.

    Continue only one of original and copy: with exactly-once, the one that is behind is rejected.

    \b
    Example:
      headwater checkpoint copy state s3://bucket/backup
    """
    from headwater.cli.style import count, size
    from headwater.protocol.inspect import copy_checkpoint, find_checkpoints, table_sizes
    from headwater.protocol.locations import join
    from headwater.protocol.storage import open_storage

    for found in find_checkpoints(location):
        goal = open_storage(join(target, found.name) if found.name else target)
        commit = copy_checkpoint(open_storage(found.location), goal).committed
        tables = table_sizes(commit)
        rows, held = sum(table.rows for table in tables), sum(table.bytes for table in tables)
        typer.echo(f"Copied {found.name or location} as of batch {commit.batch} to {goal}: ", nl=False)
        typer.echo(f"{count(rows)} rows of state, {size(held)}.")


@app.command()
def rescale(
    location: Location,
    partitions: Annotated[
        int, typer.Option("--partitions", min=1, metavar="N", help="New number of state partitions.")
    ],
) -> None:
    """Rewrite the state of stopped jobs for more or fewer partitions.

    A job uses at most as many cores for its state as there are partitions. The old state stays until the new one is
    complete. A running job is rejected; one with its checkpoint in an object store ends with an error.

    \b
    Example:
      headwater checkpoint rescale state --partitions 16
    """
    from headwater.cli.style import count
    from headwater.execution.rescale import rescale_checkpoint
    from headwater.protocol.inspect import find_checkpoints

    for found in find_checkpoints(location):
        done = rescale_checkpoint(found.location, partitions)
        typer.echo(f"{found.name or location}: {done.before} partitions before, {done.after} now, ", nl=False)
        typer.echo(f"{count(done.rows)} rows of state.")


def _one_line(content: dict[str, Any]) -> str:
    import json

    return json.dumps(content, sort_keys=True, ensure_ascii=False)


def _show(found: FoundCheckpoint, content: dict[str, Any]) -> None:
    from headwater.cli.style import show_table

    typer.secho(found.name or content["location"], bold=True)
    for line in _summary(content):
        typer.echo(line)
    for header, rows in (_sources(content), _tables(content), _batches(content)):
        if rows:
            typer.echo()
            show_table(header, rows)


def _summary(content: dict[str, Any]) -> list[str]:
    from headwater.cli.style import when

    pending, claim = content["pending"], content["claim"]
    lines = [
        f"Batch {content['batch']} is done" + (f"; batch {pending['batch']} is not committed yet." if pending else ".")
    ]
    if claim is not None:
        lines.append(f"Last started {when(claim['time'])} by process {claim['process']} on {claim['host']}.")
    lines.append(f"State partitions: {content['partitions']}. Format version: {content['format']}.")
    return lines


Rows = list[tuple[str, ...]]


def _sources(content: dict[str, Any]) -> tuple[tuple[str, ...], Rows]:
    from headwater.cli.style import count, when

    rows: Rows = []
    for number, position in enumerate(content["positions"]):
        bound = content["bounds"][number] or {}
        watermarks = _at(content["watermarks"], number)
        for place in sorted(position, key=_topic_and_number):
            watermark = watermarks.get(place)
            shown = "–" if watermark is None else when(watermark)
            topic, _, partition = place.rpartition(":")
            rows.append((topic or str(number), partition, count(position[place]), count(bound.get(place)), shown))
    return ("source", "partition", "position", "ends at", "watermark"), rows


def _at(values: list[dict[str, Any]], number: int) -> dict[str, Any]:
    return values[number] if number < len(values) else {}


def _topic_and_number(place: str) -> tuple[str, int, str]:
    topic, _, partition = place.rpartition(":")
    return (topic, int(partition), "") if partition.isdigit() else (topic, 1 << 62, partition)


def _tables(content: dict[str, Any]) -> tuple[tuple[str, ...], Rows]:
    from headwater.cli.style import count, size
    from headwater.sql.reserved_columns import RESERVED_PREFIX

    rows: Rows = []
    for table in content["state"]:
        name = table["table"].removeprefix(RESERVED_PREFIX)
        rows.append((table["operator"], name, count(table["runs"]), count(table["rows"]), size(table["bytes"])))
    return ("operator", "table", "sorted runs", "rows", "size"), rows


def _batches(content: dict[str, Any]) -> tuple[tuple[str, ...], Rows]:
    from headwater.cli.style import count

    kept = content["batches"]
    names = sorted({name for batch in kept for name in batch["counts"]})
    rows: Rows = [(str(b["batch"]), *(count(b["counts"].get(name)) for name in names)) for b in kept]
    return ("kept batch", *names), rows if names else []
