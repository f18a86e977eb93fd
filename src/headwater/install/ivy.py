"""Running the Ivy that ships inside PySpark: resolve one configuration of ivy.xml and copy its jars into a directory.

Ivy's own default settings apply, or the file that HEADWATER_IVY_SETTINGS names. Checking, caching and locking are the
business of `jars`.
"""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from headwater.errors import SetupError
from headwater.install.java import check_java
from headwater.install.pins import IVY_FILE, coordinates

__all__ = ["retrieve"]

_ATTEMPTS = 3
_JVM_OPTIONS = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-Djava.net.useSystemProxies=true",
    "-Dsun.net.client.defaultConnectTimeout=20000",
    "-Dsun.net.client.defaultReadTimeout=60000",
)
_CAUSE = re.compile(r"access error|Host \S+ not found|Exception|problem while downloading|HTTP response")


def retrieve(conf: str, *, target: Path, ivy_cache: Path, on_line: Callable[[str], None]) -> None:
    """Copy the jars of `conf` into `target`, passing each line Ivy prints to `on_line`.

    A registry that answered for a part and then failed is asked again; one that did not answer at all is not.
    """
    command = _command(conf, target, ivy_cache)
    lines: list[str] = []
    for _ in range(_ATTEMPTS):
        returncode, lines = _run(command, on_line)
        if returncode == 0:
            return
        # Nothing was found at all: the network is down or closed, and another attempt would only take as long again.
        if not any(line.startswith("\tfound ") for line in lines):
            break
    raise _unreachable(conf, lines)


def _command(conf: str, target: Path, ivy_cache: Path) -> list[str]:
    settings = os.environ.get("HEADWATER_IVY_SETTINGS", "")
    if settings and not Path(settings).is_file():
        raise SetupError(
            "HEADWATER_IVY_SETTINGS does not name a file.",
            detail=f"There is no '{settings}'.",
            hint="Point it at an ivysettings.xml, or unset it to use Ivy's defaults.",
        )
    return [
        *(str(check_java().command), *_JVM_OPTIONS, "-jar", str(_ivy_jar())),
        *(["-settings", settings] if settings else []),
        *("-cache", str(ivy_cache), "-ivy", str(IVY_FILE), "-confs", conf),
        *("-retrieve", f"{target}/[artifact]-[revision].[ext]"),
    ]


def _ivy_jar() -> Path:
    # find_spec locates PySpark without importing it
    spec = importlib.util.find_spec("pyspark")
    places = spec.submodule_search_locations if spec is not None else None
    jars = [jar for place in places or () for jar in Path(place).glob("jars/ivy-*.jar")]
    if not jars:
        raise SetupError(
            "PySpark's own jars were not found.",
            detail="The jar of Apache Ivy, which PySpark ships, is needed to fetch the others.",
            hint="Reinstall PySpark: pip install --force-reinstall pyspark==4.1.1",
        )
    return jars[0]


def _run(command: list[str], on_line: Callable[[str], None]) -> tuple[int, list[str]]:
    lines: list[str] = []
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            lines.append(line.rstrip("\n"))
            on_line(lines[-1])
    return ivy.returncode, lines


def _unreachable(conf: str, lines: list[str]) -> SetupError:
    missing = dict.fromkeys(
        f"{org}:{name}:{revision}"
        for line in lines
        for org, name, revision in re.findall(r":: ([^#\s]+)#([^;\s]+);([^:!\s]+)[:!]", line)
    )
    detail = [f"Missing: {module}" for module in missing or coordinates(conf)]
    detail += [f"Ivy said: {line.strip()[:300]}" for line in lines if _CAUSE.search(line)][:1]
    return SetupError(
        f"The jars of '{conf}' could not be fetched.",
        detail="\n".join(detail),
        hint=(
            "Is this machine online? Behind a mirror, set HEADWATER_IVY_SETTINGS to an ivysettings.xml; behind a "
            "proxy, set JAVA_TOOL_OPTIONS='-Dhttps.proxyHost=… -Dhttps.proxyPort=…'.\n"
            "      To work without a network, run 'headwater fetch' on a connected machine and copy its "
            "$HEADWATER_HOME (default ~/.cache/headwater)."
        ),
    )
