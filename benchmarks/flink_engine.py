"""Flink's process, run by the Python of Flink's own venv: one JVM with a cluster that lives as long as this process.

python flink_engine.py DIRECTORY        DIRECTORY takes the checkpoints
"""

from __future__ import annotations

import sys
from typing import Any

from engine_protocol import Batches, serve
from pyflink.java_gateway import get_gateway  # type: ignore[import-not-found]
from pyflink.table import EnvironmentSettings, TableEnvironment  # type: ignore[import-not-found]

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "1 s",
    "table.exec.mini-batch.size": "50000",
    "state.backend.type": "hashmap",
    "execution.checkpointing.interval": "5 s",
    "execution.checkpointing.storage": "filesystem",
    # A bounded job would otherwise wait for one more checkpoint after its last result.
    "execution.checkpointing.checkpoints-after-tasks-finish": "false",
}


class Flink:
    """A mini cluster with two slots, and jobs sent to it over its REST port, as to any session cluster."""

    def __init__(self, checkpoints: str) -> None:
        runtime = get_gateway().jvm.org.apache.flink.runtime.minicluster
        builder = runtime.MiniClusterConfiguration.Builder()
        built = builder.setNumTaskManagers(1).setNumSlotsPerTaskManager(2).withRandomPorts().build()
        self._cluster: Any = runtime.MiniCluster(built)
        self._cluster.start()
        address = self._cluster.getRestAddress().get()
        self._settings = {
            **SETTINGS,
            "execution.target": "remote",
            "rest.address": address.getHost(),
            "rest.port": str(address.getPort()),
            "execution.checkpointing.dir": f"file://{checkpoints}",
        }
        self._job: Any = None

    def run(self, statements: list[str], settings: dict[str, str]) -> None:
        job = self._submit(statements, settings)
        # The client would poll for the end with growing pauses; the cluster itself knows at once.
        result = self._cluster.requestJobResult(job.get_job_id()._j_job_id).get()
        result.toJobExecutionResult(get_gateway().jvm.Thread.currentThread().getContextClassLoader())

    def start(self, statements: list[str], settings: dict[str, str]) -> None:
        self._job = self._submit(statements, settings)

    def stop(self) -> Batches:
        self._job.cancel().result()
        self._cluster.requestJobResult(self._job.get_job_id()._j_job_id).get()
        return []

    def close(self) -> None:
        self._cluster.close()

    def _submit(self, statements: list[str], settings: dict[str, str]) -> Any:
        tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        for key, value in {**self._settings, **settings}.items():
            tables.get_config().set(key, value)
        results = [tables.execute_sql(statement) for statement in statements]
        return results[-1].get_job_client()


if __name__ == "__main__":
    serve(lambda: Flink(sys.argv[1]))
