"""Showing a fetch: one moving line per configuration on a terminal, plain lines elsewhere. All of it goes to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import typer

from headwater.install.jars import Conf, FetchStep, fetch, is_fetched

__all__ = ["ensure_jars", "fetch_showing"]

_NAMES: dict[Conf, str] = {
    "spark": "Spark's Kafka connector",
    "broker": "Kafka broker",
    "bench": "Flink, for benchmarks",
}


def ensure_jars(confs: Sequence[Conf]) -> None:
    """Fetch what is missing and show it; silent and quick when nothing is."""
    missing = [conf for conf in confs if not is_fetched(conf)]
    if missing:
        fetch_showing(missing)


def fetch_showing(confs: Sequence[Conf]) -> None:
    """Fetch or re-verify `confs`, telling the user how far it is."""
    if sys.stderr.isatty():
        _fetch_on_terminal(confs)
    else:
        fetch(confs, _plain_lines())


def _fetch_on_terminal(confs: Sequence[Conf]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.fields[name]}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[phase]}"))
    with Progress(*columns, console=Console(stderr=True)) as bars:
        tasks = {conf: bars.add_task("", name=_NAMES[conf], phase="waiting", total=None) for conf in confs}

        def show(step: FetchStep) -> None:
            bars.update(tasks[step.conf], phase=step.phase, completed=step.done, total=step.total)

        fetch(confs, show)


def _plain_lines() -> Callable[[FetchStep], None]:
    """One line when a configuration starts, one when it is ready."""
    started: set[Conf] = set()

    def show(step: FetchStep) -> None:
        if step.phase == "ready":
            typer.echo(f"{_NAMES[step.conf]}: {step.total} jars ready", err=True)
        elif step.conf not in started:
            started.add(step.conf)
            typer.echo(f"{_NAMES[step.conf]}: fetching {step.total} jars", err=True)

    return show
