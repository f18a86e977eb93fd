"""Starting Spark without the lines that its JVM writes to standard error, which nobody can act on and which would run
through the live view. HEADWATER_DEBUG=1 or HEADWATER_SPARK_LOG shows them."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from headwater.errors import HeadwaterError, SetupError

if TYPE_CHECKING:
    from headwater.session import Session

__all__ = ["keep_standard_error", "start_spark"]

_STDERR = 2
_LAST_LINES = 15


def start_spark(session: Session) -> None:
    """Start the session's Spark. Its JVM keeps the standard error it is born with: a file that nobody sees."""
    if os.environ.get("HEADWATER_DEBUG") == "1" or os.environ.get("HEADWATER_SPARK_LOG"):
        _ = session.spark
        return
    with tempfile.TemporaryFile() as words, _standard_error_into(words):
        try:
            _ = session.spark
        except HeadwaterError:
            raise
        except Exception as error:
            raise SetupError(
                "Spark did not start.",
                detail="\n".join(filter(None, [_first_line(error), _last_lines(words)])),
                hint="Check --master and --conf; HEADWATER_DEBUG=1 shows the whole trace.",
            ) from error


def keep_standard_error() -> None:
    """Give sys.stderr a descriptor of its own, before anything is shown, so that it stays when the JVM's goes aside."""
    encoding = sys.stderr.encoding
    sys.stderr.flush()
    sys.stderr = os.fdopen(os.dup(_STDERR), "w", buffering=1, encoding=encoding, errors="backslashreplace")


@contextmanager
def _standard_error_into(file: IO[bytes]) -> Iterator[None]:
    """For processes that are started meanwhile."""
    kept = os.dup(_STDERR)
    # By descriptor: the JVM inherits number 2, whatever sys.stderr is in Python.
    os.dup2(file.fileno(), _STDERR)
    try:
        yield
    finally:
        os.dup2(kept, _STDERR)
        os.close(kept)


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


def _last_lines(file: IO[bytes]) -> str:
    file.seek(0)
    lines = file.read().decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-_LAST_LINES:])
