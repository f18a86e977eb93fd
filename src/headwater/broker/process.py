"""Processes and ports, as the embedded broker needs them: start, recognise and stop the one, find the other."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

__all__ = ["collect", "command_line", "end", "free_ports", "is_free", "spawn_detached", "spawn_supervised"]

_PROC = Path("/proc/self")  # Linux; elsewhere ps is asked
_RECOGNISABLE_SECONDS = 2.0
_SUPERVISOR = Path(__file__).with_name("supervisor.py")

# Every child of this process by the pid of its JVM. Held so that its pipe stays open and its exit is collected.
_children: dict[int, subprocess.Popen[bytes]] = {}


def spawn_detached(command: list[str], log_file: Path) -> int:
    """Start `command` so that it outlives this process; its pid."""
    with log_file.open("ab") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    return _adopt(child.pid, child)


def spawn_supervised(command: list[str], log_file: Path) -> int:
    """Start `command` so that it dies when this process does, even by SIGKILL; its pid."""
    # isolated and without site-packages: the supervisor is up in a few milliseconds
    supervisor = subprocess.Popen(
        [sys.executable, "-I", "-S", str(_SUPERVISOR), str(log_file), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert supervisor.stdout is not None
    return _adopt(int(supervisor.stdout.readline()), supervisor)


def _adopt(pid: int, child: subprocess.Popen[bytes]) -> int:
    """Remember a child. For a moment after it starts a process has no command line; wait until it can be recognised."""
    _children[pid] = child
    deadline = time.monotonic() + _RECOGNISABLE_SECONDS
    while not command_line(pid) and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    return pid


def command_line(pid: int) -> str:
    """How a live process was called, words joined by spaces; empty for one that has ended."""
    if _PROC.is_dir():
        with suppress(OSError):
            return (_PROC.with_name(str(pid)) / "cmdline").read_bytes().rstrip(b"\0").replace(b"\0", b" ").decode()
        return ""
    ps = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    listed = subprocess.run(ps, capture_output=True, text=True, check=False)
    return listed.stdout.strip()


def end(pid: int, *, patience: float) -> None:
    """Ask a process to stop, wait for up to `patience` seconds, then kill it."""
    recognised = command_line(pid)
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        if not _wait_until_gone(pid, recognised, patience):
            os.kill(pid, signal.SIGKILL)
            _wait_until_gone(pid, recognised, 10)


def collect(pid: int) -> None:
    """Let go of a child that has ended; does nothing for a process that is not ours."""
    child = _children.pop(pid, None)
    if child is not None:
        # closed before waiting: a supervisor takes it as its sign to leave
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                pipe.close()
        child.wait(10)


def _wait_until_gone(pid: int, recognised: str, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while recognised and command_line(pid) == recognised:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def is_free(port: int) -> bool:
    """Whether a server can listen on this loopback port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    # where the address may be shared (macOS), a listener on all addresses does not stop the bind above
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def free_ports(count: int) -> list[int]:
    """Different loopback ports that nobody listens on."""
    with ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
