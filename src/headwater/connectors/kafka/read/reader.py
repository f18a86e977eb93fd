"""What a task does with its splits: fetch, drop what is superseded, read columns, perhaps pre-aggregate.

Every row that leaves has the columns that were read, or NULL in all of them and its message in the column MESSAGE, an
array of one (an array that is NULL costs nothing but a bit on its way to the JVM, a struct the space of its fields).
Spark's expressions read such a message. A row that was read has its message, too, if its conversion may still fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import Bools
from headwater.changelog.conditions import Condition
from headwater.changelog.kinds import DELETE, INSERT, KIND_TYPE
from headwater.connectors.kafka.read.columns import ColumnDecoder, PayloadColumns, expanded
from headwater.connectors.kafka.read.fetch import Fetch
from headwater.connectors.kafka.read.local_aggregation import LocalGroups
from headwater.connectors.kafka.read.splits import splits_of
from headwater.connectors.kafka.read.superseded import newest_messages, newest_rows, partition_runs
from headwater.connectors.runtime import Split
from headwater.connectors.workers import Batches
from headwater.options.session import CHUNK_ROWS

__all__ = ["MESSAGE", "READ", "WHOLE", "KafkaReader", "MessageDecoding", "RowFilter"]

MESSAGE = "__hw_message"
READ = "read"
"""A field of MESSAGE: whether the columns were read all the same."""

WHOLE = {"__hw_whole_key": "key", "__hw_whole_value": "value"}
"""The payloads of a message as they came, where a row may have a part of them."""


@dataclass(frozen=True)
class RowFilter:
    """Rows that were read stay if the condition is TRUE. `names` are the columns they were read as. A row with a
    MESSAGE stays, whatever it has: it may be refused, or bad, and whoever decodes it tests it."""

    condition: Condition
    names: Mapping[str, str]

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = {column: batch.column(name) for column, name in self.names.items()}
        # NULL is not TRUE.
        passed = pc.fill_null(self.condition.evaluate(columns, batch.num_rows), False)
        kept = pc.or_(passed, pc.is_valid(batch.column(MESSAGE)))
        return batch if kept.true_count == batch.num_rows else batch.filter(kept)


@dataclass(frozen=True)
class MessageDecoding:
    """Messages → rows.

    messages    the columns of messages that are needed, as Spark's Kafka source names them
    present     payloads without which a message gives no row
    payloads    how payloads are read
    fallible    whether the conversion of what was read may fail
    carried     columns of messages that every row has
    kind        whether rows have KIND: a null value deletes
    superseding None: messages are independent of each other. Otherwise of the messages of a key in a partition only the
                last one counts: 'any', or the last one that is sure to give a row ('sure')
    output      all columns of the rows
    local       pre-aggregation of rows that were read
    doubtful    whether only rows with a MESSAGE are wanted: those that may be bad
    where       which rows are wanted of those that were read, if not all
    """

    messages: pa.Schema
    present: tuple[str, ...]
    payloads: tuple[PayloadColumns, ...]
    fallible: bool
    carried: tuple[str, ...]
    kind: bool
    superseding: str | None
    output: pa.Schema
    local: LocalGroups | None = None
    doubtful: bool = False
    where: RowFilter | None = None

    def __call__(self, batches: Batches, chunk_rows: int = CHUNK_ROWS) -> Iterator[pa.RecordBatch]:
        """Rows of messages that come about `chunk_rows` at a time."""
        decoder = ColumnDecoder(self.payloads, chunk_rows)
        rows = (expanded(self._complete(batch), self.payloads) for batch in batches)
        # Dropping superseded messages needs all messages of a partition's run at once; otherwise they stream through.
        if self.superseding is None:
            decoded = (self._decoded(decoder, batch) for batch in rows if batch.num_rows)
        else:
            decoded = (one for run in partition_runs(rows) for one in self._current(decoder, run, chunk_rows))
        if self.doubtful:
            decoded = (batch.filter(pc.is_valid(batch.column(MESSAGE))) for batch in decoded)
        if self.where is not None:
            decoded = (kept for kept in map(self.where.kept, decoded) if kept.num_rows)
        return self.local.reduced(decoded) if self.local is not None else decoded

    def _complete(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The messages that have the payloads they need."""
        for payload in self.present:
            # Counting NULLs is free in Arrow; filtering copies all columns.
            if batch.column(payload).null_count:
                batch = batch.filter(pc.is_valid(batch.column(payload)))
        for name in set(self.carried) & WHOLE.keys():
            batch = batch.append_column(name, batch.column(WHOLE[name]))
        return batch

    def _current(self, decoder: ColumnDecoder, run: list[pa.RecordBatch], chunk_rows: int) -> Iterator[pa.RecordBatch]:
        """The messages of one partition without those that later ones of their key supersede."""
        if self.superseding == "any":
            # Every message of a key gives a row or a delete, so earlier ones need not even be decoded.
            yield from (self._decoded(decoder, batch) for batch in newest_messages(run, chunk_rows))
            return
        # A later message may turn out bad and give no row, and then the one before counts: decode first, and let only
        # those supersede that are sure to give a row.
        found = [self._decoded(decoder, batch) for batch in run]
        sure = np.concatenate([pc.is_null(batch.column(MESSAGE)).to_numpy(zero_copy_only=False) for batch in found])
        yield from newest_rows(run, found, sure)

    def _decoded(self, decoder: ColumnDecoder, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns, refused = decoder(batch)
        columns += [batch.column(name) for name in self.carried]
        if self.kind:
            deleted = batch.column("value").is_null()
            columns.append(pc.if_else(deleted, pa.scalar(DELETE, KIND_TYPE), pa.scalar(INSERT, KIND_TYPE)))
        columns.append(self._messages(batch, refused))
        return pa.RecordBatch.from_arrays(columns, schema=self._rows)

    def _messages(self, batch: pa.RecordBatch, refused: Bools) -> pa.Array:
        kind = self._rows.field(MESSAGE).type
        # Where the conversion of a value may still fail behind the reader, the message goes along: the error has to
        # name its offset and payload.
        shown: Bools = np.ones_like(refused) if self.fallible else refused
        if not shown.any():
            return pa.nulls(batch.num_rows, kind)
        rest = batch if shown.all() else batch.filter(pa.array(shown))
        fields = [
            pa.array(~refused[shown]) if field.name == READ else rest.column(field.name) for field in kind.value_type
        ]
        structs = pa.StructArray.from_arrays(fields, fields=list(kind.value_type))
        # A list of one struct or NULL, built from offsets: a NULL struct would still take the space of its fields.
        offsets = np.zeros(len(shown) + 1, np.int32)
        np.cumsum(shown, out=offsets[1:])
        return pa.ListArray.from_arrays(pa.array(offsets), structs, type=kind, mask=pa.array(~shown))

    @cached_property
    def _rows(self) -> pa.Schema:
        """Of rows before they are pre-aggregated."""
        return self.output if self.local is None else self.local.rows


@dataclass(frozen=True)
class KafkaReader:
    """For one task: its splits → columns of `decoding.output`."""

    fetch: Fetch
    decoding: MessageDecoding

    def __call__(self, splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
        messages = self.fetch(splits_of(splits), self.decoding.messages)
        return self.decoding(messages, self.fetch.chunk_rows)
