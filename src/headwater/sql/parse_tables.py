"""What may stand in FROM: tables with hints, table functions, derived tables, UNNEST, LATERAL and joins.

As trees:

    t                        exp.Table(this=Identifier); a catalog and database in front are checked and dropped
    t /*+ OPTIONS(…) */      exp.Table(hints=[exp.WithTableHint(expressions=[exp.Property(this=key, value=value), …])])
    t FOR SYSTEM_TIME AS OF x            exp.Table(version=exp.Version(this="TIMESTAMP", kind="AS OF", expression=x))
    f(…), TABLE(f(…))        exp.Table(this=exp.Anonymous)
    (query) AS q(a, b)       exp.Subquery(this=query, alias=exp.TableAlias(this=q, columns=[a, b]))
    (a JOIN b ON …)          exp.Subquery(this=exp.Table(joins=[…]))
    UNNEST(x) WITH ORDINALITY            exp.Unnest(expressions=[x], offset=True, alias=…)
    LATERAL TABLE(f(x)), LATERAL (query) exp.Lateral(this=exp.Anonymous | exp.Subquery, alias=…)
    a JOIN b ON c            exp.Join(this=b, kind="INNER", on=c); kind is INNER, CROSS (also for a comma) or OUTER
                             with side LEFT, RIGHT or FULL; USING (x): using=[Identifier]; NATURAL: method="NATURAL"
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_json import JsonParser
from headwater.sql.parse_tokens import DOUBLE_QUOTED, HINT_END, HINT_START

__all__ = ["CATALOG", "DATABASE", "TableParser", "table_options"]

CATALOG = "default_catalog"
DATABASE = "default_database"

_NOT_ALIASES = frozenset({TokenType.LIMIT, TokenType.OFFSET, TokenType.WINDOW})
_REFUSED = {
    "MATCH_RECOGNIZE": "MATCH_RECOGNIZE is not supported",
    "TABLESAMPLE": "TABLESAMPLE is not supported",
    "PIVOT": "PIVOT is not Flink SQL",
    "UNPIVOT": "UNPIVOT is not Flink SQL",
    "QUALIFY": "QUALIFY is not supported",
    "GROUP": "GROUP needs BY",
    "ORDER": "ORDER needs BY",
}


def table_options(table: exp.Expr) -> dict[str, str]:
    """The options that `/*+ OPTIONS(…) */` gives this table, in the order written."""
    return {p.this.name: p.args["value"].name for hint in table.args.get("hints") or [] for p in hint.expressions}


class TableParser(JsonParser):
    def _parse_table_parts(
        self, schema: bool = False, is_db_reference: bool = False, wildcard: bool = False, fast: bool = False
    ) -> exp.Table:
        return self.table_with_hints()

    def table_with_hints(self) -> exp.Table:
        token = self.here
        table = place(exp.Table(this=self.table_name()), token)
        hints = self.hints()
        if hints:
            table.set("hints", hints)
        return table

    def table_name(self, what: str = "the name of a table") -> exp.Identifier:
        """`t`, or `t` with the only database and catalog there are in front."""
        first = self.here
        names = [self.name(what)]
        while self._match(TokenType.DOT):
            names.append(self.name(what))
        if [n.name for n in names[:-1]] not in ([], [DATABASE], [CATALOG, DATABASE]):
            place_text = ".".join(n.name for n in names[:-1])
            self.fail(
                f"Unknown catalog or database '{place_text}'",
                at=first,
                hint=f"There is one of each: write {names[-1].name} or {CATALOG}.{DATABASE}.{names[-1].name}.",
            )
        return names[-1]

    def hints(self) -> list[exp.Expr]:
        """The hints here, all of which must be OPTIONS."""
        found: list[exp.Expr] = []
        while self._match(HINT_START):
            while True:
                found.append(self._hint())
                if not self.accept(","):
                    break
            if not self._match(HINT_END):
                self.fail_expected("'*/'")
        return found

    def _hint(self) -> exp.Expr:
        token = self.here
        if not self.accept("OPTIONS"):
            self.fail(
                f"Unknown hint '{token.text}'" if token.token_type != HINT_END else "An empty hint",
                hint="The hint of a table is /*+ OPTIONS('key' = 'value') */.",
            )
        pairs = self.comma_separated(self.option_pair)
        seen: set[str] = set()
        nodes = []
        for key, value in pairs:
            if key.text in seen:
                self.fail(f"The option '{key.text}' appears twice", at=key)
            seen.add(key.text)
            nodes.append(exp.Property(this=_literal(key), value=_literal(value)))
        return place(exp.WithTableHint(expressions=nodes), token)

    def option_pair(self) -> tuple[Token, Token]:
        """`'key' = 'value'`; both kinds of quotes are texts here."""
        key = self.option_text("an option's key in quotes")
        self.expect("=")
        return key, self.option_text("an option's value in quotes")

    def option_text(self, what: str) -> Token:
        if not self.text_ahead():
            self.fail_expected(what)
        return self.skip()

    def text_ahead(self) -> bool:
        """Whether a text in either kind of quotes comes next."""
        return self.here.token_type in (TokenType.STRING, DOUBLE_QUOTED)

    def table_here(self) -> exp.Expr:
        """One table of a FROM clause, without joins."""
        token = self.here
        if self._match(TokenType.LATERAL):
            return place(self._lateral(), token)
        if self._match(TokenType.UNNEST):
            return place(self._unnest(), token)
        if self._match(TokenType.L_PAREN):
            return place(self._parenthesised(), token)
        if self.ahead_type(TokenType.TABLE, TokenType.L_PAREN) or self._next.token_type == TokenType.L_PAREN:
            table: exp.Expr = exp.Table(this=self._table_function())
        else:
            table = self._parse_table_parts()
            self._version(table)
        return self._aliased(place(table, token))

    def _table_function(self) -> exp.Expr:
        wrapped = self._match(TokenType.TABLE)
        if wrapped:
            self.expect("(")
        function = self._parse_function_call()
        if function is None:
            self.fail_expected("a table")
        if wrapped:
            self.expect(")")
        return function

    def _version(self, table: exp.Expr) -> None:
        token = self.here
        if self._match(TokenType.FOR):
            self.expect("SYSTEM_TIME", "AS", "OF")
            version = exp.Version(this="TIMESTAMP", kind="AS OF", expression=self.operand_here())
            table.set("version", place(version, token))

    def _lateral(self) -> exp.Expr:
        if self._match(TokenType.L_PAREN):
            inner: exp.Expr = exp.Subquery(this=self._parse_select())
            self.expect(")")
        elif self.ahead("TABLE"):
            inner = self._table_function()
        else:
            self.fail_expected("'TABLE' or '('")
        return self._aliased(exp.Lateral(this=inner))

    def _unnest(self) -> exp.Expr:
        node = exp.Unnest(expressions=self.comma_separated(self.expression_here))
        if self.accept("WITH"):
            self.expect("ORDINALITY")
            node.set("offset", True)
        return self._aliased(node)

    def _parenthesised(self) -> exp.Expr:
        if self.query_ahead():
            inner = self._parse_select()
        else:
            inner = self.table_here()
            bare = isinstance(inner, exp.Subquery) and not inner.args.get("alias")
            inner = (self._parse_set_operations(inner) if bare else inner) or inner
            self._joined(inner)
        self.expect(")")
        assert inner is not None
        if isinstance(inner, exp.Subquery) and not inner.args.get("alias") and not inner.args.get("joins"):
            return self._aliased(inner)
        return self._aliased(exp.Subquery(this=inner))

    def _aliased(self, table: exp.Expr) -> exp.Expr:
        """`[AS] name [(column, …)]`."""
        token = self.here
        refused = _REFUSED.get(token.text.upper()) if token.token_type == TokenType.VAR else None
        if refused:
            self.fail(refused)
        explicit = self._match(TokenType.ALIAS)
        if explicit or self.implicit_alias_ahead():
            alias = exp.TableAlias(this=self.name("an alias"))
            if self.ahead("("):
                alias.set("columns", self.comma_separated(lambda: self.name("the name of a column")))
            table.set("alias", place(alias, token))
        if self.here.token_type == HINT_START:
            self.fail("A hint stands right behind the name of its table", hint="Write t /*+ OPTIONS(…) */ AS alias.")
        return table

    def implicit_alias_ahead(self) -> bool:
        kind = self.here.token_type
        if kind == TokenType.IDENTIFIER:
            return True
        return kind in self.ID_VAR_TOKENS and kind not in self.RESERVED_NAMES and kind not in _NOT_ALIASES

    def _joined(self, first: exp.Expr) -> None:
        """Read the joins behind a table and hang them on it."""
        joins: list[exp.Expr] = []
        comma = False
        while True:
            token = self.here
            if self._match(TokenType.COMMA):
                joins.append(place(exp.Join(this=self.table_here(), kind="CROSS"), token))
                comma = True
                continue
            join = self._join_here(comma)
            if join is None:
                break
            joins.append(place(join, token))
        if joins:
            first.set("joins", joins)

    def _join_here(self, after_comma: bool) -> exp.Join | None:
        start = self._index
        token = self.here
        natural = self._match(TokenType.NATURAL)
        side = next((w for w in ("LEFT", "RIGHT", "FULL") if self.accept(w)), None)
        if side:
            self.accept("OUTER")
        cross = not side and not natural and self.accept("CROSS")
        if not side and not cross:
            self.accept("INNER")
        if not self.accept("JOIN"):
            if self._index != start:
                self.fail_expected("'JOIN'")
            return None
        if after_comma and side in ("RIGHT", "FULL"):
            self.fail(f"A {side} JOIN behind a comma is ambiguous", at=token, hint="Write CROSS JOIN for the comma.")
        join = exp.Join(this=self.table_here(), kind="CROSS" if cross else "OUTER" if side else "INNER", side=side)
        if natural:
            join.set("method", "NATURAL")
        elif not cross:
            self._join_condition(join)
        return join

    def _join_condition(self, join: exp.Join) -> None:
        if self._match(TokenType.ON):
            join.set("on", self.expression_here())
        elif self._match(TokenType.USING):
            join.set("using", self.comma_separated(lambda: self.name("the name of a column")))
        else:
            self.fail_expected("'ON' or 'USING'", hint="A join without a condition is a CROSS JOIN.")


def _literal(token: Token) -> exp.Literal:
    return place(exp.Literal.string(token.text), token)
