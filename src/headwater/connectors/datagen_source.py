"""`datagen` at work: every value is a function of the row's number and of when the job first began, so a batch that is
computed again has the same rows."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from pyspark.sql import DataFrame

from headwater.catalog.tables import Table
from headwater.connectors.io import IoContext, Position
from headwater.errors import ValidationError
from headwater.sql.types import SqlType

__all__ = ["DatagenSource"]

ROW = "id"
_STEP = 1_000_000
_LIMITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


class DatagenSource:
    """The position is the number of rows made, and the millisecond at which the job was first started."""

    def __init__(self, table: Table, context: IoContext) -> None:
        self._table = table
        self._context = context
        self._rate = table.options.integer("rows-per-second") or 1
        self._anchor: tuple[float, int] | None = None
        self._types = {c.name: c.type for c in table.physical_columns}

    def start(self) -> Position:
        return {"rows": 0, "epoch": int(time.time() * 1000)}

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
        due = self._anchor[1] + int((now - self._anchor[0]) * self._rate) + 1
        end = min(due, position["rows"] + limit, bound["rows"] if bound is not None else due)
        return position, {**position, "rows": max(end, position["rows"])}

    def read(self, start: Position, end: Position, columns: Sequence[str]) -> DataFrame:
        tasks = self._table.options.integer("scan.parallelism") or 1
        rows = self._context.spark.range(start["rows"], end["rows"], 1, tasks)
        return rows.selectExpr(*(f"{self._value(c, end['epoch'])} AS {_quoted(c)}" for c in columns))

    def learn(self, start: Position, end: Position) -> None:
        return

    def settle(self, start: Position, end: Position, columns: Sequence[str]) -> int:
        return 0

    def keeps_tasks(self, start: Position, end: Position, columns: Sequence[str]) -> bool:
        return False  # there are as many as Spark has cores, unless 'scan.parallelism' says it

    def lag(self, position: Position) -> int:
        return 0

    def done(self, position: Position) -> None:
        pass

    def close(self) -> None:
        pass

    def _option(self, column: str, leaf: str) -> Any:
        values = self._table.options.values
        return values.get(f"fields.{column}.{leaf}", "random" if leaf == "kind" else None)

    def _sequence_length(self, column: str) -> int:
        return int(self._option(column, "end")) - int(self._option(column, "start")) + 1

    def _value(self, column: str, epoch: int) -> str:
        kind = self._types[column]
        if self._option(column, "kind") == "sequence":
            return f"CAST({ROW} + {int(self._option(column, 'start'))} AS {kind.spark()})"
        maker = _Maker(self, column, epoch)
        value = f"CAST({maker.of(kind, column)} AS {kind.spark()})"
        nulls = float(self._option(column, "null-rate") or 0)
        return f"IF({maker.fraction('null')} < {nulls}D, NULL, {value})" if nulls else value


class _Maker:
    """Random values of one column, as SQL over the row's number."""

    def __init__(self, source: DatagenSource, column: str, epoch: int) -> None:
        self._source = source
        self._column = column
        self._epoch = epoch

    def bits(self, salt: str) -> str:
        return f"xxhash64({ROW}, {_literal(f'{self._column}/{salt}/{self._epoch}')})"

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
            return self._moment(kind, salt)
        if kind.name == "TIME":
            return f"CAST({self.fraction(salt)} * 86400000 AS INT)"
        return self._nested(kind, salt)

    def _integer(self, kind: SqlType, salt: str) -> str:
        half = 1 << (_LIMITS[kind.name] - 1)
        low = int(self._source._option(self._column, "min") or -half)
        high = int(self._source._option(self._column, "max") or half - 1)
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

    def _moment(self, kind: SqlType, salt: str) -> str:
        made = f"{self._epoch}L + {ROW} * 1000 DIV {self._source._rate}"
        past = self._source._option(self._column, "max-past")
        if past is not None:
            made = f"{made} - CAST({self.fraction(salt)} * {int(past.total_seconds() * 1000)} AS BIGINT)"
        instant = f"timestamp_millis({made})"
        return instant if kind.name != "DATE" else f"CAST({instant} AS DATE)"

    def _nested(self, kind: SqlType, salt: str) -> str:
        length = min(self._length(), 1000) if self._source._option(self._column, "length") else 3
        if kind.name == "ROW":
            made = ((f, self.of(f.type, f"{salt}.{f.name}")) for f in kind.fields)
            fields = (f"{_literal(f.name)}, CAST({value} AS {f.type.spark()})" for f, value in made)
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
        raise ValidationError(f"'datagen' cannot make values of type {kind} for column '{self._column}'.")


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _literal(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
