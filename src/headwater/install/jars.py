"""The jars Spark and the embedded broker need beyond PySpark: fetched once, checked against pinned checksums, cached.

Each configuration of ivy.xml has one directory under $HEADWATER_HOME/jars. It appears by one rename when all its files
are there and verified, so a directory that exists is whole, and finding it costs no JVM and no hashing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headwater.errors import SetupError
from headwater.install.home import exclusive, headwater_home, writable_directory
from headwater.install.pins import Pins, pinned, sha256

__all__ = ["Conf", "FetchStep", "bench_jars", "broker_jars", "fetch", "is_fetched", "registry_archive", "spark_jars"]

Conf = Literal["spark", "broker", "bench", "registry"]


@dataclass(frozen=True)
class FetchStep:
    """How far one configuration has come; the last step of each is `ready`."""

    conf: Conf
    phase: Literal["resolving", "downloading", "verifying", "ready"]
    done: int
    total: int


def spark_jars() -> list[Path]:
    """Spark's Kafka and Avro modules with what they need, fetched if this machine has not got them yet."""
    return _jars("spark")


def broker_jars() -> list[Path]:
    """The classpath of the embedded broker, fetched if this machine has not got it yet."""
    return _jars("broker")


def bench_jars() -> list[Path]:
    """Flink's Kafka connector and Avro format, used by the benchmarks only."""
    return _jars("bench")


def registry_archive() -> Path:
    """Apicurio Registry, packed; used by the tests only."""
    [archive] = _jars("registry")
    return archive


def fetch(confs: Sequence[Conf] = ("spark", "broker"), progress: Callable[[FetchStep], None] = lambda _: None) -> None:
    """Make sure the jars of `confs` are here and unharmed, fetching what is missing or altered.

    1. Wait for other processes that fetch into the same home.
    2. Keep what is there and matches its checksums.
    3. Let Ivy copy the rest into a staging directory.
    4. Verify every file there.
    5. Rename the staging directory to its final name.
    """
    root = writable_directory(headwater_home() / "jars")
    with exclusive(root / ".lock"):  # 1
        for conf in confs:
            pins = pinned(conf)
            if not _is_intact(root / pins.directory_name, pins):  # 2
                _fetch_one(root, conf, pins, progress)  # 3-5
            progress(FetchStep(conf, "ready", len(pins.checksums), len(pins.checksums)))
        shutil.rmtree(root / ".ivy", ignore_errors=True)


def is_fetched(conf: Conf) -> bool:
    """Whether the jars of `conf` are on this machine; looks at names only, in well under a millisecond."""
    return all(jar.is_file() for jar in _places(conf))


def _places(conf: Conf) -> list[Path]:
    pins = pinned(conf)
    directory = headwater_home() / "jars" / pins.directory_name
    return [directory / name for name in pins.checksums]


def _jars(conf: Conf) -> list[Path]:
    if not is_fetched(conf):
        fetch([conf])
    return _places(conf)


def _is_intact(directory: Path, pins: Pins) -> bool:
    return all(
        (directory / name).is_file() and sha256(directory / name) == checksum
        for name, checksum in pins.checksums.items()
    )


def _fetch_one(root: Path, conf: Conf, pins: Pins, progress: Callable[[FetchStep], None]) -> None:
    from headwater.install import ivy

    staging, final, ivy_cache = root / f".staging-{conf}", root / pins.directory_name, root / ".ivy"
    shutil.rmtree(staging, ignore_errors=True)
    ivy.retrieve(conf, target=staging, ivy_cache=ivy_cache, on_line=_Follower(conf, len(pins.checksums), progress))
    progress(FetchStep(conf, "verifying", 0, len(pins.checksums)))
    try:
        _verify(staging, pins)
    except SetupError:
        # Ivy would serve the wrong file from its cache again.
        shutil.rmtree(ivy_cache, ignore_errors=True)
        raise
    shutil.rmtree(final, ignore_errors=True)
    staging.rename(final)


class _Follower:
    """Reads Ivy's output line by line and reports each module resolved and each jar downloaded."""

    def __init__(self, conf: Conf, total: int, progress: Callable[[FetchStep], None]) -> None:
        self._conf: Conf = conf
        self._total = total
        self._progress = progress
        self._found = 0
        self._downloaded = 0

    def __call__(self, line: str) -> None:
        if line.startswith("\tfound "):
            self._found += 1
            self._progress(FetchStep(self._conf, "resolving", min(self._found, self._total), self._total))
        elif "[SUCCESSFUL ]" in line:
            self._downloaded += 1
            self._progress(FetchStep(self._conf, "downloading", self._downloaded, self._total))


def _verify(directory: Path, pins: Pins) -> None:
    present = {path.name for path in directory.iterdir()} if directory.is_dir() else set()
    wrong = [f"'{name}' is missing" for name in pins.checksums if name not in present]
    wrong += [f"'{name}' is not expected" for name in sorted(present - pins.checksums.keys())]
    for name, expected in pins.checksums.items():
        if name in present and (actual := sha256(directory / name)) != expected:
            wrong.append(f"'{name}' has SHA-256 {actual}, expected {expected}")
    if wrong:
        raise SetupError(
            f"The fetched jars of '{pins.conf}' are not the ones Headwater was built with.",
            detail="; ".join(wrong) + ".",
            hint="The registry served other files than it should. Run 'headwater fetch' again, or use another mirror.",
        )
