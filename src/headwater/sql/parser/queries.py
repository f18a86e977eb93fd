"""Queries: SELECT, VALUES, WITH, set operations, ORDER BY and LIMIT, in the shapes that sqlglot gives them.

FETCH FIRST n ROWS ONLY is `exp.Limit` too. `exp.Select.distinct` is `exp.Distinct`; `exp.Union.distinct` is a bool.
GROUP BY keeps ROLLUP, CUBE and GROUPING SETS among its expressions; the empty grouping set is an empty `exp.Tuple`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.parser.cursor import positioned
from headwater.sql.tokens import Token

if TYPE_CHECKING:
    from headwater.sql.parser.parser import Parser

__all__ = ["QUERY_STARTS", "QueryParser"]

QUERY_STARTS = ("SELECT", "WITH", "VALUES")
_SET_OPERATIONS: dict[str, type[exp.SetOperation]] = {
    "UNION": exp.Union,
    "EXCEPT": exp.Except,
    "INTERSECT": exp.Intersect,
}
_GROUPINGS: dict[str, type[exp.Rollup] | type[exp.Cube]] = {"ROLLUP": exp.Rollup, "CUBE": exp.Cube}


class QueryParser:
    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.cursor = parser.cursor

    def query(self) -> exp.Expr:
        """A whole query: `exp.Query` or, for VALUES alone, `exp.Values`."""
        token = self.cursor.here
        with_ = self._with()
        body = self.cursor.here
        query = self.continued(self._term())
        if with_ is not None:
            # sqlglot's VALUES has no place for a WITH, and no row of it could use one.
            if isinstance(query, exp.Values):
                hint = "Write SELECT * FROM (VALUES (…)) AS t(…)."
                self.cursor.fail("WITH needs a SELECT", at=body, hint=hint)
            query.set("with_", with_)
        return positioned(query, token)

    def continued(self, first: exp.Expr) -> exp.Expr:
        """Queries joined to `first` by UNION, EXCEPT and INTERSECT (which binds tighter), then ORDER BY and LIMIT."""
        # ORDER BY and LIMIT belong to the whole set operation; a part has its own in parentheses only.
        query = self._intersected(first)
        while self.cursor.at_any(("UNION", "EXCEPT")):
            query = self._combined(query)
        if self.cursor.at("ORDER BY"):
            query.set("order", self.parser.windows.order())
        while self.cursor.at_any(("LIMIT", "OFFSET", "FETCH")):
            self._limit(query)
        return query

    def _intersected(self, query: exp.Expr) -> exp.Expr:
        while self.cursor.at("INTERSECT"):
            query = self._combined(query)
        return query

    def _combined(self, left: exp.Expr) -> exp.Expr:
        token = self.cursor.advance()
        distinct = self.cursor.accept_any(("ALL", "DISTINCT")) != "ALL"
        right = self._term()
        # a UNION b INTERSECT c is a UNION (b INTERSECT c).
        if token.word != "INTERSECT":
            right = self._intersected(right)
        node = _SET_OPERATIONS[token.word](this=left, expression=right, distinct=distinct)
        return positioned(node, token)

    def _with(self) -> exp.With | None:
        token = self.cursor.here
        if not self.cursor.accept("WITH"):
            return None
        if self.cursor.at("RECURSIVE"):
            self.cursor.fail("Recursive queries are not supported")
        return positioned(exp.With(expressions=self.cursor.comma_separated(self._common_table)), token)

    def _common_table(self) -> exp.CTE:
        token = self.cursor.here
        alias = exp.TableAlias(this=self.cursor.name("the name of a common table expression"))
        if self.cursor.at("("):
            alias.set("columns", self.cursor.parenthesized(self.parser.names.column))
        self.cursor.expect("AS", "(")
        query = self.query()
        self.cursor.expect(")")
        return positioned(exp.CTE(this=query, alias=alias), token)

    def _term(self) -> exp.Expr:
        """One query of a set operation."""
        token = self.cursor.here
        if self.cursor.accept("("):
            query: exp.Expr = exp.Subquery(this=self.query())
            self.cursor.expect(")")
        elif self.cursor.accept("SELECT"):
            query = self._select()
        elif self.cursor.accept("VALUES"):
            query = self._values()
        elif self.cursor.accept("TABLE"):
            query = self._whole_table(token)
        else:
            self.cursor.fail_expected("a query (SELECT, VALUES or WITH)")
        return positioned(query, token)

    def _whole_table(self, token: Token) -> exp.Select:
        """`TABLE t` is SELECT * FROM t."""
        source = positioned(exp.From(this=self.parser.relations.relation()), token)
        return exp.Select(expressions=[positioned(exp.Star(), token)], from_=source)

    def _values(self) -> exp.Values:
        rows = self.cursor.comma_separated(self._row)
        width = len(rows[0][1].expressions)
        for token, row in rows:
            if len(row.expressions) != width:
                fact = f"This row has {len(row.expressions)} values, the first one has {width}"
                self.cursor.fail(fact, at=token)
        return exp.Values(expressions=[row for _, row in rows])

    def _row(self) -> tuple[Token, exp.Tuple]:
        """`(a, b)`, `ROW(a, b)`, or `a` alone."""
        token = self.cursor.here
        # Here it makes the columns of a row, not one column of type ROW.
        if self.cursor.at("ROW", "("):
            self.cursor.advance()
        if self.cursor.at("("):
            values = self.cursor.parenthesized(self.parser.expression)
        else:
            values = [self.parser.expression()]
        return token, positioned(exp.Tuple(expressions=values), token)

    def _select(self) -> exp.Select:
        hint = self.parser.hints.of_query()
        quantifier = self.cursor.accept_any(("DISTINCT", "ALL"))
        distinct = positioned(exp.Distinct(), self.cursor.previous) if quantifier == "DISTINCT" else None
        select = exp.Select(hint=hint, distinct=distinct, expressions=self.cursor.comma_separated(self._projection))
        self._from(select)
        for word, key, clause in (
            ("WHERE", "where", self._where),
            ("GROUP BY", "group", self._group),
            ("HAVING", "having", self._having),
        ):
            token = self.cursor.here
            if self.cursor.accept(word):
                select.set(key, positioned(clause(), token))
        if self.cursor.accept("WINDOW"):
            select.set("windows", self.parser.windows.named())
        return select

    def _where(self) -> exp.Expr:
        return exp.Where(this=self.parser.expression())

    def _group(self) -> exp.Expr:
        return exp.Group(expressions=self.cursor.comma_separated(self._grouping))

    def _having(self) -> exp.Expr:
        return exp.Having(this=self.parser.expression())

    def _from(self, select: exp.Select) -> None:
        token = self.cursor.here
        if not self.cursor.accept("FROM"):
            return
        select.set("from_", positioned(exp.From(this=self.parser.relations.relation()), token))
        if joins := self.parser.relations.joins():
            select.set("joins", joins)

    def _projection(self) -> exp.Expr:
        """`*`, or an expression with its alias."""
        token = self.cursor.here
        if self.cursor.accept("*"):
            return positioned(exp.Star(), token)
        value = self.parser.expression()
        if not self.cursor.accept("AS") and not self.cursor.at_alias():
            return value
        if value.is_star:  # t.* x
            self.cursor.fail("A star takes no alias")
        return positioned(exp.Alias(this=value, alias=self.parser.names.column("an alias")), token)

    def _grouping(self) -> exp.Expr:
        token = self.cursor.here
        if self.cursor.accept("(", ")"):
            return positioned(exp.Tuple(), token)
        if self.cursor.accept("GROUPING SETS"):
            return positioned(exp.GroupingSets(expressions=self.cursor.parenthesized(self._grouping)), token)
        if word := self.cursor.accept_any(_GROUPINGS):
            return positioned(_GROUPINGS[word](expressions=self.cursor.parenthesized(self.parser.expression)), token)
        return self.parser.expression()

    def _limit(self, query: exp.Expr) -> None:
        """`LIMIT n | ALL`, `OFFSET n [ROW | ROWS]` or `FETCH FIRST | NEXT [n] ROW | ROWS ONLY`."""
        token = self.cursor.advance()
        key = "offset" if token.word == "OFFSET" else "limit"
        if query.args.get(key):
            self.cursor.fail(f"A second {token.word}", at=token)
        if token.word == "LIMIT" and self.cursor.accept("ALL"):
            return
        if token.word == "FETCH":
            self.cursor.expect_any(("FIRST", "NEXT"), "'FIRST' or 'NEXT'")
        count = self._fetch_count() if token.word == "FETCH" else self._count()
        if token.word != "LIMIT":
            self.cursor.accept_any(("ROW", "ROWS"))
        if token.word == "FETCH":
            self.cursor.expect("ONLY")
        node = exp.Offset(expression=count) if key == "offset" else exp.Limit(expression=count)
        query.set(key, positioned(node, token))

    def _fetch_count(self) -> exp.Literal:
        """FETCH FIRST ROW ONLY is one row."""
        return exp.Literal(this="1", is_string=False) if self.cursor.at_any(("ROW", "ROWS")) else self._count()

    def _count(self) -> exp.Literal:
        value, token = self.cursor.whole_number()
        return positioned(exp.Literal(this=str(value), is_string=False), token)
