"""Queries: SELECT, VALUES, WITH, set operations, ORDER BY and LIMIT, in the shapes sqlglot gives them.

FETCH FIRST n ROWS ONLY is `exp.Limit` too. `exp.Select.distinct` is `exp.Distinct`; `exp.Union.distinct` is a bool.
GROUP BY keeps ROLLUP, CUBE and GROUPING SETS among its expressions; the empty grouping set is an empty `exp.Tuple`.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_tables import TableParser
from headwater.sql.parse_tokens import HINT_START

__all__ = ["QueryParser"]

_SET_OPERATIONS: dict[TokenType, type[exp.SetOperation]] = {
    TokenType.UNION: exp.Union,
    TokenType.EXCEPT: exp.Except,
    TokenType.INTERSECT: exp.Intersect,
}


class QueryParser(TableParser):
    def query(self) -> exp.Expr:
        """A whole query, which must be here: `exp.Query` or, for VALUES alone, `exp.Values`."""
        token = self.here
        with_ = self._with() if self._match(TokenType.WITH) else None
        body = self.here
        query = self._whole(self._term())
        if with_ is not None and isinstance(query, exp.Values):
            self.fail("WITH needs a SELECT", at=body, hint="Write SELECT * FROM (VALUES (…)) AS t(…).")
        if with_ is not None:
            query.set("with_", with_)
        return place(query, token)

    def _parse_select(
        self,
        nested: bool = False,
        table: bool = False,
        parse_subquery_alias: bool = True,
        parse_set_operation: bool = True,
        consume_pipe: bool = True,
    ) -> exp.Expr | None:
        return self.query()

    def _parse_statement(self) -> exp.Expr | None:
        return self.query()

    def _with(self) -> exp.With:
        token = self.before
        if self.ahead("RECURSIVE"):
            self.fail("Recursive queries are not supported")
        return place(exp.With(expressions=self._parse_csv(self._common_table)), token)

    def _common_table(self) -> exp.CTE:
        token = self.here
        alias = exp.TableAlias(this=self.name("the name of a common table expression"))
        if self.ahead("("):
            alias.set("columns", self.comma_separated(lambda: self.name("the name of a column")))
        self.expect("AS", "(")
        query = self.query()
        self.expect(")")
        return place(exp.CTE(this=query, alias=alias), token)

    def _parse_set_operations(self, this: exp.Expr | None) -> exp.Expr | None:
        return self._whole(this) if isinstance(this, exp.Query) else this

    def _whole(self, this: exp.Expr) -> exp.Expr:
        """Terms joined by UNION, EXCEPT and INTERSECT (which binds tighter), then ORDER BY and LIMIT of the whole."""
        query = self._intersections(this)
        while self.here.token_type in (TokenType.UNION, TokenType.EXCEPT):
            query = self._combined(query, tight=False)
        return self._ending(query)

    def _intersections(self, query: exp.Expr) -> exp.Expr:
        while self.here.token_type == TokenType.INTERSECT:
            query = self._combined(query, tight=True)
        return query

    def _combined(self, left: exp.Expr, tight: bool) -> exp.Expr:
        token = self.skip()
        every = self.accept("ALL")
        if not every:
            self.accept("DISTINCT")
        right = self._term() if tight else self._intersections(self._term())
        return place(_SET_OPERATIONS[token.token_type](this=left, expression=right, distinct=not every), token)

    def _term(self) -> exp.Expr:
        token = self.here
        if self._match(TokenType.L_PAREN):
            query: exp.Expr = exp.Subquery(this=self.query())
            self.expect(")")
        elif self._match(TokenType.SELECT):
            query = self._select()
        elif self._match(TokenType.VALUES):
            query = self._values()
        elif self._match(TokenType.TABLE):
            self.fail("TABLE t is not a query here", at=token, hint="Write SELECT * FROM t.")
        else:
            self.fail_expected("a query (SELECT, VALUES or WITH)")
        return place(query, token)

    def _values(self) -> exp.Values:
        rows = self._parse_csv(self._row_of_values)
        width = len(rows[0].expressions)
        for row in rows:
            if len(row.expressions) != width:
                at = next(t for t in self._tokens if t.start == row.meta["start"])
                self.fail(f"This row has {len(row.expressions)} values, the first one has {width}", at=at)
        return exp.Values(expressions=rows)

    def _row_of_values(self) -> exp.Tuple:
        token = self.here
        if self.ahead_type(TokenType.ROW, TokenType.L_PAREN):
            self.skip()
        if self.ahead("("):
            return place(exp.Tuple(expressions=self.comma_separated(self.expression_here)), token)
        return place(exp.Tuple(expressions=[self.expression_here()]), token)

    def _select(self) -> exp.Select:
        if self.here.token_type == HINT_START:
            self.fail("Hints of a query are not supported", hint="The hint of a table stands behind its name in FROM.")
        distinct = place(exp.Distinct(), self.before) if self._match(TokenType.DISTINCT) else None
        if distinct is None:
            self._match(TokenType.ALL)
        select = exp.Select(distinct=distinct, expressions=self._parse_csv(self._projection))
        if self._match(TokenType.FROM):
            self._from(select)
        token = self.here
        if self._match(TokenType.WHERE):
            select.set("where", place(exp.Where(this=self.expression_here()), token))
        token = self.here
        if self._match(TokenType.GROUP_BY):
            select.set("group", place(exp.Group(expressions=self._parse_csv(self._grouping)), token))
        token = self.here
        if self._match(TokenType.HAVING):
            select.set("having", place(exp.Having(this=self.expression_here()), token))
        if self._match(TokenType.WINDOW):
            select.set("windows", self.named_windows())
        return select

    def _from(self, select: exp.Select) -> None:
        token = self.before
        first = self.table_here()
        self._joined(first)
        joins = first.args.get("joins")
        first.set("joins", None)
        select.set("from_", place(exp.From(this=first), token))
        if joins:
            select.set("joins", joins)

    def _projection(self) -> exp.Expr:
        token = self.here
        if self._match(TokenType.STAR):
            return place(exp.Star(), token)
        this = self.expression_here()
        explicit = self._match(TokenType.ALIAS)
        if not explicit and not self.implicit_alias_ahead():
            return this
        if this.is_star:
            self.fail("A star takes no alias")
        return place(exp.Alias(this=this, alias=self.name("an alias")), token)

    def _grouping(self) -> exp.Expr:
        token = self.here
        if self.ahead_type(TokenType.L_PAREN, TokenType.R_PAREN):
            self._advance(2)
            return place(exp.Tuple(), token)
        for kind, node in ((TokenType.ROLLUP, exp.Rollup), (TokenType.CUBE, exp.Cube)):
            if self._match(kind):
                return place(node(expressions=self.comma_separated(self.expression_here)), token)
        if self._match(TokenType.GROUPING_SETS):
            return place(exp.GroupingSets(expressions=self.comma_separated(self._grouping)), token)
        return self.expression_here()

    def _ending(self, query: exp.Expr) -> exp.Expr:
        """ORDER BY, LIMIT, OFFSET and FETCH."""
        if self.ahead("ORDER BY"):
            query.set("order", self._order_here())
        while self.here.token_type in (TokenType.LIMIT, TokenType.OFFSET, TokenType.FETCH):
            self._limit(query)
        return query

    def _limit(self, query: exp.Expr) -> None:
        token = self.skip()
        key = "offset" if token.token_type == TokenType.OFFSET else "limit"
        if query.args.get(key):
            self.fail(f"A second {token.text.upper()}", at=token)
        if token.token_type == TokenType.LIMIT and self.accept("ALL"):
            return
        if token.token_type == TokenType.FETCH and not (self.accept("FIRST") or self.accept("NEXT")):
            self.fail_expected("'FIRST' or 'NEXT'")
        count = self._count(optional=token.token_type == TokenType.FETCH)
        if token.token_type != TokenType.LIMIT and not self.accept("ROWS"):
            self.accept("ROW")
        if token.token_type == TokenType.FETCH:
            self.expect("ONLY")
        node = exp.Offset(expression=count) if key == "offset" else exp.Limit(expression=count)
        query.set(key, place(node, token))

    def _count(self, optional: bool) -> exp.Literal:
        if optional and (self.ahead("ROW") or self.ahead("ROWS")):
            return exp.Literal(this="1", is_string=False)
        value, token = self._whole_number()
        return place(exp.Literal(this=str(value), is_string=False), token)
