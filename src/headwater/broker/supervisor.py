"""A program of its own: runs one command and kills it as soon as whoever started this program is gone.

    python supervisor.py LOG COMMAND [ARGUMENT...]

It prints the command's process id, then waits. Its standard input is a pipe that its parent keeps open and never writes
to: end of file means the parent died, however suddenly. A copy of the pipe may survive in a fork of the parent, so a
change of the parent's process id counts as well. Imports nothing of Headwater, to start quickly.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

_POLL_SECONDS = 0.5


def main() -> int:
    parent = os.getppid()
    log_file, *command = sys.argv[1:]
    with Path(log_file).open("ab") as log:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
    signal.signal(signal.SIGTERM, lambda *_: child.kill())
    print(child.pid, flush=True)
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], _POLL_SECONDS)
        if readable or os.getppid() != parent:
            child.kill()
            child.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
