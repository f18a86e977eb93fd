"""Tables read by a KafkaSource of their own, batch by batch, without a job around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kafka_lab import Lab
from pyspark.sql import DataFrame

from headwater.changelog.conditions import Condition
from headwater.connectors.kafka.read.reader import KafkaReader
from headwater.connectors.kafka.read.source import KafkaSource
from headwater.connectors.runtime import LocalAggregation, RuntimeContext, ScanPlan, Split
from headwater.execution.spark import job_session
from headwater.options.session import CHUNK_ROWS

TASKS = 2

Splits = list[list[Split]]


class Reading:
    """One table, from its start to where its topics end now."""

    def __init__(self, lab: Lab, columns: str, *, chunk_rows: int = CHUNK_ROWS, **options: str) -> None:
        session = lab.session()
        session.sql(lab.ddl("t", columns, **{"scan__startup__mode": "earliest-offset", **options}))
        self.table = session.catalog.table("t")
        self.spark = job_session(lab.spark, TASKS, "")
        self.warnings: list[str] = []
        context = RuntimeContext(self.spark, "reading", TASKS, self.warnings, chunk_rows=chunk_rows)
        self.source = KafkaSource(self.table, context)
        self.names = [c.name for c in self.table.columns]

    def splits(self) -> Splits:
        start = self.source.start()
        return self.source.splits(*self.source.available(start, self.source.bound(start), 1 << 62))

    def frame(self, splits: Splits, plan: ScanPlan) -> DataFrame:
        if plan.reader is None:
            assert plan.messages is not None
            return plan.decode(plan.messages(splits))
        reader = plan.reader

        def read(batches: Any) -> Any:
            for batch in batches:
                for task in batch.column(0).to_pylist():
                    yield from reader(splits[task])

        return plan.decode(self.spark.range(0, len(splits), 1, len(splits)).mapInArrow(read, plan.schema))

    def rows(
        self, columns: Sequence[str] = (), *, in_columns: bool = True, where: Condition | None = None
    ) -> list[str]:
        """All rows, in no order, but for those that readers leave out because `where` is not TRUE. Unless `in_columns`,
        Spark's expressions alone read all of them."""
        plan = self.source.scan(list(columns) or self.names, where=where)
        assert plan is not None
        if not in_columns:
            plan = refusing(plan)
        return sorted(map(str, self.frame(self.splits(), plan).collect()))

    def groups(self, local: LocalAggregation) -> list[Any] | None:
        plan = self.source.scan(self.names, local)
        return None if plan is None else self.frame(self.splits(), plan).collect()


def refusing(plan: ScanPlan) -> ScanPlan:
    """The same plan without column readers: every message is left to the expressions."""
    assert isinstance(plan.reader, KafkaReader)
    decoding = plan.reader.decoding
    payloads = tuple(replace(one, reader=None) for one in decoding.payloads)
    return replace(plan, reader=replace(plan.reader, decoding=replace(decoding, payloads=payloads)))
