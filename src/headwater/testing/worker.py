"""`python -m headwater.testing.worker`: a LocalEngine in a process of its own, which may be killed at any moment.

It reads requests from standard input and answers on standard output, one JSON object per line; what the script prints
goes to standard error. It ends with its standard input. `process.WorkerEngine` is the other end.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import IO, TYPE_CHECKING, Any

from headwater.errors import HeadwaterError
from headwater.testing.engine import LocalEngine, StatementFailed
from headwater.testing.faults import Fault

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["main"]


def main() -> None:
    # Answers go by a copy of standard output; everything else that is printed, also by the JVM, goes to standard error.
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    start = json.loads(sys.stdin.readline())
    engine = LocalEngine(_spark(start["conf"]), start["checkpoint"], start["variables"], start["settings"])
    for line in sys.stdin:
        _reply(answers, _answer(engine, json.loads(line)))
    engine.stop()


def _spark(conf: dict[str, str]) -> Callable[[], SparkSession]:
    def start() -> SparkSession:
        from headwater.execution.spark import start_spark

        return start_spark("local[2]", conf)

    return start


def _answer(engine: LocalEngine, request: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"value": _do(engine, request["do"], request)}
    except StatementFailed as failed:
        return {"refused": failed.phase, "error": str(failed.error)}
    except HeadwaterError as error:
        return {"error": str(error)}


def _do(engine: LocalEngine, what: str, request: dict[str, Any]) -> Any:
    match what:
        case "run":
            return engine.run(request["script"], request["name"])
        case "jobs":
            return [asdict(job) for job in engine.jobs()]
        case "pause":
            return engine.pause()
        case "resume":
            return engine.resume()
        case "wake":
            return engine.wake()
        case "crash":
            return engine.crash_next(Fault(request["fault"]))
        case "table":
            return engine.table(request["table"])
        case "stop":
            return engine.stop()
    raise ValueError(f"unknown request {what!r}")


def _reply(answers: IO[str], reply: dict[str, Any]) -> None:
    answers.write(json.dumps(reply) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
