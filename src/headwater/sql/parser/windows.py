"""What may follow a function: FILTER, WITHIN GROUP, IGNORE NULLS, OVER; the WINDOW clause; and ORDER BY.

As trees:

    f(x) FILTER (WHERE c)        exp.Filter(this=f, expression=exp.Where(this=c))
    f(x) OVER (…)                exp.Window(this=f, partition_by=[…], order=exp.Order, spec=exp.WindowSpec, over="OVER")
    f(x) OVER w                  exp.Window(this=f, alias=Identifier w)
    WINDOW w AS (…)              Select.windows = [exp.Window(this=Identifier w, …)]
    ORDER BY a DESC              exp.Order(expressions=[exp.Ordered(this=a, desc=True, nulls_first=False)])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.parser.cursor import RESERVED, positioned
from headwater.sql.tokens import TokenKind

if TYPE_CHECKING:
    from headwater.sql.parser.parser import Parser

__all__ = ["WindowParser"]

_FRAMES = ("ROWS", "RANGE")


class WindowParser:
    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.cursor = parser.cursor

    def followed(self, call: exp.Expr) -> exp.Expr:
        """The call with what follows its parentheses."""
        token = self.cursor.here
        if self.cursor.accept("WITHIN"):
            self.cursor.expect("GROUP", "(")
            call = positioned(exp.WithinGroup(this=call, expression=self.order()), token)
            self.cursor.expect(")")
        token = self.cursor.here
        if self.cursor.accept("FILTER", "("):
            self.cursor.expect("WHERE")
            condition = exp.Where(this=self.parser.expression())
            call = positioned(exp.Filter(this=call, expression=condition), token)
            self.cursor.expect(")")
        call = self.null_treatment(call)
        token = self.cursor.here
        if not self.cursor.accept("OVER"):
            return call
        if self.cursor.at("("):
            return positioned(exp.Window(this=call, over="OVER", **self._definition()), token)
        return positioned(exp.Window(this=call, over="OVER", alias=self.cursor.name("the name of a window")), token)

    def null_treatment(self, call: exp.Expr) -> exp.Expr:
        """`IGNORE NULLS` or `RESPECT NULLS`, inside or behind the parentheses of a call."""
        if self.cursor.accept("IGNORE", "NULLS"):
            return exp.IgnoreNulls(this=call)
        return exp.RespectNulls(this=call) if self.cursor.accept("RESPECT", "NULLS") else call

    def named(self) -> list[exp.Window]:
        """`a AS (…), b AS (…)` behind the word WINDOW."""
        return self.cursor.comma_separated(self._named)

    def _named(self) -> exp.Window:
        name = self.cursor.name("the name of a window")
        self.cursor.expect("AS")
        return exp.Window(this=name, **self._definition())

    def _definition(self) -> dict[str, object]:
        """`([name] [PARTITION BY …] [ORDER BY …] [ROWS … | RANGE …])`."""
        self.cursor.expect("(")
        # A name in front of the clauses is a window of the WINDOW clause that this one adds to.
        base = self.cursor.name("the name of a window") if self._at_base() else None
        partition = None
        if self.cursor.accept("PARTITION BY"):
            partition = self.cursor.comma_separated(self.parser.expression)
        order = self.order() if self.cursor.at("ORDER BY") else None
        spec = self._frame() if self.cursor.at_any(_FRAMES) else None
        self.cursor.expect(")")
        return {"alias": base, "partition_by": partition, "order": order, "spec": spec}

    def _at_base(self) -> bool:
        token = self.cursor.here
        # RANGE is not reserved, but here it begins the frame.
        free = token.word not in RESERVED and token.word not in _FRAMES
        return token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and free)

    def _frame(self) -> exp.WindowSpec:
        token = self.cursor.advance()
        between = self.cursor.accept("BETWEEN")
        start, start_side = self._bound()
        end: str | exp.Expr = "CURRENT ROW"  # what `ROWS 5 PRECEDING` stands for
        end_side = None
        if between:
            self.cursor.expect("AND")
            end, end_side = self._bound()
        parts = {"start": start, "start_side": start_side, "end": end, "end_side": end_side}
        return positioned(exp.WindowSpec(kind=token.word, **parts), token)

    def _bound(self) -> tuple[str | exp.Expr, str | None]:
        if self.cursor.accept("CURRENT", "ROW"):
            return "CURRENT ROW", None
        value = "UNBOUNDED" if self.cursor.accept("UNBOUNDED") else self.parser.operand()
        return value, self.cursor.expect_any(("PRECEDING", "FOLLOWING"), "'PRECEDING' or 'FOLLOWING'")

    def order(self) -> exp.Order:
        token = self.cursor.expect("ORDER BY")
        return positioned(exp.Order(expressions=self.cursor.comma_separated(self._ordered)), token)

    def _ordered(self) -> exp.Ordered:
        """NULLs are the smallest values unless the script says otherwise, as in Flink."""
        token = self.cursor.here
        value = self.parser.expression()
        descending = self.cursor.accept_any(("ASC", "DESC")) == "DESC"
        nulls_first = not descending
        if self.cursor.accept("NULLS"):
            nulls_first = self.cursor.expect_any(("FIRST", "LAST"), "'FIRST' or 'LAST'") == "FIRST"
        return positioned(exp.Ordered(this=value, desc=descending, nulls_first=nulls_first), token)
