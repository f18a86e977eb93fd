"""What may stand in FROM: tables with hints, table functions, derived tables, UNNEST, LATERAL and joins.

As trees:

    t                        exp.Table(this=Identifier, db=Identifier | None); a catalog in front is checked and dropped
    t /*+ OPTIONS(…) */      exp.Table(hints=[exp.WithTableHint(expressions=[exp.Property(this=key, value=value), …])])
    t FOR SYSTEM_TIME AS OF x            exp.Table(version=exp.Version(this="TIMESTAMP", kind="AS OF", expression=x))
    f(…), TABLE(f(…))        exp.Table(this=exp.Anonymous); its TABLE t PARTITION BY a is exp.Table(partition=…)
    (query) AS q(a, b)       exp.Subquery(this=query, alias=exp.TableAlias(this=q, columns=[a, b]))
    (a JOIN b ON …)          exp.Subquery(this=exp.Table(joins=[…]))
    UNNEST(x) WITH ORDINALITY            exp.Unnest(expressions=[x], offset=True, alias=…)
    LATERAL TABLE(f(x)), LATERAL (query) exp.Lateral(this=exp.Anonymous | exp.Subquery, alias=…)
    a JOIN b ON c            exp.Join(this=b, kind="INNER", on=c); kind is INNER, CROSS (also for a comma) or OUTER
                             with side LEFT, RIGHT or FULL; USING (x): using=[Identifier]; NATURAL: method="NATURAL"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.parser.cursor import positioned

if TYPE_CHECKING:
    from headwater.sql.parser.parser import Parser

__all__ = ["RelationParser"]

_LIMITS = "'headwater docs limits' lists what queries can do."
_QUALIFY = "Filter in a query around it: SELECT … FROM (SELECT *, ROW_NUMBER() OVER (…) AS n FROM t) WHERE n <= 1."
_REFUSED = {
    "MATCH_RECOGNIZE": ("MATCH_RECOGNIZE is not supported", _LIMITS),
    "TABLESAMPLE": ("TABLESAMPLE is not supported", _LIMITS),
    "PIVOT": ("PIVOT is not Flink SQL", ""),
    "UNPIVOT": ("UNPIVOT is not Flink SQL", ""),
    "QUALIFY": ("QUALIFY is not supported", _QUALIFY),
    "GROUP": ("GROUP needs BY", ""),
    "ORDER": ("ORDER needs BY", ""),
}


class RelationParser:
    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.cursor = parser.cursor

    def relation(self) -> exp.Expr:
        """One relation of a FROM clause, without the joins behind it."""
        token = self.cursor.here
        if self.cursor.accept("LATERAL"):
            return positioned(self._lateral(), token)
        if self.cursor.accept("UNNEST"):
            return positioned(self._unnest(), token)
        if self.cursor.accept("("):
            return positioned(self._parenthesized(), token)
        # A parenthesis behind a name makes it a function, behind TABLE it encloses one.
        if self.cursor.peek().word == "(":
            table = exp.Table(this=self._table_function())
        else:
            table = self.parser.names.table()
            self._version(table)
        return self._aliased(positioned(table, token))

    def table_argument(self) -> exp.Table:
        """The `t`, `t PARTITION BY a` or `t PARTITION BY (a, b)` behind the word TABLE in a table function."""
        if self.cursor.at("("):
            hint = "A query stands in parentheses, without TABLE in front of it."
            self.cursor.fail_expected("the name of a table", hint=hint)
        table = self.parser.names.table()
        token = self.cursor.here
        if self.cursor.accept("PARTITION BY"):
            several = self.cursor.at("(")
            keys = self.cursor.parenthesized(self.parser.expression) if several else [self.parser.expression()]
            table.set("partition", positioned(exp.Partition(expressions=keys), token))
        return table

    def joins(self) -> list[exp.Join]:
        """All joins behind a relation. A comma is a CROSS JOIN that binds looser than the others."""
        joins: list[exp.Join] = []
        comma = False
        while True:
            token = self.cursor.here
            if self.cursor.accept(","):
                comma = True
                joins.append(positioned(exp.Join(this=self.relation(), kind="CROSS"), token))
            elif (join := self._join()) is not None:
                # In the standard `a, b RIGHT JOIN c` joins b and c first; a list of joins would be read from left to
                # right.
                if comma and join.side in ("RIGHT", "FULL"):
                    hint = "Write CROSS JOIN for the comma."
                    self.cursor.fail(f"A {join.side} JOIN behind a comma is ambiguous", at=token, hint=hint)
                joins.append(positioned(join, token))
            else:
                return joins

    def _table_function(self) -> exp.Expr:
        # TABLE(f(…)) and f(…) mean the same, so they are the same tree.
        wrapped = self.cursor.accept("TABLE", "(")
        function = self.parser.functions.call()
        if function is None:
            self.cursor.fail_expected("a table")
        if wrapped:
            self.cursor.expect(")")
        return function

    def _version(self, table: exp.Table) -> None:
        token = self.cursor.here
        if self.cursor.accept("FOR"):
            self.cursor.expect("SYSTEM_TIME", "AS", "OF")
            version = exp.Version(this="TIMESTAMP", kind="AS OF", expression=self.parser.operand())
            table.set("version", positioned(version, token))

    def _lateral(self) -> exp.Expr:
        if self.cursor.accept("("):
            inner: exp.Expr = exp.Subquery(this=self.parser.query())
            self.cursor.expect(")")
        elif self.cursor.at("TABLE"):
            inner = self._table_function()
        else:
            self.cursor.fail_expected("'TABLE' or '('")
        return self._aliased(exp.Lateral(this=inner))

    def _unnest(self) -> exp.Expr:
        node = exp.Unnest(expressions=self.cursor.parenthesized(self.parser.expression))
        if self.cursor.accept("WITH"):
            self.cursor.expect("ORDINALITY")
            node.set("offset", True)
        return self._aliased(node)

    def _parenthesized(self) -> exp.Expr:
        """A query, or joins, in parentheses. A pair of parentheses around nothing but one query adds nothing."""
        inner = self.parser.query() if self.parser.at_query() else self._nested()
        self.cursor.expect(")")
        if not _is_bare_query(inner) or inner.args.get("joins"):
            inner = exp.Subquery(this=inner)
        return self._aliased(inner)

    def _nested(self) -> exp.Expr:
        """Of `((SELECT 1) UNION SELECT 2)` the first query looks like a relation until UNION follows."""
        inner = self.relation()
        if _is_bare_query(inner):
            inner = self.parser.queries.continued(inner)
        if joins := self.joins():
            inner.set("joins", joins)
        return inner

    def _aliased(self, relation: exp.Expr) -> exp.Expr:
        """`[AS] name [(column, …)]`."""
        self._refuse()
        token = self.cursor.here
        if self.cursor.accept("AS") or self.cursor.at_alias():
            alias = exp.TableAlias(this=self.cursor.name("an alias"))
            if self.cursor.at("("):
                alias.set("columns", self.cursor.parenthesized(self.parser.names.column))
            relation.set("alias", positioned(alias, token))
            self._refuse()
        self.parser.hints.refuse_late()
        return relation

    def _refuse(self) -> None:
        """Clauses that follow a relation elsewhere; taken as an alias, they would hide what is meant."""
        if self.cursor.here.word in _REFUSED:
            fact, hint = _REFUSED[self.cursor.here.word]
            self.cursor.fail(fact, hint=hint)

    def _join(self) -> exp.Join | None:
        """`[NATURAL] [INNER | LEFT | RIGHT | FULL [OUTER] | CROSS] JOIN relation [ON … | USING (…)]`."""
        first = self.cursor.here
        natural = self.cursor.accept("NATURAL")
        side = self.cursor.accept_any(("LEFT", "RIGHT", "FULL"))
        cross = not side and not natural and self.cursor.accept("CROSS")
        if side:
            self.cursor.accept("OUTER")
        elif not cross:
            self.cursor.accept("INNER")
        if side and self.cursor.at_any(("ANTI", "SEMI")):
            word = "NOT EXISTS" if self.cursor.at("ANTI") else "EXISTS"
            hint = f"Write WHERE {word} (SELECT … WHERE …)."
            self.cursor.fail(f"{side} {self.cursor.here.word} JOIN is not Flink SQL", hint=hint)
        if not self.cursor.accept("JOIN"):
            if self.cursor.here is not first:  # LEFT, INNER or the like has been read
                self.cursor.fail_expected("'JOIN'")
            return None
        kind = "CROSS" if cross else "OUTER" if side else "INNER"
        join = exp.Join(this=self.relation(), kind=kind, side=side or None)
        if natural:
            join.set("method", "NATURAL")
        elif not cross:
            self._condition(join)
        return join

    def _condition(self, join: exp.Join) -> None:
        if self.cursor.accept("ON"):
            join.set("on", self.parser.expression())
        elif self.cursor.accept("USING"):
            join.set("using", self.cursor.parenthesized(self.parser.names.column))
        else:
            self.cursor.fail_expected("'ON' or 'USING'", hint="A join without a condition is a CROSS JOIN.")


def _is_bare_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Subquery) and not node.args.get("alias")
