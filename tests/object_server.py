"""A real object store on this machine: versitygw, found or built with go."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

VERSION = "v1.8.0"
_PACKAGE = f"github.com/versity/versitygw/cmd/versitygw@{VERSION}"
KEY, SECRET = "tester", "a-secret-of-the-tests"
BUCKET = "jobs"


def find_binary() -> str:
    """On the path, where go installs to, or built now: some minutes, once."""
    found = shutil.which("versitygw")
    if found:
        return found
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs versitygw, or go to build it")
    home = subprocess.run([go, "env", "GOPATH"], check=True, capture_output=True, text=True).stdout.strip()
    binary = Path(home) / "bin" / "versitygw"
    if not binary.exists():
        subprocess.run([go, "install", _PACKAGE], check=True, timeout=1200)
    return str(binary)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class ObjectServer:
    binary: str
    directory: Path
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        (self.directory / BUCKET).mkdir(parents=True, exist_ok=True)
        with (self.directory.parent / "server.log").open("ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "--keep-alive", "--port", f"127.0.0.1:{self.port}", "posix", str(self.directory)],
                env={**os.environ, "ROOT_ACCESS_KEY": KEY, "ROOT_SECRET_KEY": SECRET},
                stdout=log,
                stderr=log,
            )
        deadline = time.monotonic() + 30
        while not _answers(self.port):
            if time.monotonic() > deadline or self.process.poll() is not None:
                raise RuntimeError("versitygw did not start")
            time.sleep(0.05)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(30)
            self.process = None

    def location(self, prefix: str, secret: str = SECRET, bucket: str = BUCKET) -> str:
        settings = f"endpoint=http://127.0.0.1:{self.port}&allow_http=true&region=us-east-1"
        return f"s3://{bucket}/{prefix}?{settings}&access_key_id={KEY}&secret_access_key={secret}"


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
