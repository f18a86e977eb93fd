"""`python -m headwater.execution.worker_daemon`: the process that Spark's Python workers are forked from.

It is PySpark's daemon, which loads the modules of every worker first, so that a worker is there in milliseconds instead
of half a second. PySpark's own puts an archive of sources before the installed package, where every module is compiled
again each time a daemon starts; here the installed one is used if it is the same.

Loading takes most of a second, for which the first task of Spark would wait. So a spare daemon loads them while Spark
starts (`start_spare`), and the process that Spark starts later hands its place over to that one: its environment and
its pipes, through a socket. It then stays as the one that Spark knows. Where there is no spare, it is the daemon.

Of what is loaded only jemalloc would start a thread, which a fork does not copy: Arrow brings it along beside the
allocator that it uses.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from select import select
from typing import Any

__all__ = ["ADDRESS", "PRELOADED", "installed_first", "main", "start_spare"]

ADDRESS = "HEADWATER_SPARE_DAEMON"
"""The variable with the path of the socket on which a spare daemon waits."""
PRELOADED = (
    "pyarrow.compute",
    "pandas",  # which Arrow loads with the first array that it makes of Python values
    "headwater.execution.worker",
    "headwater.connectors.arrow_chunks",
    "headwater.connectors.kafka.read.reader",
    "headwater.connectors.kafka.write.writer",
)
_AT_START = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
"""Variables that count when a process starts, as Spark sets them for its daemon."""
_MOST = 1 << 20  # bytes of an environment


def main() -> None:
    sys.path[:] = installed_first(sys.path)
    address = os.environ.get(ADDRESS, "")
    if sys.argv[1:2] == ["--spare"]:
        _wait_as_spare(sys.argv[2])
    elif address and _handed_over(address):
        return
    else:
        _load_modules()
    from pyspark.daemon import manager

    manager()  # type: ignore[no-untyped-call]


def start_spare(address: str, python: str) -> subprocess.Popen[bytes]:
    """A daemon that loads its modules and waits at `address`. It ends with its standard input, if nobody has come."""
    return subprocess.Popen(
        [python, "-m", "headwater.execution.worker_daemon", "--spare", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_AT_START},
    )


def installed_first(path: Sequence[str]) -> list[str]:
    """`path` without the archives of an installation of PySpark that is on it as a package, too. On another machine
    the package may be of another version than the Spark that runs there: then its archives stay."""
    packed = [entry for entry in path if entry.endswith((".zip", ".jar"))]
    others = [entry for entry in path if entry not in packed]
    package, bridge = (PathFinder.find_spec(name, others) for name in ("pyspark", "py4j"))
    if package is None or bridge is None or package.origin is None:
        return list(path)
    home = Path(package.origin).resolve().parent
    return [entry for entry in path if entry not in packed or home not in Path(entry).resolve().parents]


def _load_modules() -> None:
    os.environ["JE_ARROW_MALLOC_CONF"] = "background_thread:false"
    for name in ("pyspark.worker", *PRELOADED):
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)
    gc.freeze()  # the collector of a worker does not touch the memory that it shares with this process


def _wait_as_spare(address: str) -> None:
    """Until somebody hands its place over; ends with whoever has started this process. Ctrl-C is for that one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(1)
        _load_modules()
        ready, _, _ = select([listening.fileno(), 0], [], [])
        if listening.fileno() not in ready:
            os._exit(0)
        connection, _ = listening.accept()
    pipes = socket.recv_fds(connection, 1, 3)[1]
    place = json.loads(_received(connection))
    if not _fits(place):
        os._exit(0)
    for number, pipe in enumerate(pipes):
        os.dup2(pipe, number)
        os.close(pipe)
    os.environ.clear()
    os.environ.update(place["environment"])
    sys.path[:], sys.argv[:] = place["path"], place["arguments"]
    connection.sendall(os.getpid().to_bytes(8, "big"))
    # Not closed, but forgotten: the other end sees by it that this process lives.
    connection.detach()


def _fits(place: Mapping[str, Any]) -> bool:
    """Whether what counts at the start of a process was the same for this one."""
    there, here = place["environment"], os.environ
    return place["python"] == sys.executable and all(there.get(name) == here.get(name) for name in _AT_START)


def _received(connection: socket.socket) -> bytes:
    size = int.from_bytes(connection.recv(4, socket.MSG_WAITALL), "big")
    return connection.recv(min(size, _MOST), socket.MSG_WAITALL)


def _handed_over(address: str) -> bool:
    """Whether a spare daemon has taken the place of this process, and has ended since."""
    with socket.socket(socket.AF_UNIX) as connection, suppress(OSError):
        connection.connect(address)
        place = {
            "python": sys.executable,
            "path": sys.path,
            "arguments": sys.argv,
            "environment": {name: value for name, value in os.environ.items() if name != ADDRESS},
        }
        text = json.dumps(place).encode()
        socket.send_fds(connection, [b"!"], [0, 1, 2])
        connection.sendall(len(text).to_bytes(4, "big") + text)
        answer = connection.recv(8, socket.MSG_WAITALL)
        if len(answer) == 8:
            _stand_for(int.from_bytes(answer, "big"), connection)
            return True
    return False


def _stand_for(daemon: int, connection: socket.socket) -> None:
    """Spark stops this process by a signal, and its daemon by closing its pipes, which this one must not hold."""
    signal.signal(signal.SIGTERM, lambda *_: os.kill(daemon, signal.SIGTERM))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nowhere, number)
    with suppress(OSError):
        connection.recv(1)


if __name__ == "__main__":
    main()
