"""`headwater demo`: a broker, made-up page views, two scripts and their results, in one go."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Protocol

import typer

from headwater.cli.signals import Stop, in_background
from headwater.cli.style import count

if TYPE_CHECKING:
    from headwater.demo.run import DemoRun, Verdict

__all__ = ["DemoView", "demo"]

_LOOK_EVERY = 0.1
NEXT = (
    ("headwater init shop", "a project folder: tables, a script and a test of it"),
    ("headwater sql", "a shell: SELECT shows rows, INSERT starts a job"),
    ("headwater broker start", "a broker that stays, for scripts of your own"),
    ("headwater options upsert-kafka", "what can be said in a WITH clause"),
)


class DemoView(Protocol):
    """`show` is called about ten times a second; `clock` is how long results have been there, None before."""

    def show(self, clock: float | None) -> None: ...

    def close(self) -> None: ...

    def verdict(self, verdict: Verdict) -> None: ...


def demo(
    seconds: Annotated[float, typer.Option(min=1, metavar="N", help="How long to feed page views.")] = 60,
    rate: Annotated[int, typer.Option(min=1, max=20_000, metavar="N", help="Page views per second.")] = 1_500,
) -> None:
    """Show it working, in a minute.

    Page views are fed to a Kafka broker and counted by two SQL scripts while you watch. Everything runs on this
    machine, in a temporary directory, and is gone afterwards. At the end the input is counted again by a plain consumer
    and compared with what the scripts wrote: exit code 0 if it is equal, 1 if not. Ctrl-C ends the feeding early.

    \b
    Example:
      headwater demo --seconds 20
    """
    from headwater.cli.progress import ensure_jars
    from headwater.cli.spark_output import start_spark
    from headwater.demo.run import DemoRun

    typer.secho("Headwater demo: a Kafka broker, page views, and two SQL scripts that count them.", bold=True)
    ensure_jars(["broker", "spark"])
    run = DemoRun(rate, start_spark)
    view = _open_view(run, seconds)
    with Stop() as stop:
        try:
            verdict = _play(run, view, stop, seconds)
        finally:
            view.show(None)
            in_background(run.close, lambda: view.show(None))
            view.close()
    if verdict is None:
        typer.echo("Stopped before there was anything to see.")
        return
    view.verdict(verdict)
    if not verdict.equal:
        raise typer.Exit(1)


def _play(run: DemoRun, view: DemoView, stop: Stop, seconds: float) -> Verdict | None:
    """Open, watch until the time is up or Ctrl-C, and let the jobs finish. None if it was over before it began."""
    in_background(run.open, lambda: view.show(None))
    if stop.requested:
        return None
    began: float | None = None
    while not stop.requested:
        run.check_jobs()
        if began is None and all(follower.counts for follower in run.followers.values()):
            began = time.monotonic()
        clock = None if began is None else time.monotonic() - began
        view.show(clock)
        if clock is not None and clock >= seconds:
            break
        time.sleep(_LOOK_EVERY)
    return in_background(run.finish, lambda: view.show(seconds))


def _open_view(run: DemoRun, seconds: float) -> DemoView:
    if sys.stdout.isatty():
        from headwater.cli.demo_screen import DemoScreen

        return DemoScreen(run, seconds)
    return PlainDemo(run)


class PlainDemo:
    """A line for every phase, and every few seconds one with the totals."""

    _EVERY = 5.0

    def __init__(self, run: DemoRun) -> None:
        self._run = run
        self._phase = ""
        self._due = 0.0

    def show(self, clock: float | None) -> None:
        if self._run.phase != self._phase:
            self._phase = self._run.phase
            typer.echo(f"{self._phase} …")
        if clock is not None and clock >= self._due and self._run.feed is not None:
            self._due += self._EVERY
            typer.echo(self._totals(clock))

    def _totals(self, clock: float) -> str:
        assert self._run.feed is not None
        tables = "  ".join(
            f"{name}: {count(sum(pv for pv, _ in self._run.counts(name).values()))}" for name in self._run.followers
        )
        return f"{clock:4.0f} s  fed: {count(self._run.feed.sent)}  {tables}"

    def close(self) -> None:
        pass

    def verdict(self, verdict: Verdict) -> None:
        from headwater.cli.style import aligned

        rows = [("region", "views", "visitors")]
        rows += [(region, count(pv), count(uv)) for region, (pv, uv) in sorted(verdict.expected.items())]
        for line in aligned(rows):
            typer.echo(line)
        for line in verdict_lines(verdict):
            typer.echo(line)


def verdict_lines(verdict: Verdict) -> list[str]:
    """One line per output topic, and where it differs, how."""
    lines = []
    for name, found in verdict.found.items():
        if found == verdict.expected:
            facts = f"{len(found)} regions, {count(verdict.views)} page views"
            lines.append(f"✓ {name}: {facts}, equal to a recount of the input")
        else:
            lines.append(f"✗ {name}: not equal to a recount of the input")
            regions = sorted(found.keys() | verdict.expected.keys())
            lines += [
                f"    {region}: {found.get(region)}, recounted {verdict.expected.get(region)} (page views, visitors)"
                for region in regions
                if found.get(region) != verdict.expected.get(region)
            ]
    return lines
