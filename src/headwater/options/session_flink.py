"""Flink's own session options, as far as scripts that come from there carry them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.errors import ValidationError

__all__ = ["DIFFERS", "FLINKS", "MEANINGLESS", "Differs"]


@dataclass(frozen=True)
class Differs:
    """An option that changes results. Only `allowed`, which is what happens anyway, can be set."""

    allowed: tuple[str, ...]
    what_happens: str

    def check(self, key: str, text: str) -> None:
        if text.strip().lower() not in self.allowed:
            raise ValidationError(
                f"'{key}' = '{text}' is not supported yet.",
                detail=self.what_happens,
                hint=f"Leave it out, or set it to '{self.allowed[0]}'.",
            )


DIFFERS: Mapping[str, Differs] = {
    "table.sql-dialect": Differs(("default",), "Scripts are Flink SQL."),
    "execution.checkpointing.mode": Differs(
        ("exactly_once", "exactly-once"), "State is always exact; 'sink.delivery-guarantee' says what a sink does."
    ),
    "table.exec.legacy-cast-behaviour": Differs(("disabled",), "A CAST that cannot be done stops the job."),
}

_ENGINE = "it belongs to Flink's engine, and this job runs on Spark."
_CHECKPOINTS = "every batch ends with a checkpoint of its own."

# Keys, and prefixes that end in a dot, with the reason why they change nothing.
MEANINGLESS: Mapping[str, str] = {
    "table.exec.mini-batch.": "every batch already is one; see 'headwater.batch.max-rows'.",
    "table.exec.resource.": "use 'parallelism.default'.",
    "table.exec.async-lookup.": _ENGINE,
    "table.exec.emit.early-fire.delay": "results are emitted with every batch; see 'headwater.batch.interval'.",
    "table.exec.emit.late-fire.delay": "results are emitted with every batch; see 'headwater.batch.interval'.",
    "table.exec.sink.keyed-shuffle": "rows of one key always go the same way.",
    "table.exec.sink.require-on-conflict": "a conflict is resolved as 'table.exec.sink.upsert-materialize' says.",
    "table.exec.operator-chaining.enabled": _ENGINE,
    "table.exec.simplify-operator-name-enabled": _ENGINE,
    "table.exec.uid.": _ENGINE,
    "table.exec.disabled-operators": _ENGINE,
    "table.exec.shuffle-mode": _ENGINE,
    "table.exec.spill-compression.": _ENGINE,
    "table.exec.sort.": _ENGINE,
    "table.exec.window-agg.": _ENGINE,
    "table.exec.deduplicate.": _ENGINE,
    "table.exec.rank.": _ENGINE,
    "table.optimizer.": "plans are made by Headwater's planner.",
    "table.planner": "plans are made by Headwater's planner.",
    "table.generated-code.": _ENGINE,
    "table.display.": "it belongs to Flink's SQL client.",
    "table.plan.": _ENGINE,
    "sql-client.": "it belongs to Flink's SQL client.",
    "sql-gateway.": "it belongs to Flink's SQL gateway.",
    "execution.checkpointing.interval": _CHECKPOINTS,
    "execution.checkpointing.": _CHECKPOINTS,
    "execution.savepoint.": "a job continues from its checkpoint by itself.",
    "execution.attached": _ENGINE,
    "execution.target": "`--master` says where a job runs.",
    "execution.buffer-timeout": "see 'headwater.batch.interval'.",
    "execution.buffer-timeout.": "see 'headwater.batch.interval'.",
    "execution.batch.": _ENGINE,
    "execution.sorted-inputs.": _ENGINE,
    "state.backend": "state lives in files of the checkpoint directory.",
    "state.backend.": "state lives in files of the checkpoint directory.",
    "state.savepoints.dir": "a job continues from its checkpoint by itself.",
    "state.checkpoint-storage": "state lives in files of the checkpoint directory.",
    "state.checkpoints.num-retained": "a checkpoint keeps what a restart needs.",
    "restart-strategy": "a failed job is started again from its checkpoint by whoever started it.",
    "restart-strategy.": "a failed job is started again from its checkpoint by whoever started it.",
    "pipeline.auto-watermark-interval": "every row moves the watermark of its partition.",
    "pipeline.operator-chaining": _ENGINE,
    "pipeline.operator-chaining.": _ENGINE,
    "pipeline.object-reuse": _ENGINE,
    "pipeline.max-parallelism": "see 'headwater.state.partitions'.",
    "pipeline.generic-types": _ENGINE,
    "pipeline.jars": "`--conf spark.jars=…` adds jars.",
    "pipeline.classpaths": "`--conf spark.jars=…` adds jars.",
    "python.": _ENGINE,
    "taskmanager.": _ENGINE,
    "jobmanager.": _ENGINE,
    "parallelism.max": "see 'headwater.state.partitions'.",
    "rest.": _ENGINE,
    "metrics.": _ENGINE,
    "env.": _ENGINE,
    "heartbeat.": _ENGINE,
    "yarn.": "`--master yarn` runs a job there.",
    "kubernetes.": "`--master k8s://…` runs a job there.",
    "high-availability": _ENGINE,
    "high-availability.": _ENGINE,
    "cluster.": _ENGINE,
}

# Families of keys that are Flink's: what is not listed above has no counterpart here. Other keys are unknown.
FLINKS = (
    *("table.", "execution.", "pipeline.", "state.", "parallelism.", "restart-strategy.", "sql-client.", "client."),
    *("job.", "jobstore.", "task.", "slot.", "slotmanager.", "resourcemanager.", "process.", "blob.", "web."),
    *("historyserver.", "security.", "fs.", "s3.", "classloader.", "akka.", "pekko.", "queryable-state.", "rpc."),
    *("io.", "compiler.", "user.", "zookeeper.", "containerized.", "env.", "local-dir", "deployment.", "traces."),
    *("scheduler-mode", "external-resource", "flink.hadoop.", "s3a.", "gs.", "oss.", "plugin.", "minicluster."),
    *("high-availability", "heartbeat.", "fine-grained.", "cleanup-strategy", "events.", "delegation."),
)
