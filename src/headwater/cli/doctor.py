"""`headwater doctor`: whether this machine has what Headwater needs, and what to do if not."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import typer

from headwater.cli.kafka import BrokerOption
from headwater.errors import HeadwaterError

__all__ = ["doctor"]

_LEAST_DISK = 1 << 30
_NEWEST_PYTHON = (3, 13)


@dataclass(frozen=True)
class Finding:
    """`state` is ok, note (it may be meant so) or wrong."""

    about: str
    state: str
    fact: str
    fix: str = ""


def doctor(broker: BrokerOption = None) -> None:
    """Check this machine and say what to fix.

    Looks at Python, packages, Java, jars, disk and broker. Ends with exit code 1 if something is wrong.

    \b
    Example:
      headwater doctor --broker kafka-1:9092
    """
    findings = []
    for finding in _findings(broker):
        findings.append(finding)
        typer.secho(f"{finding.state:<6}", fg=_COLOURS[finding.state], nl=False)
        typer.echo(f"{finding.about:<10}{finding.fact}")
        for line in finding.fix.splitlines():
            typer.echo(f"      {line}")
    if any(finding.state == "wrong" for finding in findings):
        raise typer.Exit(1)


def _findings(broker: str | None) -> Iterator[Finding]:
    for check in (_python, _packages, _java, _spark_home, _jars, _disk):
        yield check()
    yield _broker(broker)


def _python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info[:2] > _NEWEST_PYTHON:
        newest = ".".join(map(str, _NEWEST_PYTHON))
        return Finding("Python", "note", f"{version} is newer than what is tested", f"Python 3.10 to {newest} is.")
    return Finding("Python", "ok", f"{version} ({sys.executable})")


def _packages() -> Finding:
    """Spark's workers run this very Python, so what counts is what is installed here."""
    from importlib.metadata import version

    pinned, found = _pinned_spark(), version("pyspark")
    if pinned and found != pinned:
        fix = f"pip install 'pyspark=={pinned}'"
        return Finding("packages", "wrong", f"PySpark is {found}; the jars belong to {pinned}.", fix)
    names = ("headwater", "pyspark", "pyarrow", "pandas", "confluent-kafka")
    return Finding("packages", "ok", ", ".join(f"{name} {version(name)}" for name in names))


def _pinned_spark() -> str:
    from importlib.metadata import requires

    found = (text for text in requires("headwater") or () if text.startswith("pyspark=="))
    return next(found, "").removeprefix("pyspark==").split(";")[0].strip()


def _java() -> Finding:
    from headwater.install.java import check_java

    return _of("Java", lambda: (java := check_java()).version + f" ({java.command})")


def _spark_home() -> Finding:
    home = os.environ.get("SPARK_HOME", "")
    if home:
        fix = "Unset SPARK_HOME, unless this is the version that PySpark belongs to."
        return Finding("Spark", "note", f"SPARK_HOME is '{home}', which is used instead of PySpark's own", fix)
    return Finding("Spark", "ok", "that of PySpark")


def _jars() -> Finding:
    from headwater.install.home import headwater_home
    from headwater.install.jars import is_fetched

    missing = [name for conf, name in (("spark", "Spark"), ("broker", "the broker")) if not is_fetched(conf)]  # type: ignore[arg-type]
    if missing:
        fix = "headwater fetch, now; otherwise they are downloaded at first use."
        return Finding("jars", "note", f"those for {' and '.join(missing)} are not there", fix)
    return Finding("jars", "ok", f"all there ({headwater_home()})")


def _disk() -> Finding:
    place = tempfile.gettempdir()
    free = shutil.disk_usage(place).free
    if free < _LEAST_DISK:
        fix = "Spark writes there: make room, or set TMPDIR and --conf spark.local.dir=…"
        return Finding("disk", "wrong", f"{free >> 20} MB are free in {place}", fix)
    return Finding("disk", "ok", f"{free >> 30} GB are free in {place}")


def _broker(address: str | None) -> Finding:
    from headwater.broker import Broker
    from headwater.cli.kafka import SERVERS, admin_of, target_of

    try:
        target = target_of("", address)
    except HeadwaterError:
        assert Broker.find() is None
        fix = "headwater broker start, or name yours with --broker HOST:PORT or in headwater.toml."
        return Finding("broker", "note", "none is named, and the embedded one is not running", fix)
    servers = target.connection[SERVERS]

    def answer() -> str:
        names = admin_of(target, 5).list_topics(timeout=5).topics
        number = sum(not name.startswith("__") for name in names)  # without Kafka's own
        return f"{servers} answers, with {number} topic{'' if number == 1 else 's'}"

    return _of("broker", answer)


def _of(about: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(about, "ok", look())
    except HeadwaterError as error:
        return Finding(about, "wrong", error.fact, "\n".join(filter(None, [error.detail, error.hint])))


_COLOURS = {"ok": "green", "note": "yellow", "wrong": "red"}
