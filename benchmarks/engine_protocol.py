"""How a benchmark talks with an engine in a process of its own: one JSON object per line, answered by one.

    {"do": "run", "statements": [...]}     runs a bounded job to its end     → {"seconds": 9.7, "batches": []}
    {"do": "start", "statements": [...]}   starts an unbounded job           → {"seconds": 0.4, "batches": []}
    {"do": "stop"}                         ends it                           → {"seconds": 0.1, "batches": [[…], …]}

"batches" are the micro-batches of the job that was stopped, if the engine has any: when each ended (as time.time()),
how long it took, and how much of that was Spark's own job.

Anything that goes wrong is answered with {"error": text}. Flink's Python, which has none of our packages, runs this
file too: standard library only.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, Protocol, TextIO

__all__ = ["Batches", "Engine", "serve"]


Batches = list[tuple[float, float, float]]


class Engine(Protocol):
    """What both engines can do. `settings` are the engine's own and hold for that job only."""

    def run(self, statements: list[str], settings: dict[str, str]) -> None: ...

    def start(self, statements: list[str], settings: dict[str, str]) -> None: ...

    def stop(self) -> Batches: ...

    def close(self) -> None: ...


def serve(start: Callable[[], Engine]) -> None:
    """Start the engine and answer requests until standard input ends."""
    # Whatever the engine and its JVM print must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    requests: SimpleQueue[str] = SimpleQueue()
    idle = threading.Event()
    threading.Thread(target=_listen, args=(requests, idle), daemon=True).start()
    engine = start()
    _answer(answers, {"ready": True})
    idle.set()
    while line := requests.get():
        idle.clear()
        _answer(answers, _handle(engine, json.loads(line)))
        idle.set()
    engine.close()


def _listen(requests: SimpleQueue[str], idle: threading.Event) -> None:
    """Take requests in; when standard input ends in the midst of one, whoever asked is gone, and so are we."""
    for line in sys.stdin:
        requests.put(line)
    if not idle.is_set():
        os._exit(1)
    requests.put("")


def _answer(stream: TextIO, answer: dict[str, object]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


def _handle(engine: Engine, request: dict[str, Any]) -> dict[str, object]:
    started = time.perf_counter()
    batches: Batches = []
    try:
        if request["do"] == "run":
            engine.run(request["statements"], request["settings"])
        elif request["do"] == "start":
            engine.start(request["statements"], request["settings"])
        else:
            batches = engine.stop()
    except Exception:  # noqa: BLE001 - the other process must hear of everything
        return {"error": traceback.format_exc()}
    return {"seconds": time.perf_counter() - started, "batches": batches}
