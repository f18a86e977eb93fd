"""Messages that are left out: those that cannot be read, with 'scan.bad-records' = 'skip' or 'dead-letter', and those
whose rows come too late. They are counted and perhaps kept.

Reading and operators count them on the way. Only if there are any, they are read again, in a Spark job of its own,
which writes them before the batch is committed: after a crash they may be written twice, and none is lost.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row

from headwater.catalog.tables import Table
from headwater.connectors.kafka.clients.settings import producer_settings
from headwater.connectors.kafka.clients.spark_options import NOT_FOR_CLIENTS
from headwater.connectors.kafka.read.expressions import PROBLEM, only_topic
from headwater.connectors.kafka.read.jvm import JvmReader
from headwater.connectors.kafka.read.payloads import tolerates_bad_records
from headwater.connectors.kafka.read.reader import WHOLE
from headwater.connectors.kafka.read.scan import TableScan
from headwater.connectors.kafka.write.writer import write_all
from headwater.connectors.runtime import LeftOut
from headwater.sql.spark_text import string_literal

__all__ = ["BadRecords"]

_SHOWN_MESSAGES = 10
_SHOWN_BYTES = 500
_PLACE = ["topic", "partition", "offset"]
_HEADERS = {
    "headwater.topic": "topic",
    "headwater.partition": "CAST(partition AS STRING)",
    "headwater.offset": "CAST(offset AS STRING)",
    "headwater.error": PROBLEM,
}
_LATE = "It came behind the watermark."


class BadRecords:
    """The messages of one source that are left out."""

    def __init__(self, table: Table, leave_out: Callable[[LeftOut], None] = lambda _: None) -> None:
        self._table = table
        self._leave_out = leave_out
        self.topic = table.options.string("scan.dead-letter.topic")
        self.tolerated = tolerates_bad_records(table)

    def divert_bad_records(self, doubtful: DataFrame, scan: TableScan, jvm: JvmReader | None) -> int:
        """How many of the messages are bad; `leave_out` gets some of them. They are written to the dead-letter topic,
        if there is one: by the client of the JVM, if that is the one that reads."""
        kept = [*WHOLE, "topic" if "topic" in doubtful.columns else self._topic, "partition", "offset", "headers"]
        bad = scan.expressions.bad(doubtful, kept)
        whole = [f"{name} AS {payload}" for name, payload in WHOLE.items()]
        letters = bad.selectExpr(*whole, "topic", "partition", "offset", self._headers("BadRecordError"), PROBLEM)
        diverted = self._table.options.string("scan.bad-records") == "dead-letter"
        found = self._written(letters, self.topic if diverted else "", jvm)
        for message in [message for row in found for message in json.loads(row["shown"])][:_SHOWN_MESSAGES]:
            self._leave_out(LeftOut("bad", *message))
        return sum(int(row["bad"]) for row in found)

    def keep_late(self, late: DataFrame, jvm: JvmReader | None) -> None:
        """Write messages whose rows came too late to the dead-letter topic."""
        problem = f"{string_literal(_LATE)} AS {PROBLEM}"
        letters = late.selectExpr("*", problem).selectExpr("key", "value", *_PLACE, self._headers("LateRow"), PROBLEM)
        self._written(letters, self.topic, jvm)

    def _written(self, letters: DataFrame, topic: str, jvm: JvmReader | None) -> list[Row]:
        """How many there are and some of them, per task; they are in the topic, if there is one."""
        if jvm is not None and topic:
            jvm.write(letters.dropDuplicates(_PLACE).select("key", "value", "headers"), topic)
        step = _CountBad(topic, self._client) if jvm is None and topic else _CountBad()
        return letters.mapInArrow(step, "bad BIGINT, shown STRING").collect()

    @property
    def _topic(self) -> str:
        return f"{string_literal(only_topic(self._table) or '')} AS topic"

    @property
    def _client(self) -> Mapping[str, Any]:
        properties = self._table.options.family("properties.")
        return producer_settings({k: v for k, v in properties.items() if k not in NOT_FOR_CLIENTS})

    def _headers(self, error: str) -> str:
        names = {"headwater.error.class": error, "headwater.table": self._table.name}
        facts = {**_HEADERS, **{name: string_literal(value) for name, value in names.items()}}
        added = ", ".join(f"named_struct('key', '{k}', 'value', CAST({sql} AS BINARY))" for k, sql in facts.items())
        return f"concat(coalesce(headers, array()), array({added})) AS headers"


@dataclass(frozen=True)
class _CountBad:
    """In a worker: counts messages, and writes them if there is a topic for it. The rows of a message follow each
    other; the first one tells what is wrong with it."""

    topic: str = ""
    client: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        shown: list[tuple[str, str, str]] = []
        messages = _noticed(_distinct(batches), shown)
        if self.topic:
            letters = (batch.select(["key", "value", "headers"]) for batch in messages)
            count = write_all(self.client, self.topic, letters)
        else:
            count = sum(batch.num_rows for batch in messages)
        deque(batches, maxlen=0)
        yield pa.RecordBatch.from_pydict({"bad": pa.array([count], pa.int64()), "shown": [json.dumps(shown)]})


def _noticed(messages: Iterable[pa.RecordBatch], shown: list[tuple[str, str, str]]) -> Iterator[pa.RecordBatch]:
    """The same, while place, problem and payload of the first few are put into `shown`."""
    for batch in messages:
        for message in batch.slice(0, _SHOWN_MESSAGES - len(shown)).to_pylist():
            place = f"{message['topic']}:{message['partition']} offset {message['offset']}"
            payload = message["value"] if message["value"] is not None else message["key"]
            shown.append((place, message[PROBLEM] or "", _text(payload)))
        yield batch


def _text(payload: bytes | None) -> str:
    """What a person can read of it: text, or bytes in hexadecimal digits."""
    # Cut before it is decoded: a message may have megabytes.
    start = (payload or b"")[:_SHOWN_BYTES]
    cut = payload is not None and len(payload) > _SHOWN_BYTES
    text = start.decode(errors="ignore")  # a character may have been cut at the end
    readable = all(c.isprintable() or c.isspace() for c in text) and len(start) - len(text.encode()) < (4 if cut else 1)
    return (text if readable else start.hex(" ")) + ("…" if cut else "")


def _distinct(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    last: tuple[Any, ...] | None = None
    for batch in batches:
        if batch.num_rows == 0:
            continue
        # A message may give several rows, all of them bad; it is one letter, and counts once.
        places = pa.StructArray.from_arrays([batch.column(n) for n in _PLACE], list("tpo"))
        kept = []
        for place in places.to_pylist():
            here = tuple(place.values())
            kept.append(here != last)
            last = here
        yield batch.filter(pa.array(kept))
