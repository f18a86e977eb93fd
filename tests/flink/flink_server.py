"""Flink's process, run by the Python of Flink's own venv: one cluster in it, one TableEnvironment per file of scripts.

One JSON object per line, answered by one:

    {"do": "open", "statements": [...], "settings": {}}    a fresh environment with these tables
    {"do": "run", "statements": [...]}    each statement in turn; INSERTs to their end, the rows of the last SELECT
                                          → {"types": [...], "inserts_only": true, "changes": [["+I", "1"], ...]}

What Flink refuses or fails at is answered with {"failed": its message}.
"""

from __future__ import annotations

import datetime as dt
import json
import os
import sys
from typing import Any

from flink_values import shown
from py4j.java_collections import JavaArray, JavaMap
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyflink.java_gateway import get_gateway  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, ExplainDetail, TableEnvironment  # type: ignore[import-not-found]

SETTINGS = {
    "parallelism.default": "1",
    "table.local-time-zone": "UTC",
    "restart-strategy.type": "none",
    "execution.target": "remote",
}


class Flink:
    """A cluster, and jobs sent to it over its REST port, as to any session cluster."""

    def __init__(self) -> None:
        self._jvm = get_gateway().jvm
        runtime = self._jvm.org.apache.flink.runtime.minicluster
        builder = runtime.MiniClusterConfiguration.Builder()
        built = builder.setNumTaskManagers(1).setNumSlotsPerTaskManager(2).withRandomPorts().build()
        self._cluster: Any = runtime.MiniCluster(built)
        self._cluster.start()
        self._tables: Any = None

    def open(self, statements: list[str], settings: dict[str, str]) -> dict[str, object]:
        address = self._cluster.getRestAddress().get()
        place = {"rest.address": address.getHost(), "rest.port": str(address.getPort())}
        self._tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for key, value in {**SETTINGS, **place, **settings}.items():
            self._tables.get_config().set(key, value)
        return self.run(statements)

    def run(self, statements: list[str]) -> dict[str, object]:
        answer: dict[str, object] = {}
        for statement in statements:
            result = self._tables.execute_sql(statement)
            if statement.lstrip().upper().startswith(("SELECT", "WITH", "(")):
                answer = {"inserts_only": self._inserts_only(statement), **_rows(result)}
            elif (job := result.get_job_client()) is not None:
                ended = self._cluster.requestJobResult(job.get_job_id()._j_job_id).get()
                ended.toJobExecutionResult(self._jvm.Thread.currentThread().getContextClassLoader())
        return answer

    def _inserts_only(self, query: str) -> bool:
        plan = self._tables.sql_query(query).explain(ExplainDetail.CHANGELOG_MODE)
        physical = plan.partition("== Optimized Physical Plan ==")[2].strip()
        return "changelogMode=[I]" in physical.partition("\n")[0]


def _rows(result: Any) -> dict[str, object]:
    """Read from Java's rows: PyFlink's own conversion does not know all types."""
    java = result._j_table_result
    types = [kind.getLogicalType().asSerializableString() for kind in java.getResolvedSchema().getColumnDataTypes()]
    changes = []
    rows = java.collect()
    while rows.hasNext():
        row = rows.next()
        changes.append([row.getKind().shortString(), *(shown(_value(row.getField(n))) for n in range(len(types)))])
    return {"types": types, "changes": changes}


def _value(value: Any) -> Any:
    """Java's value as Python's. Those that py4j converts by itself stay as they are."""
    if isinstance(value, JavaArray):
        return [_value(item) for item in value]
    if isinstance(value, JavaMap):
        return {_hashable(_value(entry.getKey())): _value(entry.getValue()) for entry in value.entrySet()}
    if not isinstance(value, JavaObject):
        return value
    name = value.getClass().getName()
    if name == "org.apache.flink.types.Row":
        return tuple(_value(value.getField(n)) for n in range(value.getArity()))
    if name == "java.time.Duration":
        return dt.timedelta(microseconds=value.toNanos() // 1000)
    return _time(name.removeprefix("java.time."), value.toString())


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _time(name: str, text: str) -> Any:
    match name:
        case "LocalDate":
            return dt.date.fromisoformat(text)
        case "LocalTime":
            return dt.time.fromisoformat(text)
        case "LocalDateTime" | "Instant":
            return dt.datetime.fromisoformat(text)
    return text


def _reason(error: Exception) -> str:
    """The innermost message: the outer ones only say that something failed. Without the stack and what the parser would
    have liked."""
    text = str(error)
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        while cause.getCause() is not None:
            cause = cause.getCause()
        text = str(cause.toString())
    return text.partition("\n\tat ")[0].partition("\nWas expecting")[0]


def _answered(flink: Flink, request: dict[str, Any]) -> dict[str, object]:
    try:
        return {"open": flink.open, "run": flink.run}[request.pop("do")](**request)
    except Exception as error:  # noqa: BLE001 - the other process must hear of everything
        return {"failed": _reason(error)}


def main() -> None:
    # Whatever the JVM prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    flink = Flink()
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(_answered(flink, json.loads(line))), file=answers, flush=True)


if __name__ == "__main__":
    main()
