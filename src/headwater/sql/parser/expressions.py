"""Expressions by precedence climbing: operators and predicates, and the operands between them.

The levels are those of Calcite, loosest first; an operator's right operand is all that binds tighter:

    OR   AND   NOT   comparisons and IS   BETWEEN, IN, LIKE, SIMILAR TO   + -   * / % ||   sign   .field [index]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.sql.parser.cursor import RESERVED, identifier, positioned
from headwater.sql.tokens import TokenKind

if TYPE_CHECKING:
    from headwater.sql.parser.parser import Parser

__all__ = ["ExpressionParser"]

_OR, _AND, _COMPARISON, _RANGE, _TERM, _FACTOR = 1, 2, 3, 4, 5, 6
_BINARY: dict[str, tuple[int, type[exp.Binary]]] = {
    "OR": (_OR, exp.Or),
    "AND": (_AND, exp.And),
    "=": (_COMPARISON, exp.EQ),
    "<>": (_COMPARISON, exp.NEQ),
    "!=": (_COMPARISON, exp.NEQ),
    ">": (_COMPARISON, exp.GT),
    ">=": (_COMPARISON, exp.GTE),
    "<": (_COMPARISON, exp.LT),
    "<=": (_COMPARISON, exp.LTE),
    "+": (_TERM, exp.Add),
    "-": (_TERM, exp.Sub),
    "*": (_FACTOR, exp.Mul),
    "/": (_FACTOR, exp.Div),
    "%": (_FACTOR, exp.Mod),
    "||": (_FACTOR, exp.DPipe),
}
_RANGES = ("BETWEEN", "IN", "LIKE", "SIMILAR TO")
_LEVELS = {"IS": _COMPARISON, **dict.fromkeys(_RANGES, _RANGE), **{word: rule[0] for word, rule in _BINARY.items()}}
_COMPARISONS = tuple(kind for level, kind in _BINARY.values() if level == _COMPARISON)
_LOOSE = (exp.Not, exp.Is, exp.NullSafeEQ, exp.NullSafeNEQ)  # looser than comparisons, or written as if they were
_TRUTH_VALUES = ("NULL", "TRUE", "FALSE", "UNKNOWN")
_QUANTIFIERS: dict[str, type[exp.SubqueryPredicate]] = {
    "EXISTS": exp.Exists,
    "ALL": exp.All,
    "ANY": exp.Any,
    "SOME": exp.Any,
}


class ExpressionParser:
    def __init__(self, parser: Parser) -> None:
        self.parser = parser
        self.cursor = parser.cursor

    def expression(self) -> exp.Expr:
        """A whole expression."""
        return self._climb(_OR)

    def operand(self) -> exp.Expr:
        """An operand of a predicate: it ends before AND, which a BETWEEN needs for itself."""
        return self._climb(_TERM)

    def _climb(self, loosest: int) -> exp.Expr:
        """Operands joined by operators that bind at least as tight as `loosest`."""
        token = self.cursor.here
        if self.cursor.accept("NOT"):
            left: exp.Expr = positioned(exp.Not(this=self._climb(_COMPARISON)), token)
            tightest = _AND  # NOT took everything that binds tighter than it
        else:
            left = self._signed()
            tightest = _FACTOR
        while loosest <= (level := self._level_here()) <= tightest:
            # What has been read is the left operand of an operator that binds as tight or looser. IS ends like a
            # postfix operator, so another predicate may follow it.
            tightest = _RANGE if self.cursor.at("IS") else level
            left = self._joined(left, level)
        return left

    def _level_here(self) -> int:
        word = self.cursor.here.word
        # NOT in front of BETWEEN, IN and LIKE belongs to them, and binds as they do; elsewhere it begins an operand.
        if word == "NOT" and self.cursor.peek().word in _RANGES:
            return _RANGE
        return _LEVELS.get(word, 0)

    def _joined(self, left: exp.Expr, level: int) -> exp.Expr:
        negated = self.cursor.accept("NOT")
        word = self.cursor.advance().word
        if level in (_COMPARISON, _RANGE):
            left = _grouped(left, word)
        if word == "IS":
            return self._is(left)
        if level == _RANGE:
            node = self._range(left, word)
            return exp.Not(this=node) if negated else node
        right = self._climb(level + 1)
        if level == _COMPARISON and isinstance(right, exp.Not):  # NOT would take what follows the comparison
            right = exp.Paren(this=right)
        # Of the operands' own type, and an error for zero: nothing for sqlglot to adapt.
        if word == "/":
            return exp.Div(this=left, expression=right, typed=True, safe=False)
        return _BINARY[word][1](this=left, expression=right)

    def _signed(self) -> exp.Expr:
        token = self.cursor.here
        # A plus sign changes nothing, so it is no node: `+1` and `1` group alike.
        if self.cursor.accept("+"):
            return self._signed()
        if self.cursor.accept("-"):
            return positioned(exp.Neg(this=self._signed()), token)
        return self._accessed(positioned(self._primary(), token))

    def _is(self, left: exp.Expr) -> exp.Expr:
        negated = self.cursor.accept("NOT")
        if self.cursor.accept("DISTINCT", "FROM"):
            kind = exp.NullSafeEQ if negated else exp.NullSafeNEQ
            return kind(this=left, expression=self.operand())
        if self.cursor.accept("JSON"):
            form = self.cursor.accept_any(("VALUE", "SCALAR", "ARRAY", "OBJECT")) or "VALUE"
            right: exp.Expr = exp.JSON(this=form)
        elif self.cursor.at_any(_TRUTH_VALUES):
            right = self.parser.literals.truth_value()
        else:
            self.cursor.fail_expected("NULL, TRUE, FALSE, UNKNOWN, DISTINCT FROM or JSON")
        node = exp.Is(this=left, expression=right)
        return exp.Not(this=node) if negated else node

    def _range(self, left: exp.Expr, word: str) -> exp.Expr:
        if word == "BETWEEN":
            return self._between(left)
        if word == "IN":
            return self._in(left)
        kind = exp.Like if word == "LIKE" else exp.SimilarTo
        node = kind(this=left, expression=self.operand())
        if not self.cursor.accept("ESCAPE"):
            return node
        token = self.cursor.here
        character = self.parser.literals.string()
        if len(character.name) != 1:
            self.cursor.fail("ESCAPE takes one character", at=token)
        return exp.Escape(this=node, expression=character)

    def _between(self, left: exp.Expr) -> exp.Between:
        symmetric = self.cursor.accept_any(("SYMMETRIC", "ASYMMETRIC")) == "SYMMETRIC"
        low = self.operand()
        self.cursor.expect("AND")
        return exp.Between(this=left, low=low, high=self.operand(), symmetric=symmetric or None)

    def _in(self, left: exp.Expr) -> exp.In:
        self.cursor.expect("(")
        if self.parser.at_query():
            node = exp.In(this=left, query=exp.Subquery(this=self.parser.query()))
        else:
            node = exp.In(this=left, expressions=self.cursor.comma_separated(self.expression))
        self.cursor.expect(")")
        return node

    def _primary(self) -> exp.Expr:
        """What an operator may be applied to."""
        literal = self.parser.literals.literal()
        if literal is not None:
            return literal
        token, behind = self.cursor.here, self.cursor.peek().word
        if token.word == "(":
            return self._parenthesized()
        if token.word == "CASE":
            return self._case()
        if token.word == "INTERVAL" and self._at_interval_of():
            return self._interval_of()
        if token.word in _QUANTIFIERS and behind == "(":
            return self._quantified()
        if token.word == "ROW" and behind == "(":
            self.cursor.advance()
            return exp.Struct(expressions=self.cursor.parenthesized(self.expression))
        if token.word in ("ARRAY", "MAP") and behind == "[":
            return self._collection()
        call = self.parser.functions.call()
        return call if call is not None else self._column()

    def _at_interval_of(self) -> bool:
        """`INTERVAL (` or `INTERVAL a.b DAY`: INTERVAL alone is a name."""
        if self.cursor.peek().word == "(":
            return True
        distance = 1
        while self.cursor.peek(distance + 1).word == ".":
            distance += 2
        named = self.cursor.peek(distance).kind in (TokenKind.WORD, TokenKind.NAME)
        return named and self.parser.literals.at_unit(distance + 1)

    def _interval_of(self) -> exp.Mul:
        """`INTERVAL quantity DAY`, `INTERVAL (a + b) DAY`: so many times INTERVAL '1' DAY."""
        token = self.cursor.expect("INTERVAL")
        number = self._parenthesized() if self.cursor.at("(") else self._accessed(self._column())
        return positioned(exp.Mul(this=number, expression=self.parser.literals.unit_interval(token)), token)

    def _column(self) -> exp.Column:
        token = self.cursor.here
        if token.kind is TokenKind.NAME or (token.kind is TokenKind.WORD and token.word not in RESERVED):
            return exp.Column(this=self.cursor.name())
        return self.cursor.fail_expected("an expression")

    def _parenthesized(self) -> exp.Expr:
        """`(query)` is `exp.Subquery`, `(a, b)` is `exp.Tuple`, `(a)` is `exp.Paren`."""
        token = self.cursor.expect("(")
        if self.parser.at_query():
            node: exp.Expr = exp.Subquery(this=self.parser.query())
        else:
            items = self.cursor.comma_separated(self.expression)
            node = exp.Tuple(expressions=items) if len(items) > 1 else self._one_in_parentheses(items[0])
        self.cursor.expect(")")
        if self.cursor.at("OVERLAPS"):
            hint = "(a, b) OVERLAPS (c, d) is a <= d AND c <= b, if a is before b and c before d."
            self.cursor.fail("OVERLAPS is not supported", hint=hint)
        return positioned(node, token)

    def _one_in_parentheses(self, item: exp.Expr) -> exp.Expr:
        """Of `((SELECT 1) UNION SELECT 2)` the first query looks like an expression until UNION follows."""
        if not isinstance(item, exp.Query):
            return exp.Paren(this=item)
        query = self.parser.queries.continued(item)
        return query if isinstance(query, exp.Subquery) else exp.Subquery(this=query)

    def _accessed(self, node: exp.Expr) -> exp.Expr:
        """`.field`, `.*` and `[index]`; an index stays exactly as written (1-based for arrays, a key for maps)."""
        while True:
            if self.cursor.accept("["):
                node = exp.Bracket(this=node, expressions=[self.expression()]).update_positions(node)
                self.cursor.expect("]")
            elif self.cursor.accept("."):
                node = self._field_of(node)
            else:
                return node

    def _field_of(self, node: exp.Expr) -> exp.Expr:
        token = self.cursor.here
        if self.cursor.accept("*"):
            field: exp.Expr = positioned(exp.Star(), token)
        elif token.kind is TokenKind.NAME or (
            token.kind is TokenKind.WORD and token.text.replace("$", "_").isidentifier()
        ):
            field = identifier(self.cursor.advance())
        else:
            self.cursor.fail_expected("the name of a field")
        if isinstance(node, exp.Column) and not node.args.get("catalog") and not node.is_star:
            # a.b.c may be a column of a table or a field of a row; which one is known only in a scope.
            parts = {"table": node.this, "db": node.args.get("table"), "catalog": node.args.get("db")}
            return exp.Column(this=field, **parts).update_positions(node)
        return exp.Dot(this=node, expression=field).update_positions(node)

    def _collection(self) -> exp.Expr:
        """ARRAY[…] is `exp.Array`; MAP[k, v, …] is `exp.Map` with an `exp.Array` of keys and one of values."""
        token = self.cursor.advance()
        self.cursor.expect("[")
        items = [] if self.cursor.at("]") else self.cursor.comma_separated(self.expression)
        self.cursor.expect("]")
        if token.word == "ARRAY":
            return exp.Array(expressions=items)
        if len(items) % 2:
            hint = "Write MAP['key', value, 'key', value]."
            self.cursor.fail("MAP[…] needs a value for every key", at=token, hint=hint)
        return exp.Map(keys=exp.Array(expressions=items[::2]), values=exp.Array(expressions=items[1::2]))

    def _quantified(self) -> exp.Expr:
        """EXISTS (query), and ANY, SOME or ALL (query) on the right of a comparison."""
        token = self.cursor.advance()
        self.cursor.expect("(")
        query = self.parser.query()
        self.cursor.expect(")")
        return positioned(_QUANTIFIERS[token.word](this=query), token)

    def _case(self) -> exp.Case:
        token = self.cursor.expect("CASE")
        operand = None if self.cursor.at("WHEN") else self.expression()
        branches = [self._branch()]
        while self.cursor.at("WHEN"):
            branches.append(self._branch())
        default = self.expression() if self.cursor.accept("ELSE") else None
        self.cursor.expect("END")
        return positioned(exp.Case(this=operand, ifs=branches, default=default), token)

    def _branch(self) -> exp.If:
        token = self.cursor.expect("WHEN")
        condition = self.expression()
        self.cursor.expect("THEN")
        return positioned(exp.If(this=condition, true=self.expression()), token)


def _grouped(left: exp.Expr, word: str) -> exp.Expr:
    """The left operand of a predicate, in parentheses if its text would otherwise read back as another tree."""
    if isinstance(left, _LOOSE) or (word == "IS" and isinstance(left, _COMPARISONS)):
        return exp.Paren(this=left)
    return left
