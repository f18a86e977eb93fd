"""What an operator is: a step from state, batches of changes and time to new state and changes.

An operator is a frozen value that can be sent to another process. It knows its inputs, its state tables and its output
columns, and nothing of Spark, files, Kafka or clocks. The result of feeding it a history may not depend on how the
history is cut into batches, nor on the order in which rows of different keys come.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import pyarrow as pa

from headwater.state.table import StateTable, TableSpec

__all__ = ["FINAL", "ORIGIN", "OWN_WATERMARK", "DropsLateRows", "LateRows", "Operator", "State", "Time"]

State = Mapping[str, StateTable]
LateRows = tuple[pa.Table, ...]

FINAL = (1 << 63) - 1
"""The watermark at the end of bounded input: every window closes."""

OWN_WATERMARK = "__hw_watermark"
"""A column of rows that have an event time: the watermark of the partition that a row came from, before the row. The
same as `sql.typed.OWN_WATERMARK`."""

ORIGIN = "__hw_origin"
"""A column of rows whose messages are kept if they come too late: the number of the source, then topic, partition and
offset, separated by colons. Operators take no notice of it; it stands beside the rows that they call late."""


@dataclass(frozen=True)
class Time:
    """The time of a batch, in microseconds since 1970 (UTC). A watermark says that no row up to it is to come any more;
    None if there is none yet. With several inputs it is the least of theirs. It never goes back. Processing time goes
    back if the clock is set back between two starts of a job; the number of the batch does not."""

    watermark_before: int | None = None
    watermark: int | None = None
    processing: int = 0
    batch: int = 0

    @property
    def moved(self) -> bool:
        return self.watermark != self.watermark_before


class Operator(Protocol):
    """`inputs` are the columns a step needs of each input: `HASH`, whose upper half is the hash of the key by which the
    input is partitioned, and the rest. An input may have the column `KIND`; without it all rows are inserts.

    An operator that is `timed` must run in every state partition when the watermark moved, also without rows.
    """

    @property
    def inputs(self) -> tuple[pa.Schema, ...]: ...

    @property
    def tables(self) -> tuple[TableSpec, ...]: ...

    @property
    def output(self) -> pa.Schema: ...

    @property
    def timed(self) -> bool: ...

    def step(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> pa.Table:
        """Read and write `state` (one table per spec, by name); answer with `output` columns. Retractions come before
        what is added."""


@runtime_checkable
class DropsLateRows(Protocol):
    """An operator that drops rows that are too late, and can say which."""

    def step_with_late(self, state: State, inputs: tuple[pa.Table, ...], time: Time) -> tuple[pa.Table, LateRows]:
        """As `step`; and of each input the rows that came too late, with all of its columns."""
