"""What is said about joins that cannot be planned."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan.nodes import JoinKind, Key
from headwater.plan.relation import Locate
from headwater.sql.types import SqlType

__all__ = ["JoinErrors"]

_SUBQUERIES = {"semi": "IN or EXISTS", "anti": "NOT IN or NOT EXISTS", "mark": "IN or EXISTS"}


@dataclass(frozen=True)
class JoinErrors:
    locate: Locate

    def no_equality(self, at: exp.Expr) -> SqlError:
        return SqlError(
            "A join needs a condition with an equality between columns of both sides.",
            position=self.locate(at),
            detail="Without one, every row would have to meet every row of the other side, in one state partition.",
            hint="Write for example ON a.id = b.id, or SET 'headwater.join.without-equality' = 'true' to allow it.",
        )

    def not_computable(self, kind: JoinKind, at: exp.Expr) -> SqlError:
        what = _SUBQUERIES.get(kind, f"a {kind.upper()} JOIN")
        return SqlError(
            f"A condition of {what} cannot compute a value from columns of both sides.",
            position=self.locate(at),
            detail="It may compare a value of one side with a value of the other: =, <>, <, <=, >, >=, BETWEEN, with "
            "AND, OR and NOT.",
            hint="Rewrite it so that each operand has columns of one side only.",
        )

    def no_version_key(self, keys: Sequence[Key], at: exp.Expr) -> SqlError:
        shown = " or ".join(f"({', '.join(key)})" for key in keys if key)
        return SqlError(
            "FOR SYSTEM_TIME AS OF needs an equality with the primary key of the versioned table.",
            position=self.locate(at),
            detail=f"Its rows are identified by {shown}." if shown else "No columns identify its rows.",
            hint="It is an upsert-kafka table, a table with a change data capture format and a primary key, or a query "
            "with a key.",
        )

    def other_time_type(self, time: str, types: tuple[SqlType, SqlType], at: exp.Expr) -> SqlError:
        return SqlError(
            "FOR SYSTEM_TIME AS OF needs event times of one type on both sides.",
            position=self.locate(at),
            detail=f"{time} is a {types[0].name}, that of the versioned table is a {types[1].name}: they differ "
            "by the session's time zone.",
            hint="Declare both as TIMESTAMP_LTZ, or one as a computed column: CAST(ts AS TIMESTAMP_LTZ(3)).",
        )

    def no_time(self, time: str, valid_from: str | None, at: exp.Expr) -> SqlError:
        detail = f"{time} is not a time attribute." if valid_from else "The versioned table has no event time."
        return SqlError(
            "FOR SYSTEM_TIME AS OF needs event time on both sides, or processing time.",
            position=self.locate(at),
            detail=detail,
            hint="Declare WATERMARK FOR a column of both tables, or use a column that is PROCTIME().",
        )
