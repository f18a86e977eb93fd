"""The HTTP server of a run: the page and what it asks for, metrics, and health. On this machine alone.

    /                        the page; '?token=…' lets a browser in, which then has a cookie
    /api/state               all jobs, and events after '?event=N'
    /api/jobs/NAME           plan, last hour (after '?since=T') and messages of a job
    /api/jobs/NAME/stop      POST: the job ends after its current batch
    /metrics, /healthz, /readyz      for programs: without a token, and without anything a message holds

Who may ask: the token is compared in constant time; the Host header must name this machine, so that no page from
elsewhere can reach the server by a name of its own (DNS rebinding); there is no CORS; a POST needs the token in a
header too, which a form of another page cannot send.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from headwater.control.monitor import Monitor
from headwater.errors import SetupError
from headwater.ui.graph import graph_of
from headwater.ui.metrics import CONTENT_TYPE, metrics_text

__all__ = ["DEFAULT_PORT", "PageServer"]

DEFAULT_PORT = 4848
_TRIED_PORTS = 20
_HOST = "127.0.0.1"
_STOP_SECONDS = 0.05  # how often it looks whether it shall end: at the end of a run, someone waits for that
_OPEN_SECONDS, _LAST_LOOK_SECONDS = 3.0, 1.5
_NAMES = {"127.0.0.1", "localhost", "[::1]"}
_SCRIPTS = ("page.js", "charts.js", "plan.js", "format.js")
_STATIC = {"page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"} | dict.fromkeys(
    _SCRIPTS, "text/javascript; charset=utf-8"
)
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
_STOP = re.compile(r"/api/jobs/([^/]+)/stop")
_JOB = re.compile(r"/api/jobs/([^/]+)")


class PageServer:
    """Serves until it is closed. `address` opens the page."""

    def __init__(self, monitor: Monitor, port: int | None = None) -> None:
        """On `port`, or on the first free one from the default on; 0 is any free one. Raises SetupError."""
        # Other users of the machine can reach the port; the token keeps them out.
        self.token = secrets.token_urlsafe(24)
        self._server = _bound(port)
        self._server.monitor = monitor
        self._server.token = self.token
        self.port: int = self._server.server_address[1]
        monitor.page = self.address
        serve = partial(self._server.serve_forever, _STOP_SECONDS)
        threading.Thread(target=serve, name="headwater-page", daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://{_HOST}:{self.port}/?token={self.token}"

    def close(self) -> None:
        """A page that is open asks every second: it shall show how the run has ended, and is waited for."""
        ended = time.monotonic()
        is_open = self._server.asked > ended - _OPEN_SECONDS
        while is_open and self._server.answered < ended and time.monotonic() < ended + _LAST_LOOK_SECONDS:
            time.sleep(_STOP_SECONDS)
        self._server.shutdown()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64  # a browser asks for all files of the page at once
    monitor: Monitor
    token: str
    asked = float("-inf")  # when a page asked last
    answered = float("-inf")  # when it asked for the last answer that it has got


def _bound(port: int | None) -> _Server:
    ports = range(DEFAULT_PORT, DEFAULT_PORT + _TRIED_PORTS) if port is None else (port,)
    problem = ""
    for candidate in ports:
        try:
            return _Server((_HOST, candidate), _Handler)
        except (OSError, OverflowError) as error:
            problem = str(error)
    raise SetupError(
        f"The page cannot listen on port {ports[0]}.",
        detail=problem,
        hint="Name another one: --ui PORT; --ui 0 takes any that is free.",
    )


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "headwater"
    sys_version = ""
    # A connection ends with its answer, so that none outlives the server.
    protocol_version = "HTTP/1.0"
    timeout = 30

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the base class
        """Nothing: standard error belongs to the view."""

    def do_GET(self) -> None:
        with suppress(ConnectionError):
            self._get()

    def do_POST(self) -> None:
        with suppress(ConnectionError):
            self._post()

    def _get(self) -> None:
        url = urlsplit(self.path)
        asked = {key: values[-1] for key, values in parse_qs(url.query).items()}
        if not self._is_here():
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server is asked by another name than its own.")
        if url.path in _OPEN:
            return _OPEN[url.path](self)
        if url.path.removeprefix("/static/") in _STATIC:
            name = url.path.removeprefix("/static/")
            return self._send(HTTPStatus.OK, _static(name), _STATIC[name])
        # The token is taken from the address once and kept as a cookie, so that it stays out of the history and of
        # Referer headers.
        if url.path == "/" and self._is_token(asked.get("token", "")):
            return self._let_in()
        if not self._is_token(self._cookie()):
            return self._refuse(HTTPStatus.UNAUTHORIZED, "Open the address that 'headwater run --ui' has printed.")
        return self._answer(url.path, asked)

    def _answer(self, path: str, asked: dict[str, str]) -> None:
        monitor = self.server.monitor
        job = _JOB.fullmatch(path)
        if path == "/":
            page = _static("page.html").replace(b"{{token}}", self.server.token.encode())
            return self._send(HTTPStatus.OK, page, "text/html; charset=utf-8")
        if path == "/api/state":
            now = self.server.asked = time.monotonic()
            self._json(_state(monitor, _number(asked.get("event", ""))))
            self.server.answered = now
            return None
        if job is not None:
            content = _job(monitor, unquote(job[1]), _number(asked.get("since", "")))
            if content is not None:
                return self._json(content)
        return self._refuse(HTTPStatus.NOT_FOUND, "There is nothing here.")

    def _post(self) -> None:
        stop = _STOP.fullmatch(urlsplit(self.path).path)
        if not self._is_here():
            return self._refuse(HTTPStatus.MISDIRECTED_REQUEST, "This server is asked by another name than its own.")
        # The cookie alone would come with a form of any other site; the header cannot be set from there.
        if not (self._is_token(self._cookie()) and self._is_token(self.headers.get("X-Headwater-Token", ""))):
            return self._refuse(HTTPStatus.FORBIDDEN, "Only the page itself may ask for this.")
        if stop is None or not self.server.monitor.stop(unquote(stop[1])):
            return self._refuse(HTTPStatus.NOT_FOUND, "There is no such job.")
        return self._json({"ok": True}, HTTPStatus.ACCEPTED)

    def _is_here(self) -> bool:
        """Whatever the port: it may be that of a tunnel."""
        name = re.sub(r":\d+$", "", self.headers.get("Host", ""))
        return name.lower() in _NAMES

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(self._cookie_name)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    @property
    def _cookie_name(self) -> str:
        """Of its own for each port: browsers share cookies between the ports of a host."""
        return f"headwater-{self.server.server_address[1]}"

    def _let_in(self) -> None:
        """On to the page without the token in its address, so that it is in no history and on no screen."""
        cookie = f"{self._cookie_name}={quote(self.server.token)}; Path=/; HttpOnly; SameSite=Strict"
        self._send(HTTPStatus.SEE_OTHER, b"", "text/plain", {"Location": "/", "Set-Cookie": cookie})

    def _metrics(self) -> None:
        self._send(HTTPStatus.OK, metrics_text(self.server.monitor).encode(), CONTENT_TYPE)

    def _health(self) -> None:
        """Well as long as no job has failed."""
        self._checked(lambda status: status != "failed")

    def _ready(self) -> None:
        """When every job works: none is starting, waits for a broker, or has failed."""
        self._checked(lambda status: status in ("running", "finished", "stopped"))

    def _checked(self, is_well: Any) -> None:
        jobs = {job.name: job.status for job in self.server.monitor.status().jobs}
        well = all(map(is_well, jobs.values())) and (bool(jobs) or is_well("starting"))
        self._json({"ok": well, "jobs": jobs}, HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE)

    def _json(self, content: Any, status: HTTPStatus = HTTPStatus.OK) -> None:
        self._send(status, json.dumps(content).encode(), "application/json")

    def _refuse(self, status: HTTPStatus, sentence: str) -> None:
        self._send(status, f"{sentence}\n".encode(), "text/plain; charset=utf-8")

    def _send(self, status: HTTPStatus, content: bytes, kind: str, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        fields = {**_HEADERS, "Content-Type": kind, "Content-Length": str(len(content)), **(more or {})}
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


_OPEN = {"/metrics": _Handler._metrics, "/healthz": _Handler._health, "/readyz": _Handler._ready}


def _static(name: str) -> bytes:
    return (files("headwater.ui") / "static" / name).read_bytes()


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() else 0


def _state(monitor: Monitor, after: int) -> dict[str, Any]:
    run = monitor.status().to_json()
    del run["page"]  # it holds the token
    return {"run": run, "events": [asdict(event) for event in monitor.events() if event.number > after]}


def _job(monitor: Monitor, name: str, since: int) -> dict[str, Any] | None:
    job = monitor.job(name)
    if job is None:
        return None
    samples = [asdict(sample) for sample in monitor.samples(name) if sample.time >= since]
    left_out = [{"time": int(when * 1000), **asdict(message)} for when, message in reversed(list(job.left_out))]
    return {"plan": graph_of(job.plan).to_json(), "samples": samples, "messages": left_out}
