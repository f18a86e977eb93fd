"""Many messages on their way to the decoders: superseded ones are dropped, ordinary ones read by Arrow, in Python.

Worth a trip to Python only for large batches. What comes out of it is the same with and without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema, to_arrow_type
from pyspark.sql.types import BooleanType, DataType, StructType

from headwater.changelog.collapse import keep_last
from headwater.changelog.columns import widen
from headwater.formats.base import ColumnReader
from headwater.runtime.keyed import in_worker

__all__ = ["field_names", "ingest", "is_read"]

ROWS_AT_ONCE = 50_000
BYTES_AT_ONCE = 1 << 28


def is_read(payload: str) -> str:
    """The column that tells whether a payload was read here; if not, the expressions have to do it."""
    return f"__{payload}_is_read"


def field_names(payload: str, reader: ColumnReader) -> list[str]:
    """The columns with what was read."""
    return [f"__{payload}_read_{place}" for place in range(len(reader.types))]


def ingest(messages: DataFrame, readers: Mapping[str, ColumnReader], *, keyed: bool, keeps_payloads: bool) -> DataFrame:
    """`messages`, without superseded ones if they are `keyed`, and with `is_read` and the fields for every reader.
    Unless it `keeps_payloads`, a payload that was read and has no error is NULL."""
    schema = StructType(list(messages.schema.fields))
    reads = []
    for payload, reader in readers.items():
        names, types = field_names(payload, reader), [DataType.fromDDL(t) for t in reader.types]
        drops = not keeps_payloads and reader.error(names) is None
        reads.append(_Read(payload, reader, tuple(map(to_arrow_type, types)), drops))
        schema.add(is_read(payload), BooleanType())
        for name, kind in zip(names, types, strict=True):
            schema.add(name, kind)
    step = _Ingest(tuple(reads), keyed, to_arrow_schema(schema))
    return messages.mapInArrow(in_worker(step), schema)


@dataclass(frozen=True)
class _Read:
    payload: str
    reader: ColumnReader
    types: tuple[pa.DataType, ...]
    drops_payload: bool

    def apply(self, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
        payloads = columns[self.payload]
        count, found = len(payloads), payloads.drop_null()
        read = self.reader.read(found, self.types) if len(found) else [pa.nulls(0, t) for t in self.types]
        done = read is not None
        if read is None:
            read = [pa.nulls(count, t) for t in self.types]
        elif len(found) < count:
            present = payloads.is_valid().to_numpy(zero_copy_only=False)
            read = [_spread(column, present) for column in read]
        payload = pa.nulls(count, payloads.type) if done and self.drops_payload else payloads
        added = dict(zip(field_names(self.payload, self.reader), read, strict=True))
        return {**columns, self.payload: payload, is_read(self.payload): pa.repeat(done, count), **added}


@dataclass(frozen=True)
class _Ingest:
    reads: tuple[_Read, ...]
    keyed: bool
    output: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in self._current(batches) if self.keyed else batches:
            columns = dict(zip(batch.schema.names, batch.columns, strict=True))
            columns = reduce(lambda read, side: side.apply(read), self.reads, columns)
            yield pa.RecordBatch.from_arrays(list(columns.values()), schema=self.output)

    def _current(self, batches: Iterable[pa.RecordBatch]) -> list[pa.RecordBatch]:
        """Of the messages of one key in one partition only the last one counts."""
        received = list(batches)
        if not any(batch.num_rows for batch in received):
            return []
        rows = pa.Table.from_batches(received)
        last = keep_last(
            rows.cast(widen(rows.schema)).combine_chunks(), key="key", partition="partition", offset="offset"
        )
        at_once = max(1, min(ROWS_AT_ONCE, BYTES_AT_ONCE * last.num_rows // last.nbytes))
        chunks = (last.slice(start, at_once) for start in range(0, last.num_rows, at_once))
        return [chunk.cast(rows.schema).combine_chunks().to_batches()[0] for chunk in chunks]


def _spread(values: pa.Array, present: np.ndarray) -> pa.Array:
    """`values` at the places that are `present`, NULL at the others."""
    places = np.cumsum(present) - 1
    return values.take(pa.array(places, mask=~present))
