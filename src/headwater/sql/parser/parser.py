"""The parts of the parser put together. They share one cursor and reach each other through `Parser`.

cursor          tokens, what is expected, faults with their position
names, hints    names of tables and columns, options and hints
types           DECIMAL(10, 2) NOT NULL
literals        1.5, 'a', DATE '2024-01-31', INTERVAL '1' DAY
expressions     operators, predicates and operands
functions       calls, with json_functions
windows         FILTER, OVER, WINDOW, ORDER BY
relations       FROM and joins
queries         SELECT, VALUES, WITH, set operations
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headwater.sql.parser.cursor import Cursor
from headwater.sql.parser.expressions import ExpressionParser
from headwater.sql.parser.functions import FunctionParser
from headwater.sql.parser.hints import HintParser
from headwater.sql.parser.literals import LiteralParser
from headwater.sql.parser.names import NameParser
from headwater.sql.parser.queries import QUERY_STARTS, QueryParser
from headwater.sql.parser.relations import RelationParser
from headwater.sql.parser.types import TypeParser
from headwater.sql.parser.windows import WindowParser
from headwater.sql.tokens import Token
from headwater.sql.types import SqlType

__all__ = ["Parser"]


class Parser:
    """Parses one statement, or a part of one. Every method reads what it is named for, or raises a SyntaxFault."""

    def __init__(self, tokens: Sequence[Token], sql: str) -> None:
        self.cursor = Cursor(tokens, sql)
        self.hints = HintParser(self.cursor)
        self.names = NameParser(self.cursor, self.hints)
        self.types = TypeParser(self.cursor)
        self.literals = LiteralParser(self.cursor, self.types)
        self.windows = WindowParser(self)
        self.functions = FunctionParser(self)
        self.expressions = ExpressionParser(self)
        self.relations = RelationParser(self)
        self.queries = QueryParser(self)

    def expression(self) -> exp.Expr:
        return self.expressions.expression()

    def operand(self) -> exp.Expr:
        """An operand of a predicate: an expression without predicates, AND and OR."""
        return self.expressions.operand()

    def query(self) -> exp.Expr:
        return self.queries.query()

    def at_query(self) -> bool:
        """Whether a query comes next that is not in parentheses."""
        table = self.cursor.at("TABLE") and not self.cursor.at("TABLE", "(")  # TABLE t, not TABLE(f(x))
        return table or self.cursor.at_any(QUERY_STARTS)

    def data_type(self) -> SqlType:
        return self.types.data_type()

    def comment(self) -> str:
        """`COMMENT 'string'`, which may be left out everywhere."""
        return self.literals.string().name if self.cursor.accept("COMMENT") else ""
