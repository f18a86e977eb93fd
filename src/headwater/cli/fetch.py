"""`headwater fetch`: get everything that later commands would otherwise download when first needed."""

from __future__ import annotations

from typing import Annotated

import typer

__all__ = ["fetch"]


def fetch(
    bench: Annotated[
        bool, typer.Option("--bench", help="Also the Flink jars that the benchmarks compare with.")
    ] = False,
) -> None:
    """Fetch and verify all jars, ahead of their first use.

    To prepare a machine without a network, run this on one that has it and copy its $HEADWATER_HOME (default
    ~/.cache/headwater) over.
    """
    from headwater.broker import archive as broker_archive
    from headwater.cli.progress import fetch_showing
    from headwater.install import class_archive as spark_archive
    from headwater.install.home import headwater_home

    fetch_showing(["spark", "broker", "bench"] if bench else ["spark", "broker"])
    if not broker_archive.has_archive():
        typer.echo("Kafka broker: preparing quick starts", err=True)
        broker_archive.make_archive()
    if not spark_archive.has_archive():
        typer.echo("Spark: preparing quick starts, half a minute", err=True)
        spark_archive.make_archive()
    typer.echo(f"Ready: {headwater_home()}")
