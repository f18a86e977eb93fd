"""Expressions: what an operand is, what may follow it, and the predicates.

Operators are sqlglot's; the tables below leave only those that Flink has, on the levels where Calcite has them (`||`
beside `*`, all comparisons on one level, IS below them). Functions are read in `parse_functions`.
"""

from __future__ import annotations

from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.parser import IsPredicatePrecedence, Parser, binary_range_parser
from sqlglot.tokens import TokenType

from headwater.sql.parse_cursor import place
from headwater.sql.parse_literals import LiteralParser

__all__ = ["ExpressionParser"]


class ExpressionParser(LiteralParser):
    RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
        TokenType.BETWEEN: lambda self, this: self._parse_between(this),
        TokenType.IN: lambda self, this: self._parse_in(this),
        TokenType.IS: lambda self, this: self._parse_is(this),
        TokenType.LIKE: binary_range_parser(exp.Like),
        TokenType.SIMILAR_TO: binary_range_parser(exp.SimilarTo),
    }
    UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
        key: Parser.UNARY_PARSERS[key] for key in (TokenType.PLUS, TokenType.DASH, TokenType.NOT)
    }
    IS_PREDICATE_PRECEDENCE: ClassVar[IsPredicatePrecedence] = IsPredicatePrecedence.LOW
    EQUALITY: ClassVar[dict[TokenType, Any]] = {
        TokenType.EQ: exp.EQ,
        TokenType.NEQ: exp.NEQ,
        TokenType.GT: exp.GT,
        TokenType.GTE: exp.GTE,
        TokenType.LT: exp.LT,
        TokenType.LTE: exp.LTE,
    }
    COMPARISON: ClassVar[dict[TokenType, Any]] = {}
    TERM: ClassVar[dict[TokenType, Any]] = {TokenType.DASH: exp.Sub, TokenType.PLUS: exp.Add}
    FACTOR: ClassVar[dict[TokenType, Any]] = {
        TokenType.STAR: exp.Mul,
        TokenType.SLASH: exp.Div,
        TokenType.MOD: exp.Mod,
        TokenType.DPIPE: exp.DPipe,
    }
    PLACEHOLDER_PARSERS: ClassVar[dict[TokenType, Any]] = {}

    def _parse_unary(self) -> exp.Expr | None:
        token = self.here
        if self._match_set(self.UNARY_PARSERS):
            node: exp.Expr | None = self.UNARY_PARSERS[self.before.token_type](self)
            return place(node, token)
        operand = self._operand()
        if operand is None:
            self.fail_expected("an expression")
        return self._parse_column_ops(place(operand, token))

    def _operand(self) -> exp.Expr | None:
        token = self.here
        kind = token.token_type
        if (literal := self._literal()) is not None:
            return literal
        if kind == TokenType.L_PAREN:
            return self._parse_paren()
        if kind == TokenType.CASE:
            self.skip()
            return self._parse_case()
        if kind in (TokenType.EXISTS, TokenType.ANY, TokenType.SOME, TokenType.ALL):
            return self._quantified()
        if kind == TokenType.ROW and self._next.token_type == TokenType.L_PAREN:
            self.skip()
            return exp.Struct(expressions=self.comma_separated(self.expression_here))
        if self.ahead_type(TokenType.VAR, TokenType.L_BRACKET) and token.text.upper() in ("ARRAY", "MAP"):
            return self._collection()
        return self._parse_function_call() or self._column()

    def expression_here(self) -> exp.Expr:
        """A whole expression, which must be here."""
        node = self._parse_disjunction()
        assert node is not None
        return node

    def operand_here(self) -> exp.Expr:
        """An operand of a comparison, which must be here."""
        node = self._parse_bitwise()
        assert node is not None
        return node

    def query_ahead(self) -> bool:
        return any(self.ahead(word) for word in ("SELECT", "WITH", "VALUES"))

    def _parse_bitwise(self) -> exp.Expr | None:
        return self._parse_term()

    def _parse_at_time_zone(self, this: exp.Expr | None) -> exp.Expr | None:
        return this

    def _parse_paren(self) -> exp.Expr | None:
        """`(query)` is `exp.Subquery`, `(a, b)` is `exp.Tuple`, `(a)` is `exp.Paren`."""
        token = self.skip()
        if self.query_ahead():
            node: exp.Expr = exp.Subquery(this=self._parse_select())
        else:
            items = self._parse_csv(self.expression_here)
            node = self._parse_set_operations(items[0]) or items[0]
            if len(items) > 1:
                node = exp.Tuple(expressions=items)
            elif not isinstance(node, exp.Subquery):
                node = exp.Subquery(this=node) if isinstance(node, exp.Query) else exp.Paren(this=node)
        self.expect(")")
        return place(node, token)

    def _column(self) -> exp.Expr | None:
        kind = self.here.token_type
        if kind in self.RESERVED_NAMES or kind not in self.ID_VAR_TOKENS:
            return None
        return exp.Column(this=self.name())

    def _parse_column_ops(self, this: exp.Expr | None) -> exp.Expr | None:
        """`.field`, `.*` and `[index]`; an index stays exactly as written (1-based for arrays, a key for maps)."""
        while this is not None:
            if self._match(TokenType.L_BRACKET):
                this = exp.Bracket(this=this, expressions=[self.expression_here()]).update_positions(this)
                self.expect("]")
            elif self._match(TokenType.DOT):
                this = self._field_of(this)
            else:
                break
        return this

    def _field_of(self, this: exp.Expr) -> exp.Expr:
        star = self.here
        field: exp.Expr
        if self._match(TokenType.STAR):
            field = place(exp.Star(), star)
        else:
            token = self.here
            if not token or (token.token_type != TokenType.IDENTIFIER and not token.text[:1].isidentifier()):
                self.fail_expected("the name of a field")
            field = self._identifier_expression(self.skip(), quoted=token.token_type == TokenType.IDENTIFIER)
        if isinstance(this, exp.Column) and not this.args.get("catalog") and not this.is_star:
            parts = {"table": this.this, "db": this.args.get("table"), "catalog": this.args.get("db")}
            return exp.Column(this=field, **parts).update_positions(this)
        return exp.Dot(this=this, expression=field).update_positions(this)

    def _collection(self) -> exp.Expr:
        """ARRAY[…] is `exp.Array`; MAP[k, v, …] is `exp.Map` with an `exp.Array` of keys and one of values."""
        word = self.skip()
        self.expect("[")
        items = [] if self.ahead("]") else self._parse_csv(self.expression_here)
        self.expect("]")
        if word.text.upper() == "ARRAY":
            return exp.Array(expressions=items)
        if len(items) % 2:
            self.fail("MAP[…] needs a value for every key", at=word, hint="Write MAP['key', value, 'key', value].")
        return exp.Map(keys=exp.Array(expressions=items[::2]), values=exp.Array(expressions=items[1::2]))

    def _quantified(self) -> exp.Expr | None:
        """EXISTS (query), and ANY/SOME/ALL (query) on the right of a comparison."""
        token = self.here
        if self._next.token_type != TokenType.L_PAREN:
            return None
        self.skip()
        self.expect("(")
        query = self._parse_select()
        self.expect(")")
        kinds = {TokenType.EXISTS: exp.Exists, TokenType.ALL: exp.All}
        return place(kinds.get(token.token_type, exp.Any)(this=query), token)

    def _parse_case(self) -> exp.Expr | None:
        token = self.before
        operand = None if self.ahead("WHEN") else self.expression_here()
        branches = []
        while self.accept("WHEN"):
            when = self.before
            condition = self.expression_here()
            self.expect("THEN")
            branches.append(place(exp.If(this=condition, true=self.expression_here()), when))
        if not branches:
            self.fail_expected("'WHEN'")
        default = self.expression_here() if self.accept("ELSE") else None
        self.expect("END")
        return place(exp.Case(this=operand, ifs=branches, default=default), token)

    def _negate_range(self, this: exp.Expr | None = None) -> exp.Expr | None:
        """`a NOT LIKE b` is `exp.Not` around `exp.Like`, as for every other predicate."""
        return exp.Not(this=this) if this is not None else None

    def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
        """IS NULL, TRUE, FALSE and UNKNOWN are `exp.Is`; IS DISTINCT FROM is `exp.NullSafeNEQ` (with NOT: `EQ`)."""
        negated = self.accept("NOT")
        if self.accept("DISTINCT", "FROM"):
            right = self.operand_here()
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return self._build_predicate(kind, this, right)
        if self.accept("JSON"):
            return self._is_json(this, negated)
        token = self.here
        kinds = (TokenType.NULL, TokenType.TRUE, TokenType.FALSE, TokenType.UNKNOWN)
        if token.token_type not in kinds:
            self.fail_expected("NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON")
        node = self._build_predicate(exp.Is, this, self._literal())
        return exp.Not(this=node) if negated else node

    def _is_json(self, this: exp.Expr | None, negated: bool) -> exp.Expr:
        word = next((w for w in ("VALUE", "SCALAR", "ARRAY", "OBJECT") if self.accept(w)), "VALUE")
        node = self._build_predicate(exp.Is, this, exp.JSON(this=word))
        return exp.Not(this=node) if negated else node

    def _parse_between(self, this: exp.Expr | None) -> exp.Between:
        symmetric = self.accept("SYMMETRIC")
        if not symmetric:
            self.accept("ASYMMETRIC")
        low = self.operand_here()
        self.expect("AND")
        return exp.Between(this=this, low=low, high=self.operand_here(), symmetric=symmetric or None)

    def _parse_in(self, this: exp.Expr | None, alias: bool = False) -> exp.In:
        self.expect("(")
        if self.query_ahead():
            node = exp.In(this=this, query=exp.Subquery(this=self._parse_select()))
        else:
            node = exp.In(this=this, expressions=self._parse_csv(self.expression_here))
        self.expect(")")
        return node

    def _parse_escape(self, this: exp.Expr | None) -> exp.Expr | None:
        if not self.accept("ESCAPE"):
            return this
        token = self.here
        character = self.text()
        if len(character.name) != 1:
            self.fail("ESCAPE takes one character", at=token)
        return exp.Escape(this=this, expression=character)
