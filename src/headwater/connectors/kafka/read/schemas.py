"""The schemas of a table whose formats have theirs in a registry: which are known, and which its messages name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.connectors.kafka.read.fetch import Fetch
from headwater.connectors.kafka.read.splits import splits_of
from headwater.connectors.kafka.table.layout import registered_sides
from headwater.connectors.runtime import Split
from headwater.formats.base import RegisteredFormat

__all__ = ["HeaderReader", "TableSchemas"]

MOST_HEADERS = 10_000


class TableSchemas:
    """`revision` counts up when decoders that are made now know other schemas than before."""

    def __init__(self, table: Table) -> None:
        self._sides = registered_sides(table)
        self._known: list[tuple[object, ...]] = []
        self._revision = 0

    @property
    def payloads(self) -> list[str]:
        """Those that begin with the id of a schema."""
        return [payload for payload, _, _ in self._sides]

    @property
    def revision(self) -> int:
        known = [format_.known(side.options) for _, format_, side in self._sides]
        if known != self._known:
            self._known = known
            self._revision += 1
        return self._revision

    def look(self) -> None:
        """Look for new versions, now and then."""
        for _, format_, side in self._sides:
            format_.before_reading(side.options)

    def learn(self, headers: DataFrame) -> None:
        """Ask for all schemas that are named in these columns, one for each of the `payloads`."""
        for payload, format_, side in self._sides:
            # Only distinct headers reach the driver, and few: a batch has millions of messages and a handful of
            # schemas.
            found = headers.where(f"{payload} IS NOT NULL").select(payload).distinct().limit(MOST_HEADERS).collect()
            format_.learn(side.options, [bytes(row[0]) for row in found])


@dataclass(frozen=True)
class HeaderReader:
    """In a worker: the beginnings of the messages of some splits, those that differ."""

    fetch: Fetch
    payloads: tuple[str, ...]

    def __call__(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema([(payload, pa.binary()) for payload in self.payloads])
        return self.headers(self.fetch(splits_of(splits), schema))

    def headers(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for payload in self.payloads:
                beginnings = pc.binary_slice(batch.column(payload), 0, RegisteredFormat.HEADER).unique()
                yield pa.RecordBatch.from_pydict(
                    {p: beginnings if p == payload else pa.nulls(len(beginnings), pa.binary()) for p in self.payloads}
                )
