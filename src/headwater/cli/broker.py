"""`headwater broker`: start, stop and look at the embedded broker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["app"]

# What service managers use for "status: not running".
NOT_RUNNING = 3

app = typer.Typer(help="Start, stop and check a Kafka broker on this machine.", no_args_is_help=True)

Directory = Annotated[
    Path | None, typer.Option("--dir", metavar="D", help="Where it keeps its data. [default: $HEADWATER_HOME/broker]")
]


@app.command()
def start(
    port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            metavar="N",
            help="Its port. [default: the last one, else 9092, else any free one]",
        ),
    ] = None,
    directory: Directory = None,
    partitions: Annotated[
        int, typer.Option(min=1, metavar="N", help="Partitions of topics created without a number.")
    ] = 1,
) -> None:
    """Start the broker, and wait until it is ready.

    One that is running already stays as it is. It listens on this machine only, keeps its data, and runs until
    'headwater broker stop'. Topics are not created automatically.

    \b
    Examples:
      headwater broker start
      headwater broker start --port 19092 --dir /tmp/other-broker
    """
    from headwater.broker import Broker
    from headwater.cli.progress import ensure_jars

    ensure_jars(["broker"])
    broker = Broker.start(directory, port, partitions=partitions)
    typer.echo(f"Broker {'started' if broker.started_here else 'already running'}.")
    _describe(broker.pid, broker.directory, broker.bootstrap_servers)


@app.command()
def stop(directory: Directory = None) -> None:
    """Stop the broker. Its data stays."""
    from headwater.broker import Broker

    broker = Broker.find(directory)
    if broker is None:
        typer.echo("No broker is running.")
    else:
        broker.stop()
        typer.echo(f"Broker stopped. Its data stays in {broker.directory}.")


@app.command()
def status(directory: Directory = None) -> None:
    """Show whether the broker is running. Exit code 0 if so, 3 if not."""
    from headwater.broker import Broker

    broker = Broker.find(directory)
    if broker is None:
        typer.echo("No broker is running.")
        raise typer.Exit(NOT_RUNNING)
    typer.echo("Broker running.")
    _describe(broker.pid, broker.directory, broker.bootstrap_servers)


def _describe(pid: int, directory: Path, bootstrap_servers: str) -> None:
    """The last line is for programs to read."""
    typer.echo(f"pid={pid}")
    typer.echo(f"directory={directory}")
    typer.echo(f"bootstrap.servers={bootstrap_servers}")
