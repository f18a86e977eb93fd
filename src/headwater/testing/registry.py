"""A real schema registry for tests, Apicurio's, and a door in front of it that asks who is there.

The registry keeps everything in memory and answers everybody. `Door` passes requests on to it, over TLS and after a
look at the `Authorization`, if that is wanted; it can be closed and opened again, as if the registry were away.
"""

from __future__ import annotations

import http.client
import ssl
import tarfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from urllib.parse import urlsplit

from headwater.broker import process
from headwater.errors import SetupError
from headwater.install.home import exclusive, headwater_home, writable_directory
from headwater.install.jars import registry_archive
from headwater.install.java import check_java

__all__ = ["Door", "SchemaRegistry", "start_registry"]

_START_SECONDS = 120.0
_PATH = "/apis/ccompat/v7"
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m")


@dataclass(frozen=True)
class SchemaRegistry:
    """It ends with this process. `url` is what tables are given."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{_PATH}"

    def stop(self) -> None:
        process.end(self.pid, patience=5)
        process.collect(self.pid)


def start_registry() -> SchemaRegistry:
    """Fetches it if this machine has not got it yet, and returns when it answers."""
    [port] = process.free_ports(1)
    directory = Path(mkdtemp(prefix="headwater-registry-"))
    settings = [f"-Dquarkus.http.port={port}", "-Dquarkus.http.host=127.0.0.1", "-Dquarkus.log.level=WARN"]
    command = [str(check_java().command), *_QUICK, *settings, "-jar", str(_program())]
    registry = SchemaRegistry(process.spawn_supervised(command, directory / "registry.log"), port)
    deadline = time.monotonic() + _START_SECONDS
    while not _answers(port):
        if not process.command_line(registry.pid) or time.monotonic() > deadline:
            registry.stop()
            raise SetupError("The schema registry did not start.", detail=f"Its log: {directory / 'registry.log'}")
        time.sleep(0.05)
    return registry


def _program() -> Path:
    """Its jar, unpacked once for all runs. A directory that exists is whole."""
    archive = registry_archive()
    root = writable_directory(headwater_home() / "registry")
    final = root / archive.parent.name
    with exclusive(root / ".lock"):
        if not final.is_dir():
            staging = Path(mkdtemp(dir=root))
            with tarfile.open(archive) as packed:
                packed.extractall(staging, filter="data")
            staging.rename(final)
    return next(final.glob("*-runner.jar"))


def _answers(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", f"{_PATH}/subjects")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class Door:
    """`authorization` is the header that a request must have, `forbidden` the one of somebody who may do nothing.
    `tls` is what a server needs for it. `requests` counts those that came."""

    def __init__(
        self,
        registry: SchemaRegistry,
        *,
        authorization: str = "",
        forbidden: str = "",
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[str] = []
        self.away = False
        self._scheme = "http" if tls is None else "https"
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self, registry, authorization, forbidden))
        # A request that is still waiting must not keep the test process alive.
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._server.server_address[1]}{_PATH}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _handler(door: Door, registry: SchemaRegistry, authorization: str, forbidden: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._pass_on()

        do_POST = do_PUT = do_GET  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

        def _pass_on(self) -> None:
            door.requests.append(f"{self.command} {urlsplit(self.path).path.removeprefix(_PATH)}")
            given = self.headers.get("Authorization", "")
            if door.away:
                self._answer(503, b'{"error_code": 50301, "message": "gone to lunch"}')
            elif forbidden and given == forbidden:
                self._answer(403, b'{"error_code": 40301, "message": "not for you"}')
            elif authorization and given != authorization:
                self._answer(401, b'{"error_code": 40101, "message": "who are you?"}')
            else:
                self._answer(*self._asked())

        def _asked(self) -> tuple[int, bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", registry.port, timeout=30)
            try:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                kind = self.headers.get("Content-Type", "application/json")
                connection.request(self.command, self.path, body or None, {"Content-Type": kind})
                response = connection.getresponse()
                return response.status, response.read()
            finally:
                connection.close()

        def _answer(self, status: int, body: bytes) -> None:
            with suppress(BrokenPipeError):
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

    return Handler
