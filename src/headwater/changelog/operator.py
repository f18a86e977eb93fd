"""What an operator is: a step from state and a batch of changes to new state and changes.

An operator is a frozen value that can be sent to another process. It knows its state tables and its output columns,
and nothing of Spark, files or Kafka. The result of feeding it a history may not depend on how the history is cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pyarrow as pa

from headwater.changelog.state import StateTable, TableSpec

__all__ = ["Operator", "State"]

State = Mapping[str, StateTable]


class Operator(Protocol):
    """`step` reads and writes `state` (one table per spec, by name) and answers with `output` columns."""

    @property
    def tables(self) -> tuple[TableSpec, ...]: ...

    @property
    def output(self) -> pa.Schema: ...

    def step(self, state: State, rows: pa.Table) -> pa.Table: ...
