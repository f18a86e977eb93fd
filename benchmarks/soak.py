"""Three jobs under steady load, for long, with faults: does anything grow, and are the results right? `make soak`.

1. Start the embedded broker, and the jobs in a process of their own.
2. Send rows at a steady rate. Every few seconds, look at all processes and directories.
3. Early and once more in the second half, stop the broker and start it again, and kill a Python worker: what a fault
   leaves behind each time is growth, what it leaves behind once is not.
4. Stop the load and wait until everything is read; stop the jobs.
5. Compare all results with a recount of what was sent; write SOAK.md and soak.svg. The exit code is 1 if they differ.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outputs import create_topic, read_outcome
from soak_load import RATE, SCRIPT, SOURCES, TABLES, TOPICS, Load
from soak_report import LOCAL_DIRECTORY, Soak, verdict, write_soak
from soak_samples import take_sample, worker_processes

from headwater.broker import Broker
from headwater.errors import HeadwaterError

SAMPLE_SECONDS = 5.0
START_SECONDS = 180.0
DRAIN_SECONDS = 300.0
PAGE_MINUTES = 30.0  # a shorter run is a trial, and SOAK.md stays as it is
COLLECTIONS = 12  # full garbage collections of Spark's JVM, evenly over the run
BROKER_RESTARTS = (0.1, 0.6)  # of the run: both pairs of faults lie before the thirds that are compared have ended
WORKER_KILLS = (0.15, 0.65)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that everything started here is stopped then, too
    directory = Path(tempfile.mkdtemp(prefix="headwater-soak-"))
    try:
        soak = Run(directory, options.minutes).run()
        print(verdict(soak))
        if options.minutes >= PAGE_MINUTES or options.write:
            print(f"Written: {write_soak(soak)}")
        if options.samples:
            options.samples.write_text(json.dumps(asdict(soak)), encoding="utf-8")
        shutil.rmtree(directory, ignore_errors=True)
        return 1 if any(soak.differences.values()) else 0
    except (HeadwaterError, RuntimeError) as error:
        print(f"{error}\nLogs and checkpoints: {directory}", file=sys.stderr)
        return 1
    except (KeyboardInterrupt, SystemExit):
        shutil.rmtree(directory, ignore_errors=True)
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Three jobs under steady load with faults: growth, and results.")
    parser.add_argument("--minutes", type=float, default=30, help="how long rows are sent (default: 30)")
    parser.add_argument("--write", action="store_true", help="write SOAK.md also after less than half an hour")
    parser.add_argument("--samples", type=Path, metavar="FILE", help="write all samples there, as JSON")
    return parser


class Jobs:
    """The process of the jobs, and what it tells."""

    def __init__(self, directory: Path, servers: str, collection_seconds: float) -> None:
        (directory / "soak.sql").write_text(SCRIPT, encoding="utf-8")
        self.checkpoint, self.local = directory / "checkpoint", directory / "spark"
        self.local.mkdir()
        self.last: dict[str, dict[str, Any]] = {}
        self.lines: list[dict[str, Any]] = []
        self._log = directory / "jobs.log"
        program = Path(__file__).with_name("soak_jobs.py")
        given = map(str, (directory / "soak.sql", self.checkpoint, self.local, servers, collection_seconds))
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, str(program), *given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def await_all(self, condition: Callable[[dict[str, Any]], bool], seconds: float, what: str) -> None:
        """Until the condition holds for the last report of all three jobs."""
        deadline = time.monotonic() + seconds
        while len(self.last) < len(TABLES) or not all(map(condition, list(self.last.values()))):
            self.check()
            if time.monotonic() > deadline:
                raise RuntimeError(f"After {seconds:.0f} s {what}: {self.last}")
            time.sleep(0.1)

    def check(self) -> None:
        """Raises if a job has failed, or the process has ended."""
        failed = next((line for line in list(self.last.values()) if line["status"] == "failed"), None)
        if failed is not None:
            raise RuntimeError(f"Job '{failed['job']}' failed:\n{failed['error']}")
        if self._process.poll() is not None:
            code = self._process.returncode
            raise RuntimeError(
                f"The process of the jobs has ended with code {code}:\n{self._log.read_text(errors='replace')[-4000:]}"
            )

    def close(self) -> None:
        """End the jobs in order, else by force."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join(10)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for text in self._process.stdout:
            line = json.loads(text)
            self.lines.append(line)
            if "job" in line:
                self.last[line["job"]] = line


class Run:
    """One soak. Times are minutes since the load has begun."""

    def __init__(self, directory: Path, minutes: float) -> None:
        self._directory = directory
        self._soak = Soak(minutes, RATE)
        self._began = 0.0

    def run(self) -> Soak:
        broker = Broker.start(self._directory / "broker", port=0, die_with_parent=True)  # 1
        servers = broker.bootstrap_servers
        for topic in TOPICS:
            create_topic(servers, topic)
        jobs = Jobs(self._directory, servers, self._soak.minutes * 60 / COLLECTIONS)
        try:
            jobs.await_all(lambda job: job["status"] == "running", START_SECONDS, "not all jobs run")
            load = Load(servers)
            self._began = time.time()
            load.start()
            self._watch(jobs)  # 2, 3
            load.finish()  # 4
            self._drain(jobs, load)
        finally:
            jobs.close()
        self._collect(jobs)
        self._soak.differences = {name: self._differences(servers, name, load) for name in TABLES}  # 5
        Broker.find(self._directory / "broker").stop()  # type: ignore[union-attr]
        return self._soak

    def _watch(self, jobs: Jobs) -> None:
        def kill_worker() -> None:
            os.kill(worker_processes(jobs.pid)[0], signal.SIGKILL)

        restarts = [(self._soak.minutes * part, "broker restarted", self._restart_broker) for part in BROKER_RESTARTS]
        kills = [(self._soak.minutes * part, "worker killed", kill_worker) for part in WORKER_KILLS]
        faults = sorted(restarts + kills, key=lambda fault: fault[0])
        directories = {"the checkpoint": jobs.checkpoint, LOCAL_DIRECTORY: jobs.local}
        while self._minutes() < self._soak.minutes:
            jobs.check()
            broker = Broker.find(self._directory / "broker")
            if broker is not None:
                self._soak.samples.append(take_sample(self._minutes(), jobs.pid, broker.pid, directories))
            if faults and self._minutes() >= faults[0][0]:
                _, label, cause = faults.pop(0)
                self._soak.events.append((self._minutes(), label))
                print(f"{self._minutes():6.1f} min  {label}", flush=True)
                cause()
            time.sleep(SAMPLE_SECONDS)

    def _restart_broker(self) -> None:
        broker = Broker.find(self._directory / "broker")
        assert broker is not None, "it was started at the beginning"
        broker.stop()
        Broker.start(self._directory / "broker", broker.port, die_with_parent=True)

    def _drain(self, jobs: Jobs, load: Load) -> None:
        sent = self._soak.sent = dict(load.sent)
        jobs.await_all(
            lambda job: job["read"] >= sent[SOURCES[job["job"]]], DRAIN_SECONDS, f"not everything is read of {sent}"
        )

    def _collect(self, jobs: Jobs) -> None:
        """What the jobs told under load: the time of each batch, and the memory of Spark's JVM."""
        seen = dict.fromkeys(TABLES, 0)
        for line in jobs.lines:
            at = (line["time"] - self._began) / 60
            if not 0 <= at <= self._soak.minutes:
                continue
            if "heap" in line:
                self._soak.heap.append((at, line["heap"]))
                self._soak.non_heap.append((at, line["non_heap"]))
            elif "live" in line:
                self._soak.live.append((at, line["live"]))
            elif line["batches"] > seen[line["job"]]:
                seen[line["job"]] = line["batches"]
                self._soak.batches.setdefault(line["job"], []).append((at, line["seconds"]))

    def _differences(self, servers: str, name: str, load: Load) -> int:
        """How many rows of a result are not what was expected."""
        found, right = read_outcome(servers, name, TABLES[name]).table, load.expected()[name]
        return sum(found.get(key) != right.get(key) for key in found.keys() | right.keys())

    def _minutes(self) -> float:
        return (time.time() - self._began) / 60


if __name__ == "__main__":
    sys.exit(main())
