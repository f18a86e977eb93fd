"""Playing case files: the entry point for tests, for `headwater test` and for users."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from headwater.broker import Broker
from headwater.errors import HeadwaterError
from headwater.testing.case import Case
from headwater.testing.engine import LocalEngine
from headwater.testing.kafka import Kafka
from headwater.testing.parse import read_case
from headwater.testing.process import WorkerEngine
from headwater.testing.replay import CaseFailure, Edit, MakeEngine, Replay
from headwater.testing.replay_modes import ReplayMode, replay_modes_of
from headwater.testing.spark import spark_of_tests

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CaseRunner", "Report", "run_case", "run_cases"]


class CaseRunner:
    """A broker, a Spark and Kafka clients, each started when first needed and shared by all cases that are played.

    Without `bootstrap_servers` the broker is an embedded one that ends with the runner. With `isolated`, jobs run in a
    process of their own, which `restart kill` and the kills of that replay end with SIGKILL; that is slow.
    """

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        spark: SparkSession | None = None,
        *,
        isolated: bool = False,
        start_spark: Callable[[], SparkSession] = spark_of_tests,
    ) -> None:
        self._servers = bootstrap_servers
        self._start_spark = start_spark
        self._spark = spark
        self._own_spark = spark is None
        self._isolated = isolated
        self._broker: Broker | None = None
        self._kafka: Kafka | None = None

    def play(self, case: Case, mode: ReplayMode = ReplayMode.AS_WRITTEN) -> None:
        """Raises CaseFailure if it does not go as written. A case that is marked as not yet working must fail."""
        play = Replay(case, mode, self.kafka, self._engine())
        if not case.not_yet:
            play.run()
            return
        try:
            play.run()
        # A case marked 'notyet' that passes is an error below: the marker has to go with its reason.
        except (CaseFailure, HeadwaterError):
            return
        raise CaseFailure(f"{case.path}: it works now; remove the marker 'notyet {case.not_yet}'.")

    def rewrite(self, case: Case) -> bool:
        """Play it as written and put what came into the file; False if nothing differs."""
        play = Replay(case, ReplayMode.AS_WRITTEN, self.kafka, self._engine(), rewriting=True)
        play.run()
        if play.edits:
            Path(case.path).write_text(_edited(case.text, play.edits), encoding="utf-8")
        return bool(play.edits)

    def kafka(self) -> Kafka:
        if self._kafka is None:
            if self._servers is None:
                directory = Path(tempfile.mkdtemp(prefix="headwater-broker-"))
                self._broker = Broker.start(directory, port=0, die_with_parent=True)
                self._servers = self._broker.bootstrap_servers
            self._kafka = Kafka(self._servers)
        return self._kafka

    def spark(self) -> SparkSession:
        if self._spark is None:
            self._spark = self._start_spark()
        return self._spark

    def close(self) -> None:
        if self._kafka is not None:
            self._kafka.close()
        if self._broker is not None:
            self._broker.stop()
        if self._own_spark and self._spark is not None:
            self._spark.stop()

    def _engine(self) -> MakeEngine:
        if self._isolated:
            return WorkerEngine
        return lambda checkpoint, variables, settings: LocalEngine(self.spark, checkpoint, variables, settings)

    def __enter__(self) -> CaseRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@dataclass(frozen=True)
class Report:
    """What came of one case, in one replay mode: 'passed', 'failed', 'rewritten' or 'not yet'."""

    path: str
    mode: ReplayMode
    verdict: str
    text: str = ""


def run_case(path: Path | str, bootstrap_servers: str | None = None, spark: SparkSession | None = None) -> None:
    """Play a case file in all its replay modes. Raises CaseFailure, or SqlError if the file itself is wrong."""
    case = read_case(path)
    with CaseRunner(bootstrap_servers, spark) as runner:
        for mode in replay_modes_of(case):
            runner.play(case, mode)


def run_cases(
    paths: Iterable[Path | str],
    bootstrap_servers: str | None = None,
    *,
    rewrite: bool = False,
    isolated: bool = False,
    report: Callable[[Report], None] = lambda _: None,
    start_spark: Callable[[], SparkSession] = spark_of_tests,
) -> Sequence[Report]:
    """Play many files; directories stand for the case files below them. `report` hears of each result as it comes."""
    reports: list[Report] = []
    with CaseRunner(bootstrap_servers, isolated=isolated, start_spark=start_spark) as runner:
        for path in _files(paths):
            for result in _results(runner, path, rewrite=rewrite):
                reports.append(result)
                report(result)
    return reports


def _files(paths: Iterable[Path | str]) -> list[Path]:
    return [file for path in map(Path, paths) for file in (sorted(path.rglob("*.case")) if path.is_dir() else [path])]


def _results(runner: CaseRunner, path: Path, *, rewrite: bool) -> Iterable[Report]:
    try:
        case = read_case(path)
        if rewrite and runner.rewrite(case):
            yield Report(str(path), ReplayMode.AS_WRITTEN, "rewritten")
            case = read_case(path)
    except (CaseFailure, HeadwaterError, OSError) as error:
        yield Report(str(path), ReplayMode.AS_WRITTEN, "failed", str(error))
        return
    for mode in replay_modes_of(case):
        try:
            runner.play(case, mode)
            yield Report(str(path), mode, "not yet" if case.not_yet else "passed", case.not_yet)
        except (CaseFailure, HeadwaterError) as error:
            yield Report(str(path), mode, "failed", str(error))


def _edited(text: str, edits: Sequence[Edit]) -> str:
    """The text with blocks replaced, from the last to the first so that line numbers stay true."""
    lines = text.splitlines()
    for block, replacement in sorted(edits, key=lambda edit: edit[0].first, reverse=True):
        lines[block.first - 1 : block.last - 1] = replacement
    return "\n".join(lines) + "\n"
