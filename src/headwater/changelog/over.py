"""OVER: for each row, aggregates over rows of its partition before it (and in `OverTableOperator` also after it).

`OverTableOperator`, for any order and rows that are updated: all rows of a partition are kept, and results that a batch
changes are updated. `over_time` is for inserts in the order of time.

Rows with equal order are put in the order of their columns, and by processing time in that of their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headwater.changelog.accumulate import Accumulator, Kept
from headwater.changelog.columns import Bools, Ints, constant, flat
from headwater.changelog.counted_rows import COUNT, CountedRows, distinct, net_rows
from headwater.changelog.emission import Emission, Emitting, Weighted
from headwater.changelog.frames import Frame, Places, framed, shifted
from headwater.changelog.identity import take_table
from headwater.changelog.kinds import HASH
from headwater.changelog.operator import State, Time
from headwater.changelog.ordering import SortKey, order_rows, sort_keys
from headwater.changelog.pairing import key_ids
from headwater.changelog.results import AggregateResult
from headwater.state.table import TableSpec

__all__ = ["ROWS", "FrameCall", "OverOperator", "OverTableOperator", "argument_values"]

ROWS = "__hw_rows"
# Half of what int64 holds: the distance of a frame can be added to it.
_BEYOND = 1 << 62
_SUMS = {"COUNT", "SUM", "AVG"}
WHOLE = Frame("range")
"""From the beginning of the partition to the current row and its peers."""


@dataclass(frozen=True)
class FrameCall:
    """COUNT, SUM, AVG, MIN, MAX, FIRST_VALUE or LAST_VALUE of the column `argument` (none: COUNT(*)) over the frame;
    LAG or LEAD of it by `offset` rows, or the column `default` where there is no such row; ROW_NUMBER, RANK or
    DENSE_RANK."""

    name: str
    type: pa.DataType
    function: str
    argument: str = ""
    frame: Frame = WHOLE
    offset: int = 1
    default: str = ""

    @property
    def unbounded(self) -> bool:
        return self.function not in {"LAG", "LEAD"} and (self.frame.preceding is None or not self.accumulates)

    @property
    def accumulates(self) -> bool:
        return self.function in {*_SUMS, "MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"}

    def accumulators(self, columns: pa.Schema) -> tuple[Accumulator, ...]:
        """What the result is made of: a value, and for sums the number of values."""
        if not self.accumulates:
            return ()
        count = Accumulator(f"{self.name}_count", pa.int64(), "sum")
        if self.function == "COUNT":
            return (count,)
        kind = columns.field(self.argument).type
        if self.function in {"MIN", "MAX"}:
            return (Accumulator(f"{self.name}_value", kind, self.function.lower()),)
        if self.function not in _SUMS:
            return (Accumulator(f"{self.name}_value", kind, self.function.removesuffix("_VALUE").lower()),)
        return Accumulator(f"{self.name}_value", _sum_type(kind), "sum"), count

    def result(self) -> AggregateResult:
        value = f"{self.name}_count" if self.function == "COUNT" else f"{self.name}_value"
        return AggregateResult(self.name, self.type, self.function, value, f"{self.name}_count")


@dataclass(frozen=True)
class OverOperator:
    """`columns` are those of the rows; `calls` are added to them. `HASH` has the hash of the partition in its upper
    half, and one of all columns in the lower."""

    columns: pa.Schema
    partition: tuple[str, ...]
    calls: tuple[FrameCall, ...]

    @property
    def results(self) -> pa.Schema:
        return pa.schema([*self.columns, *((call.name, call.type) for call in self.calls)])

    def called(self, call: FrameCall, rows: pa.Table, places: Places, carried: dict[str, Kept]) -> pa.Array:
        """The results of a call for sorted rows. `carried` are accumulators of what was before them, by row."""
        if call.function in {"LAG", "LEAD"}:
            return self._shifted(call, rows, places)
        if not call.accumulates:
            return self._numbered(call, places, carried).cast(call.type)
        first, last = places.frame(call.frame)
        accumulators = call.accumulators(self.columns)
        found = {a.name: framed(a, argument_values(a, call, rows), first, last) for a in accumulators}
        if carried:
            found = {a.name: a.add(carried[a.name], found[a.name]) for a in accumulators}
        return call.result().compute(found, rows.num_rows)

    def _shifted(self, call: FrameCall, rows: pa.Table, places: Places) -> pa.Array:
        by = call.offset if call.function == "LAG" else -call.offset
        values, inside = shifted(flat(rows, call.argument), places, by)
        if call.default:
            default = flat(rows, call.default).cast(values.type)
            chosen = np.where(inside, np.arange(len(inside)), np.arange(len(inside)) + len(inside))
            values = pa.concat_arrays([values, default]).take(pa.array(chosen))
        return values.cast(call.type)

    def _numbered(self, call: FrameCall, places: Places, carried: dict[str, Kept]) -> pa.Array:
        before = carried[ROWS].fill_null(0).to_numpy() if carried else 0
        numbers = np.arange(len(places.partitions), dtype=np.int64) - places.starts + 1 + before
        if call.function == "ROW_NUMBER":
            return pa.array(numbers)
        peers = places.peers
        if call.function == "RANK":
            return pa.array(numbers[np.maximum.accumulate(np.where(peers, np.arange(len(peers)), 0))])
        dense = np.cumsum(peers)
        return pa.array(dense - dense[places.starts] + 1)


def argument_values(accumulator: Accumulator, call: FrameCall, rows: pa.Table) -> pa.Array:
    """What is accumulated of each row."""
    if not accumulator.name.endswith("_count"):
        return flat(rows, call.argument)
    if not call.argument:
        return constant(1, rows.num_rows, pa.int64())
    return flat(rows, call.argument).is_valid().cast(pa.int64())


@dataclass(frozen=True)
class OverTableOperator(OverOperator, Emitting):
    """Over rows that may be updated, in any order. `updates` is a key of the result: see `Emission`. A `range` frame
    has one sort key, a number or a time."""

    order: tuple[SortKey, ...] = ()
    updates: tuple[str, ...] = ()
    before: bool = True

    @property
    def inputs(self) -> tuple[pa.Schema, ...]:
        return (pa.schema([(HASH, pa.int64()), *self.columns]),)

    @property
    def tables(self) -> tuple[TableSpec, ...]:
        return (self._rows.spec,)

    @property
    def _rows(self) -> CountedRows:
        return CountedRows("rows", self.columns)

    @property
    def _emission(self) -> Emission:
        return Emission(self.results, self.updates, self.before)

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """1. Read the partitions that change. 2. Apply the changes. 3. Emit the difference of the results."""
        net = net_rows(inputs[0], self.columns)
        delta = self._rows.delta(state["rows"], net)
        changed = distinct(net.hashes[delta.change != 0] >> 32)
        # Whole partitions, because any frame may contain a row that changes. Results that are the same before and after
        # cancel out.
        before = self._rows.scan_keys(state["rows"], changed)  # 1
        self._rows.write(state["rows"], delta)  # 2
        after = self._rows.scan_keys(state["rows"], changed)
        return self._emission.changes([self._computed(before, -1), self._computed(after, 1)])  # 3

    def _computed(self, stored: pa.Table, sign: int) -> Weighted:
        counts = flat(stored, COUNT).to_numpy()
        # Equal rows are stored once, with their number; a frame counts each of them.
        rows = take_table(stored, np.repeat(np.arange(stored.num_rows), counts))
        prefixes = flat(rows, HASH).to_numpy() >> 32
        rows = rows.select(self.columns.names)
        (ids,), _ = key_ids([prefixes], [[flat(rows, name) for name in self.partition]])
        ordered = order_rows(rows, ids, self.order)
        rows, ids = take_table(rows, ordered.order), ids[ordered.order]
        places = Places(ids, self._orders(rows, ordered.peer_starts))
        for call in self.calls:
            rows = rows.append_column(call.name, self.called(call, rows, places, {}))
        return Weighted(rows, np.full(rows.num_rows, sign, dtype=np.int64))

    def _orders(self, rows: pa.Table, peer_starts: Bools) -> Ints:
        """The order of each row as a number: of one sort key its value, because ranges are measured in it."""
        if len(self.order) == 1 and any(c.frame.kind == "range" and c.frame.preceding is not None for c in self.calls):
            (key,) = self.order
            column = flat(rows, key.column)
            (*_, numbers) = sort_keys(column, key)
            nothing = -_BEYOND if key.nulls_first else _BEYOND  # a NULL has no distance to anything else
            return np.where(column.is_null().to_numpy(zero_copy_only=False), nothing, numbers)
        return np.cumsum(peer_starts).astype(np.int64)


def _sum_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_decimal(kind):
        return pa.decimal128(38, kind.scale)
    return pa.float64() if pa.types.is_floating(kind) else pa.int64()
