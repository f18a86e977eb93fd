"""Rows written in a query: `INSERT INTO t VALUES …`, read once."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from headwater.connectors.io import IoContext, Position
from headwater.plan.nodes import Values

__all__ = ["ValuesSource"]


class ValuesSource:
    """The position is the number of rows already read."""

    def __init__(self, node: Values, context: IoContext) -> None:
        self._node = node
        self._context = context

    def start(self) -> Position:
        return {"rows": 0}

    def bound(self, start: Position) -> Position | None:
        return {"rows": len(self._node.rows)}

    def available(self, position: Position, bound: Position | None, limit: int) -> tuple[Position, Position]:
        return position, {"rows": len(self._node.rows)}

    def read(self, start: Position, end: Position, columns: Sequence[str]) -> DataFrame:
        rows = self._node.rows[start["rows"] : end["rows"]]
        parts = [
            ", ".join(f"{e.sql} AS {_quoted(c)}" for e, c in zip(row, self._node.names, strict=True)) for row in rows
        ]
        if not parts:
            nothing = ", ".join(f"CAST(NULL AS {c.type.spark()}) AS {_quoted(c.name)}" for c in self._node.columns)
            return self._context.spark.sql(f"SELECT {nothing} WHERE false")
        # One task: rows of one key are written in the order of the query.
        return self._context.spark.sql(" UNION ALL ".join(f"SELECT {part}" for part in parts)).coalesce(1)

    def learn(self, start: Position, end: Position) -> None:
        return

    def settle(self, start: Position, end: Position, columns: Sequence[str]) -> int:
        return 0

    def keeps_tasks(self, start: Position, end: Position, columns: Sequence[str]) -> bool:
        return True

    def lag(self, position: Position) -> int:
        return len(self._node.rows) - position["rows"]

    def done(self, position: Position) -> None:
        pass

    def close(self) -> None:
        pass


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
