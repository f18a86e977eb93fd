"""What to do about messages that a job still needed and the broker no longer has: 'scan.on-data-loss'."""

from __future__ import annotations

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext
from headwater.connectors.kafka.admin import KafkaAdmin, Offsets, TopicPartition
from headwater.errors import DataLossError

__all__ = ["Losses"]


class Losses:
    """Compares where a job stands with what its topics have. A loss stops the job, or with 'continue' is warned of."""

    def __init__(self, table: Table, admin: KafkaAdmin, context: IoContext) -> None:
        self._table = table
        self._admin = admin
        self._context = context
        self.skipped = table.options.string("scan.on-data-loss") == "continue"

    def settled(self, here: Offsets, latest: Offsets, ends_early: bool) -> Offsets:
        """Where to go on. What is not in `latest` is deleted, and left out; what is only in `latest` is new, and begins
        at its beginning. With `ends_early`, `latest` is the end of decided transactions, not of the log."""
        for tp in here.keys() - latest.keys():
            self._lost(tp, f"the job stands at offset {here[tp]}, and the topic has been deleted", "without it")
        waiting = [tp for tp, end in latest.items() if here.get(tp, -1) < end]
        earliest = self._admin.earliest(waiting) if waiting else {}
        start = {tp: here.get(tp, earliest.get(tp, 0)) for tp in latest}
        for tp, first in earliest.items():
            if start[tp] < first:
                seen = f"the job stands at offset {start[tp]}, and the topic now begins at {first}"
                self._lost(tp, seen, f"at {first}")
                start[tp] = first
        return {**start, **self._beginnings_of_new_topics(start, latest, ends_early)}

    def _beginnings_of_new_topics(self, here: Offsets, latest: Offsets, ends_early: bool) -> Offsets:
        """A topic that ends before the job's offset has been deleted and made anew."""
        beyond = [tp for tp, end in latest.items() if here[tp] > end]
        ends = self._admin.latest(beyond) if beyond and ends_early else latest
        beyond = [tp for tp in beyond if here[tp] > ends[tp]]
        begins = self._admin.earliest(beyond) if beyond else {}
        for tp in beyond:
            seen = f"the job stands at offset {here[tp]}, and the topic ends at {ends[tp]}"
            self._lost(tp, seen, f"at {begins[tp]}")
        return begins

    def _lost(self, tp: TopicPartition, seen: str, where: str) -> None:
        if self.skipped:
            text = f"Table '{self._table.name}' lost messages of topic '{tp[0]}', partition {tp[1]}: {seen}."
            self._context.warn(f"{text} It goes on {where}, as 'scan.on-data-loss' says.")
            return
        raise DataLossError(
            f"Table '{self._table.name}' needs messages that topic '{tp[0]}' no longer has.",
            detail=f"Partition {tp[1]}: {seen}.",
            hint="Retention removed them, or the topic was deleted. Set 'scan.on-data-loss' = 'continue' to go on with "
            "what is left, or start with a new checkpoint.",
        )
