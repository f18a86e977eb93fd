"""`datagen` at work: every value is a function of the row's number and of when the job first began, so a batch that is
computed again has the same rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.types import LongType, StructType

from headwater.catalog.tables import Table
from headwater.changelog.conditions import Condition
from headwater.connectors.datagen_rules import BITS
from headwater.connectors.runtime import (
    PLACE,
    LocalAggregation,
    Position,
    RowOrder,
    RuntimeContext,
    ScanPlan,
    Split,
    UnchangingSource,
)
from headwater.errors import ValidationError
from headwater.sql.spark_text import quote_name, string_literal
from headwater.sql.types import SqlType

__all__ = ["DatagenSource"]

ROW = "id"
_AT_ONCE = 50_000


_EPOCH = "epoch"


class DatagenSource(UnchangingSource):
    """The position is the number of rows made, and the millisecond at which the job was first started."""

    def __init__(self, table: Table, context: RuntimeContext) -> None:
        self._table = table
        self._rate = table.options.integer("rows-per-second") or 1
        self._anchor: tuple[float, int] | None = None
        self._types = {c.name: c.type for c in table.physical_columns}
        # All rows are one partition. Its watermark is a matter of their order, so that one task makes them.
        self.tasks = 1 if table.watermark is not None else table.options.integer("scan.parallelism") or 1

    def start(self) -> Position:
        return {"rows": 0, _EPOCH: int(time.time() * 1000)}

    def bound(self, start: Position) -> Position | None:
        ends = [self._sequence_length(name) for name in self._types if self._option(name, "kind") == "sequence"]
        number = self._table.options.integer("number-of-rows")
        if number is not None:
            ends.append(number)
        return {**start, "rows": min(ends)} if ends else None

    def available(self, position: Position, bound: Position | None, limit: int) -> tuple[Position, Position]:
        now = time.monotonic()
        if self._anchor is None:
            self._anchor = (now, position["rows"])
        # Measured from where this run began: a job that was stopped for a day must not make up a day of rows.
        due = self._anchor[1] + int((now - self._anchor[0]) * self._rate) + 1
        end = min(due, position["rows"] + limit, bound["rows"] if bound is not None else due)
        return position, {**position, "rows": max(end, position["rows"])}

    def splits(self, start: Position, end: Position) -> list[list[Split]]:
        """[first row, end, epoch] for each task."""
        size = -(-(end["rows"] - start["rows"]) // self.tasks)
        cuts = [min(start["rows"] + task * size, end["rows"]) for task in range(self.tasks + 1)]
        return [[[first, last, end[_EPOCH]]] if last > first else [] for first, last in pairwise(cuts)]

    def partitions(self, position: Position) -> Sequence[str]:
        return ["rows"]

    def scan(
        self,
        columns: Sequence[str],
        local: LocalAggregation | None = None,
        order: RowOrder = "any",
        fields: Mapping[str, Sequence[str]] | None = None,
        where: Condition | None = None,
    ) -> ScanPlan | None:
        if local is not None:
            return None
        items = [f"{self._value(c)} AS {quote_name(c)}" for c in columns]
        items += [f"'rows' AS {PLACE}"] if order == "partition" else []
        schema = StructType().add(ROW, LongType()).add(_EPOCH, LongType())
        return ScanPlan(schema, lambda rows: rows.selectExpr(*items), _numbers)

    def _option(self, column: str, setting: str) -> Any:
        values = self._table.options.values
        return values.get(f"fields.{column}.{setting}", "random" if setting == "kind" else None)

    def _sequence_length(self, column: str) -> int:
        return int(self._option(column, "end")) - int(self._option(column, "start")) + 1

    def _value(self, column: str) -> str:
        kind = self._types[column]
        if self._option(column, "kind") == "sequence":
            return f"CAST({ROW} + {int(self._option(column, 'start'))} AS {kind.spark()})"
        maker = _Maker(self, column)
        value = f"CAST({maker.of(kind, column)} AS {kind.spark()})"
        nulls = float(self._option(column, "null-rate") or 0)
        return f"IF({maker.fraction('null')} < {nulls}D, NULL, {value})" if nulls else value


class _Maker:
    """Random values of one column, as SQL over the row's number."""

    def __init__(self, source: DatagenSource, column: str) -> None:
        self._source = source
        self._column = column

    def bits(self, salt: str) -> str:
        # A hash of the row's number and not rand(): a repeated batch gives the very same rows, whichever task makes
        # them.
        return f"xxhash64({ROW}, {string_literal(f'{self._column}/{salt}')}, {_EPOCH})"

    def fraction(self, salt: str) -> str:
        """Between 0 and 1, with 53 random bits."""
        return f"(shiftrightunsigned({self.bits(salt)}, 11) / 9007199254740992D)"

    def of(self, kind: SqlType, salt: str) -> str:
        if kind.is_integer:
            return self._integer(kind, salt)
        if kind.name in {"FLOAT", "DOUBLE", "DECIMAL"}:
            return self._fractional(kind, salt)
        if kind.is_string or kind.is_binary:
            return self._text(kind, salt)
        if kind.name == "BOOLEAN":
            return f"({self.bits(salt)} & 1L) = 1L"
        if kind.name in {"TIMESTAMP", "TIMESTAMP_LTZ", "DATE"}:
            return self._timestamp(kind, salt)
        if kind.name == "TIME":
            return f"CAST({self.fraction(salt)} * 86400000 AS INT)"
        return self._nested(kind, salt)

    def _integer(self, kind: SqlType, salt: str) -> str:
        half = 1 << (BITS[kind.name] - 1)
        low = int(self._source._option(self._column, "min") or -half)
        high = int(self._source._option(self._column, "max") or half - 1)
        # The size of such a range does not fit into a BIGINT literal: all bits are used instead.
        if high - low >= 1 << 63:
            return self.bits(salt)
        return f"pmod({self.bits(salt)}, {high - low + 1}L) + {low}L"

    def _fractional(self, kind: SqlType, salt: str) -> str:
        digits = (kind.precision or 10) - (kind.scale or 0) if kind.name == "DECIMAL" else 9
        low = float(self._source._option(self._column, "min") or 0)
        high = float(self._source._option(self._column, "max") or 10.0**digits - 1)
        return f"{low}D + {self.fraction(salt)} * {high - low}D"

    def _length(self) -> int:
        return int(self._source._option(self._column, "length") or 100)

    def _text(self, kind: SqlType, salt: str) -> str:
        length = kind.length if kind.name in {"CHAR", "BINARY"} and kind.length else self._length()
        pieces = [f"sha2(CAST({self.bits(f'{salt}/{i}')} AS STRING), 512)" for i in range(-(-length // 128))]
        text = f"substring(concat({', '.join(pieces)}), 1, {length})"
        if self._source._option(self._column, "var-len"):
            text = f"substring({text}, 1, CAST(1 + {self.fraction(f'{salt}/len')} * {length - 1} AS INT))"
        return f"encode({text}, 'UTF-8')" if kind.is_binary else text

    def _timestamp(self, kind: SqlType, salt: str) -> str:
        made = f"{_EPOCH} + {ROW} * 1000 DIV {self._source._rate}"
        past = self._source._option(self._column, "max-past")
        if past is not None:
            made = f"{made} - CAST({self.fraction(salt)} * {int(past.total_seconds() * 1000)} AS BIGINT)"
        instant = f"timestamp_millis({made})"
        return instant if kind.name != "DATE" else f"CAST({instant} AS DATE)"

    def _nested(self, kind: SqlType, salt: str) -> str:
        length = min(self._length(), 1000) if self._source._option(self._column, "length") else 3
        if kind.name == "ROW":
            made = ((f, self.of(f.type, f"{salt}.{f.name}")) for f in kind.fields)
            fields = (f"{string_literal(f.name)}, CAST({value} AS {f.type.spark()})" for f, value in made)
            return f"named_struct({', '.join(fields)})"
        assert kind.element is not None
        elements = [f"CAST({self.of(kind.element, f'{salt}[{i}]')} AS {kind.element.spark()})" for i in range(length)]
        if kind.name == "ARRAY":
            return f"array({', '.join(elements)})"
        if kind.name == "MAP":
            assert kind.key is not None
            keys = [f"CAST({self.of(kind.key, f'{salt}<{i}>')} AS {kind.key.spark()})" for i in range(length)]
            return f"map_from_arrays(array_distinct(array({keys[0]})), array({elements[0]}))"
        if kind.name == "MULTISET":
            return f"map({elements[0]}, 1)"
        raise ValidationError(f"'datagen' cannot generate values of type {kind} for column '{self._column}'.")


def _numbers(splits: Sequence[Split]) -> Iterator[pa.RecordBatch]:
    """In a worker: the numbers of the rows to make."""
    for first, end, epoch in splits:
        for begin in range(first, end, _AT_ONCE):
            rows = np.arange(begin, min(begin + _AT_ONCE, end))
            yield pa.RecordBatch.from_pydict(
                {ROW: pa.array(rows), _EPOCH: pa.repeat(pa.scalar(epoch, pa.int64()), len(rows))}
            )
