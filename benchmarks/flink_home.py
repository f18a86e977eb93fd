"""Flink for the benchmarks: apache-flink in a venv of its own, installed once, beside the jars that Ivy fetched.

HEADWATER_BENCH_FLINK names another venv to use; it must hold the same version.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from headwater.errors import SetupError
from headwater.install.home import exclusive, headwater_home, writable_directory
from headwater.install.jars import bench_jars

__all__ = ["FLINK_VERSION", "flink_environment", "flink_python"]

FLINK_VERSION = "2.2.0"
NEWEST_PYTHON = (3, 12)


def flink_python() -> Path:
    """The Python that has Flink, installed if it is not there yet."""
    given = os.environ.get("HEADWATER_BENCH_FLINK", "")
    if given:
        return _checked(Path(given) / "bin" / "python")
    root = writable_directory(headwater_home() / "bench")
    home = root / f"flink-{FLINK_VERSION}"
    with exclusive(root / ".lock"):
        if not (home / ".installed").exists():
            _install(home)
            (home / ".installed").touch()
    return _checked(home / "bin" / "python")


def flink_environment(python: Path, lib: Path) -> dict[str, str]:
    """Variables that give Flink a lib directory (made here) with its own jars and ours.

    Loaded from there, as in any Flink installation, the connector's classes stay warm from one job to the next; jars
    that come with a job are loaded anew each time.
    """
    find = "import pyflink, pathlib; print(pathlib.Path(pyflink.__file__).parent)"
    home = Path(subprocess.run([python, "-c", find], check=True, capture_output=True, text=True).stdout.strip())
    lib.mkdir()
    for jar in (*(home / "lib").glob("*.jar"), *bench_jars()):
        (lib / jar.name).symlink_to(jar)
    return {"FLINK_HOME": str(home), "FLINK_LIB_DIR": str(lib)}


def _install(home: Path) -> None:
    if sys.version_info[:2] > NEWEST_PYTHON:
        raise SetupError(
            f"apache-flink {FLINK_VERSION} does not run on Python {sys.version_info[0]}.{sys.version_info[1]}.",
            hint="Install it in a venv with Python 3.12 or older, and set HEADWATER_BENCH_FLINK to that directory.",
        )
    print(f"Installing apache-flink {FLINK_VERSION} (about 800 MB, once) …", flush=True)
    venv.create(home, clear=True, with_pip=True)
    command = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", f"apache-flink=={FLINK_VERSION}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SetupError(f"apache-flink {FLINK_VERSION} could not be installed.", detail=done.stderr[-2000:])


def _checked(python: Path) -> Path:
    ask = "from importlib.metadata import version; print(version('apache-flink'))"
    done = subprocess.run([python, "-c", ask], check=False, capture_output=True, text=True)
    if done.stdout.strip() != FLINK_VERSION:
        raise SetupError(
            f"'{python}' has no apache-flink {FLINK_VERSION}.",
            detail=done.stdout.strip() or done.stderr.strip()[-500:],
            hint=f"Install it there: '{python}' -m pip install apache-flink=={FLINK_VERSION}",
        )
    return python
