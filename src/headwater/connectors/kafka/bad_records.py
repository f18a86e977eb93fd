"""'scan.bad-records' = 'skip' or 'dead-letter': messages that cannot be read are left out, counted and perhaps kept.

Reading counts them on the way. Only if there are any, the batch's messages are looked at again for the bad ones, which
are written, before the batch is committed: after a crash they may be written twice, and none is lost.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Observation
from pyspark.sql import functions as F

from headwater.catalog.tables import Table
from headwater.connectors.kafka.client import writer_options
from headwater.connectors.kafka.decode import PROBLEM, Watch, bad_messages

__all__ = ["BadRecords"]

_HEADERS = {
    "headwater.topic": "topic",
    "headwater.partition": "CAST(partition AS STRING)",
    "headwater.offset": "CAST(offset AS STRING)",
    "headwater.error.class": "'BadRecordError'",
    "headwater.error": PROBLEM,
}


class BadRecords:
    """The bad messages of one source."""

    def __init__(self, table: Table) -> None:
        self._table = table
        self._topic = table.options.string("scan.dead-letter.topic")
        self._seen: dict[tuple[str, ...], list[Observation]] = {}
        self.tolerated = table.options.string("scan.bad-records") != "fail"

    @property
    def topics(self) -> list[str]:
        """Where they are written."""
        return [self._topic] if self._topic else []

    def watching(self, columns: Sequence[str]) -> Watch:
        """Counts those that are bad for these columns, in a batch that begins, perhaps again."""
        observations = self._seen[tuple(columns)] = []

        def watch(messages: DataFrame, bad: str) -> DataFrame:
            seen = Observation()
            observations.append(seen)
            return messages.observe(seen, F.expr(f"count_if({bad})").alias("bad"))

        return watch

    def count(self) -> int | None:
        """How many there were in the batch. None if that is not known: Spark left out a whole count, or the table was
        read for several sets of columns, which may have found the same message."""
        found = [_value(seen) for observations in self._seen.values() for seen in observations]
        if None in found or (any(found) and len(self._seen) > 1):
            return None
        return sum(n for n in found if n is not None)

    def recount(self, messages: DataFrame, columns: Sequence[str]) -> int:
        """How many of the messages are bad for any of the columns."""
        return bad_messages(messages, self._table, columns).count()

    def keep(self, messages: DataFrame, columns: Sequence[str]) -> None:
        """Write the bad ones among the messages, which have their headers, as they are."""
        facts = {**_HEADERS, "headwater.table": f"'{self._table.name}'"}
        added = ", ".join(f"named_struct('key', '{k}', 'value', CAST({sql} AS BINARY))" for k, sql in facts.items())
        headers = f"concat(coalesce(headers, array()), array({added})) AS headers"
        bad = bad_messages(messages, self._table, columns).selectExpr("key", "value", headers)
        options = writer_options(self._table.options.family("properties."))
        bad.write.format("kafka").options(**options).option("topic", self._topic).mode("append").save()


def _value(seen: Observation) -> int | None:
    """Spark's own way to ask waits forever if nothing was counted; this one does not wait."""
    found = seen._jo.getOrEmpty()  # type: ignore[union-attr]
    return None if found.isEmpty() else int(found.apply("bad"))
