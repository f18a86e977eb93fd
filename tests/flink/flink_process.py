"""Flink as a test sees it: a process, started here and asked over a pipe."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from answers import Answer, final_rows

HERE = Path(__file__).parent
sys.path.append(str(HERE.parents[1] / "benchmarks"))  # which is no package

from engines import EngineProcess  # noqa: E402
from flink_home import flink_environment, flink_python  # noqa: E402

__all__ = ["FlinkProcess", "flink_packages", "start_flink"]


class FlinkProcess(EngineProcess):
    def open(self, tables: Sequence[str], settings: Mapping[str, str] | None = None) -> None:
        """Forget all tables, and create these."""
        answer = self._ask({"do": "open", "statements": list(tables), "settings": dict(settings or {})})
        assert "failed" not in answer, answer["failed"]

    def answer(self, statements: Sequence[str]) -> Answer:
        got = self._ask({"do": "run", "statements": list(statements)})
        if not got or "failed" in got:
            return Answer(failed=got.get("failed", ""))
        return Answer(tuple(got["types"]), got["inserts_only"], final_rows(got["changes"]))

    def close(self) -> None:
        super().close()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def cells(self, query: str) -> list[tuple[str, str]] | str:
        """Value and type of each column of a query with one row, or why it failed."""
        got = self._ask({"do": "run", "statements": [query]})
        return str(got["failed"]) if "failed" in got else list(zip(got["changes"][0][1:], got["types"], strict=True))


def flink_packages() -> str:
    """The directory with PyFlink, for the end of a `sys.path`: the packages beside it have other versions than ours."""
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.run([flink_python(), "-c", ask], check=True, capture_output=True, text=True).stdout.strip()


def start_flink(directory: Path) -> FlinkProcess:
    python = flink_python()
    quick = "-Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true"
    environment = {"JVM_ARGS": quick, "FLINK_LOG_DIR": str(directory)}
    environment |= flink_environment(python, directory / "flink-lib")
    return FlinkProcess("flink", [str(python), str(HERE / "flink_server.py")], directory, environment)
