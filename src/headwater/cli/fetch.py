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
    from headwater.broker.archive import has_archive, make_archive
    from headwater.cli.progress import fetch_showing
    from headwater.runtime.home import headwater_home

    fetch_showing(["spark", "broker", "bench"] if bench else ["spark", "broker"])
    if not has_archive():
        typer.echo("Kafka broker: preparing quick starts", err=True)
        make_archive()
    typer.echo(f"Ready: {headwater_home()}")
