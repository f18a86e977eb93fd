"""A real Chromium, steered by its own protocol over a pair of pipes: no driver and no further package is needed."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import time
from pathlib import Path
from typing import Any

__all__ = ["Browser", "find_chromium"]

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find_chromium() -> str:
    """Its path. A machine without one cannot run these tests, and says so: they are not skipped."""
    found = next((path for name in _NAMES if (path := shutil.which(name))), None)
    assert found, "Chromium is not installed: apt-get install chromium"
    return found


class Browser:
    """One page. Errors in its console, and requests that its content policy blocks, are in `complaints`."""

    def __init__(self, profile: Path) -> None:
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        executable = find_chromium()
        arguments = [
            executable,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--no-first-run",
            "--remote-debugging-pipe",  # it reads from descriptor 3 and writes to 4
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        away = [fcntl.fcntl(end, fcntl.F_DUPFD, 100) for end in (to_browser, from_browser)]
        nothing = os.open(os.devnull, os.O_RDWR)
        places = [(away[0], 3), (away[1], 4), (nothing, 1), (nothing, 2)]
        actions = [(os.POSIX_SPAWN_DUP2, *place) for place in places]
        self._process = os.posix_spawn(executable, arguments, os.environ, file_actions=actions)
        for descriptor in (to_browser, from_browser, nothing, *away):
            os.close(descriptor)
        self._number = 0
        self._buffer = b""
        self._session = ""
        self.complaints: list[str] = []
        page = next(t for t in self._ask("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self._session = self._ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")

    def open(self, address: str) -> None:
        self._ask("Page.navigate", url=address)
        self.until("document.readyState === 'complete'")

    def size(self, width: int, height: int, *, dark: bool = False) -> None:
        phone = width < 600
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def run(self, script: str) -> Any:
        """The value of an expression, in the page."""
        answer = self._ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str, seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not self.run(script):
            assert time.monotonic() < deadline, f"never true: {script}\n{self.text()}"
            time.sleep(0.05)

    def text(self) -> str:
        return str(self.run("document.body ? document.body.innerText : ''"))

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """Of the whole page, not only of what is in sight."""
        shot = self._ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._read)
        os.close(self._write)

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        question: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            question["sessionId"] = self._session
        os.write(self._write, json.dumps(question).encode() + b"\0")
        while True:
            message = self._next()
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self._hear(message)

    def _hear(self, message: dict[str, Any]) -> None:
        match message.get("method"):
            case "Log.entryAdded":
                self.complaints.append(message["params"]["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(json.dumps(message["params"]["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if message["params"]["type"] in ("error", "warning"):
                self.complaints.append(json.dumps(message["params"]["args"]))

    def _next(self, seconds: float = 60.0) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], seconds)
            assert ready, "Chromium does not answer"
            piece = os.read(self._read, 1 << 20)
            assert piece, "Chromium has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        return message
