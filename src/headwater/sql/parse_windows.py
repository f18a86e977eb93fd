"""What may follow a function: FILTER, WITHIN GROUP, IGNORE NULLS, OVER; and the WINDOW clause that names windows.

As trees:

    f(x) FILTER (WHERE c)        exp.Filter(this=f, expression=exp.Where(this=c))
    f(x) OVER (…)                exp.Window(this=f, partition_by=[…], order=exp.Order, spec=exp.WindowSpec, over="OVER")
    f(x) OVER w                  exp.Window(this=f, alias=Identifier w)
    WINDOW w AS (…)              Select.windows = [exp.Window(this=Identifier w, …)]
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_functions import FunctionParser

__all__ = ["WindowParser"]


class WindowParser(FunctionParser):
    def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> exp.Expr | None:
        assert this is not None
        token = self.here
        if self.accept("WITHIN"):
            self.expect("GROUP", "(")
            this = place(exp.WithinGroup(this=this, expression=self._order_here()), token)
            self.expect(")")
        token = self.here
        if self._match_pair(TokenType.FILTER, TokenType.L_PAREN):
            self.expect("WHERE")
            this = place(exp.Filter(this=this, expression=exp.Where(this=self.expression_here())), token)
            self.expect(")")
        for word, node in (("IGNORE", exp.IgnoreNulls), ("RESPECT", exp.RespectNulls)):
            if self.accept(word, "NULLS"):
                this = node(this=this)
        token = self.here
        if not self._match(TokenType.OVER):
            return this
        if self.ahead("("):
            return place(exp.Window(this=this, over="OVER", **self._window_body()), token)
        return place(exp.Window(this=this, over="OVER", alias=self.name("the name of a window")), token)

    def named_windows(self) -> list[exp.Expr]:
        """`WINDOW a AS (…), b AS (…)`, after the word WINDOW."""

        def one() -> exp.Expr:
            name = self.name("the name of a window")
            self.expect("AS")
            return exp.Window(this=name, **self._window_body())

        return self._parse_csv(one)

    def _window_body(self) -> dict[str, object]:
        self.expect("(")
        base = None
        if self.here.token_type in (TokenType.VAR, TokenType.IDENTIFIER):
            base = self.name("the name of a window")
        partition = self._parse_csv(self.expression_here) if self._match(TokenType.PARTITION_BY) else None
        order = self._order_here() if self.ahead("ORDER BY") else None
        spec = self._frame() if self.ahead("ROWS") or self.ahead("RANGE") else None
        self.expect(")")
        return {"alias": base, "partition_by": partition, "order": order, "spec": spec}

    def _frame(self) -> exp.WindowSpec:
        token = self.skip()
        if self.accept("BETWEEN"):
            start, start_side = self._bound()
            self.expect("AND")
            end, end_side = self._bound()
        else:
            start, start_side = self._bound()
            end, end_side = "CURRENT ROW", None
        parts = {"start": start, "start_side": start_side, "end": end, "end_side": end_side}
        return place(exp.WindowSpec(kind=token.text.upper(), **parts), token)

    def _bound(self) -> tuple[str | exp.Expr, str | None]:
        if self.accept("CURRENT", "ROW"):
            return "CURRENT ROW", None
        value: str | exp.Expr = "UNBOUNDED" if self.accept("UNBOUNDED") else self.operand_here()
        side = next((word for word in ("PRECEDING", "FOLLOWING") if self.accept(word)), None)
        if side is None:
            self.fail_expected("'PRECEDING' or 'FOLLOWING'")
        return value, side

    def _order_here(self) -> exp.Order:
        token = self.here
        if not self._match(TokenType.ORDER_BY):
            self.fail_expected("'ORDER BY'")
        return place(exp.Order(expressions=self._parse_csv(self._ordered)), token)

    def _ordered(self) -> exp.Ordered:
        """NULLs are the smallest values unless the script says otherwise, as in Flink."""
        token = self.here
        this = self.expression_here()
        descending = self.accept("DESC")
        if not descending:
            self.accept("ASC")
        nulls_first = not descending
        if self.accept("NULLS"):
            nulls_first = self.accept("FIRST")
            if not nulls_first:
                self.expect("LAST")
        return place(exp.Ordered(this=this, desc=descending, nulls_first=nulls_first), token)
