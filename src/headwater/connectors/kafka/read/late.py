"""Messages whose rows came too late, read once more to be kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from headwater.connectors.kafka.read.fetch import Fetch
from headwater.connectors.kafka.read.splits import KafkaSplit, offsets_of, splits_of
from headwater.connectors.kafka.table.metadata import MESSAGE_WITH_HEADERS
from headwater.connectors.runtime import Split

__all__ = ["LateMessages"]

_KEPT = ("key", "value", "topic", "partition", "offset", "headers")


@dataclass(frozen=True)
class LateMessages:
    """Those with these `offsets`, by the names that partitions have in positions."""

    offsets: Mapping[str, frozenset[int]]

    @property
    def splits(self) -> list[Split]:
        """What must be read to have them all."""
        ends = {place: (min(offsets), max(offsets) + 1) for place, offsets in self.offsets.items()}
        firsts = offsets_of({place: first for place, (first, _) in ends.items()})
        stops = offsets_of({place: stop for place, (_, stop) in ends.items()})
        return [list(KafkaSplit(*place, first, stops[place])) for place, first in firsts.items()]

    @property
    def schema(self) -> StructType:
        message = cast("StructType", StructType.fromDDL(MESSAGE_WITH_HEADERS))
        return StructType([field for field in message if field.name in _KEPT])

    def reader(self, fetch: Fetch) -> Callable[[Sequence[Split]], Iterator[pa.RecordBatch]]:
        schema = to_arrow_schema(self.schema)
        return lambda splits: self(fetch(splits_of(splits), schema))

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Of all messages those."""
        for batch in batches:
            places = zip(*(batch.column(name).to_pylist() for name in ("topic", "partition", "offset")), strict=True)
            late = [offset in self.offsets.get(f"{topic}:{partition}", ()) for topic, partition, offset in places]
            yield batch.filter(pa.array(late, pa.bool_()))
