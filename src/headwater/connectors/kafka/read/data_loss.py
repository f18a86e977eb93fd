"""What to do about messages that a job still needed and the broker no longer has: 'scan.on-data-loss'.

Retention removes messages, and topics are deleted, and perhaps created again under their name. Offsets of the old topic
mean nothing in the new one, whichever they are: the ids of topics tell them apart, where the client knows such.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from headwater.catalog.tables import Table
from headwater.connectors.kafka.clients.admin import Admin, Isolation, Look, Offsets, TopicPartition
from headwater.connectors.kafka.read.progress import OnDataLoss
from headwater.connectors.runtime import RuntimeContext
from headwater.errors import DataLossError

__all__ = ["DataLossPolicy"]

CHECK_SECONDS = 10.0


class DataLossPolicy:
    """Compares where a job stands with what its topics have. A loss stops the job, or with 'continue' is warned of."""

    def __init__(self, table: Table, admin: Admin, context: RuntimeContext) -> None:
        self._table = table
        self._admin = admin
        self._context = context
        self._checked_at = float("-inf")
        # As of the last commit, and as of the last look. Until a commit has the new position of a topic that was made
        # again, every look must find it so: there may be several before a batch runs.
        self.topic_ids: dict[str, str] = {}
        self.seen_ids: dict[str, str] = {}
        # Positions of the job in partitions that were missing in a look. A topic that is back with the id it had was
        # never deleted: brokers that have just started or are cut off from the others may not name it.
        self.missing: Offsets = {}
        self.policy: OnDataLoss = "continue" if table.options.string("scan.on-data-loss") == "continue" else "fail"
        self.continues = self.policy == "continue"

    @property
    def asks_earliest(self) -> bool:
        """Whether the beginnings of partitions are needed now. In between, whoever fetches messages finds them gone;
        but one that goes on without them must be warned of."""
        return self.continues or time.monotonic() - self._checked_at >= CHECK_SECONDS

    def checked(self, here: Offsets, look: Look, isolation: Isolation) -> Offsets:
        """Where to go on. What is not in `look` is deleted, and left out; what is only there is new, and begins at its
        beginning, unless it was only missing for a while. With 'read_committed', `look.latest` is the end of decided
        transactions, not of the log."""
        for tp in here.keys() - look.latest.keys():
            self._lost(tp, f"the job stands at offset {here[tp]}, and the topic has been deleted", "without it")
            self.missing[tp] = here[tp]
        if look.earliest:
            self._checked_at = time.monotonic()
        recreated = self._recreated(look)
        here = {**self._back(look, recreated), **here}
        beyond = self._ends_before(here, look.latest, isolation)
        doubtful = [tp for tp in look.latest if tp not in here or tp in beyond or tp[0] in recreated]
        asked = [tp for tp in doubtful if tp not in look.earliest]
        earliest = {**look.earliest, **(self._admin.earliest(asked) if asked else {})}
        start = {tp: here.get(tp, earliest.get(tp, 0)) for tp in look.latest}
        for tp, offset in here.items() & start.items():
            again = "has been deleted and created again" if tp[0] in recreated else ""
            seen = again if again and tp not in beyond else _missing(offset, earliest.get(tp, 0), beyond.get(tp))
            if seen:
                start[tp] = earliest[tp]
                self._lost(tp, f"the job stands at offset {offset}, and the topic {seen}", f"at {start[tp]}")
        self.seen_ids = dict(look.topic_ids)
        self.topic_ids = {**look.topic_ids, **self.topic_ids}
        return start

    def committed(self, here: Offsets) -> None:
        """What was seen at the last look belongs to positions that are committed."""
        self.topic_ids |= self.seen_ids
        self.missing = {tp: offset for tp, offset in self.missing.items() if tp not in here}

    def check_topics(self, known: Mapping[str, str], missing: Offsets) -> None:
        """The topics of an earlier run must still be the same ones. Those that are gone are for `checked`."""
        self.topic_ids, self.missing = dict(known), dict(missing)
        there = self._admin.topic_ids(list(known)) if known else {}
        for topic in sorted(known):
            if not self.continues and there.get(topic, known[topic]) != known[topic]:
                raise self._failure(topic, "The topic has been deleted and created again since the last commit.")

    def check_cluster(self, known: str, now: str) -> None:
        if known and now and known != now and not self.continues:
            raise DataLossError(
                f"Table '{self._table.name}' was read from another Kafka cluster.",
                detail=f"The checkpoint knows cluster '{known}', and the brokers belong to '{now}'.",
                hint="Correct 'properties.bootstrap.servers', or start with a new checkpoint. With "
                "'scan.on-data-loss' = 'continue', topics of the same names are read from their beginning.",
            )

    def _recreated(self, look: Look) -> set[str]:
        known = self.topic_ids
        return {topic for topic, id_ in look.topic_ids.items() if known.get(topic, id_) != id_}

    def _back(self, look: Look, recreated: set[str]) -> Offsets:
        """The positions of the job in partitions that are there again, of topics with the ids they had."""
        same = (look.topic_ids.keys() & self.topic_ids.keys()) - recreated
        back = {tp: offset for tp, offset in self.missing.items() if tp in look.latest and tp[0] in same}
        for (topic, partition), offset in back.items():
            where = f"topic '{topic}', partition {partition}, is there again"
            self._context.warn(f"Table '{self._table.name}': {where}, and read from offset {offset} on.")
        return back

    def _ends_before(self, here: Offsets, latest: Offsets, isolation: Isolation) -> Offsets:
        """The ends of partitions that end before the job's offset: their topics have been deleted and made again."""
        beyond = [tp for tp, end in latest.items() if here.get(tp, 0) > end]
        # The last stable offset may lie before what an earlier run has read without waiting for transactions.
        ends = self._admin.latest(beyond) if beyond and isolation == "read_committed" else latest
        return {tp: ends[tp] for tp in beyond if here[tp] > ends[tp]}

    def _lost(self, tp: TopicPartition, seen: str, where: str) -> None:
        if not self.continues:
            raise self._failure(tp[0], f"Partition {tp[1]}: {seen}.")
        text = f"Table '{self._table.name}' lost messages of topic '{tp[0]}', partition {tp[1]}: {seen}."
        self._context.warn(f"{text} It continues {where}, as 'scan.on-data-loss' says.")

    def _failure(self, topic: str, detail: str) -> DataLossError:
        return DataLossError(
            f"Table '{self._table.name}' needs messages that topic '{topic}' no longer has.",
            detail=detail,
            hint="Retention removed them, or the topic was deleted. Set 'scan.on-data-loss' = 'continue' to go on with "
            "what is left, or start with a new checkpoint.",
        )


def _missing(offset: int, first: int, end: int | None) -> str:
    """Why an offset is none of the topic's any more; '' if it is."""
    if end is not None:
        return f"ends at {end}"
    return f"now begins at {first}" if offset < first else ""
