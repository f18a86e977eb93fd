"""Flink SQL as a sqlglot dialect: only where it differs. `parse_expression` and `parse_query` are the way in.

How the trees look (what the rest of Headwater may rely on):

    f(a, b)               exp.Anonymous(this="f", expressions=[a, b]) for every function but those below
    COUNT SUM AVG MIN MAX ROW_NUMBER RANK DENSE_RANK     exp.Count, exp.Sum, …; DISTINCT is exp.Distinct inside
    CURRENT_TIMESTAMP …   exp.Anonymous without arguments (also CURRENT_DATE, CURRENT_TIME, LOCALTIME, LOCALTIMESTAMP)
    CAST, TRY_CAST        exp.Cast, exp.TryCast; `to_type(node.args["to"])` is the SqlType
    DATE '…', TIME '…', TIMESTAMP '…'    exp.Cast of a string literal to its exact type: TIMESTAMP(3) for three digits
    INTERVAL '1:30' MINUTE TO SECOND     exp.Interval(this=Literal, unit=Var | IntervalSpan); `interval_amount(node)`
    TRIM, EXTRACT, CEIL, FLOOR           exp.Trim(this, expression, position), exp.Extract, exp.Ceil/Floor(this, to=Var)
    SUBSTRING, POSITION, OVERLAY         exp.Anonymous with plain arguments, in the order of the words
    TIMESTAMPADD(DAY, …)  exp.Anonymous whose first argument is exp.Var (likewise TIMESTAMPDIFF)
    JSON_VALUE(…) and its kin            exp.Anonymous with exp.Kwarg for clauses, see `parse_json`
    f(x) FILTER (WHERE c) OVER w         exp.Window around exp.Filter, see `parse_windows`
    ARRAY[1, 2]           exp.Array        MAP['a', 1]   exp.Map(keys=exp.Array, values=exp.Array)
    ROW(1, 'a')           exp.Struct       (1, 'a')      exp.Tuple
    x[1]                  exp.Bracket(this=x, expressions=[index]) with the index as written: arrays count from 1
    a.b.c                 exp.Column of up to four parts, then exp.Dot: `name_path(node)` gives them in order
    a NOT LIKE b          exp.Not around the predicate, for all predicates; LIKE … ESCAPE is exp.Escape around exp.Like
    a IS [NOT] DISTINCT FROM b           exp.NullSafeNEQ [exp.NullSafeEQ]
    X'0AFF'               exp.HexString    N'…', U&'…'   string exp.Literal, decoded
    t /*+ OPTIONS(…) */   exp.Table(hints=[…]): `table_options(table)` gives the options
    TUMBLE(TABLE t, DESCRIPTOR(ts), …) in FROM           exp.Table(this=exp.Anonymous), with TABLE(…) around it or not
    t FOR SYSTEM_TIME AS OF x            exp.Table(version=exp.Version(expression=x))

`node.sql(dialect=Flink)` writes a tree back as Flink SQL (`dialect_writer`).

Places: `meta["start"]` and `meta["end"]` are offsets into the parsed text; `script.position_of` turns them into a line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.errors import TokenError
from sqlglot.tokens import Token

from headwater.errors import SqlError
from headwater.sql.dialect_writer import FlinkWriter
from headwater.sql.parse_literals import interval_amount
from headwater.sql.parse_queries import QueryParser
from headwater.sql.parse_source import Script
from headwater.sql.parse_tables import table_options
from headwater.sql.parse_tokens import FlinkTokenizer, SyntaxProblem
from headwater.sql.parse_types import data_type_node, to_type
from headwater.sql.types import SqlType

__all__ = [
    "Flink",
    "FlinkParser",
    "data_type_node",
    "interval_amount",
    "name_path",
    "parse_expression",
    "parse_query",
    "parse_type",
    "parsed",
    "table_options",
    "to_type",
    "tokenize",
]

_T = TypeVar("_T")


class FlinkParser(QueryParser):
    """All layers together."""


class Flink(Dialect):
    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    NULL_ORDERING = "nulls_are_small"
    TYPED_DIVISION = True
    INDEX_OFFSET = 0

    Tokenizer = FlinkTokenizer
    Parser = FlinkParser
    Generator = FlinkWriter


def tokenize(script: Script) -> list[Token]:
    try:
        return Flink().tokenize(script.sql)
    except SyntaxProblem as problem:
        raise script.error(problem) from None
    except TokenError as error:
        raise SqlError("The script cannot be read", script=script.name, detail=str(error.__cause__)) from None


def parsed(script: Script, tokens: list[Token], rule: Callable[[FlinkParser], _T]) -> _T:
    """What `rule` makes of all these tokens."""
    parser = FlinkParser(dialect=Flink)
    parser.load(tokens, script.sql)
    try:
        result = rule(parser)
        parser.expect_end()
        return result
    except SyntaxProblem as problem:
        raise script.error(problem) from None
    except RecursionError:
        first = tokens[0]
        raise script.error(SyntaxProblem("The statement is nested too deeply", first.start, first.end + 1)) from None


def parse_expression(text: str, name: str = "") -> exp.Expr:
    """One expression, or a SqlError."""
    script = Script(text, name)
    return parsed(script, tokenize(script), lambda parser: parser.expression_here())


def parse_query(text: str, name: str = "") -> exp.Expr:
    """One query without a `;`, or a SqlError."""
    script = Script(text, name)
    return parsed(script, tokenize(script), lambda parser: parser.query())


def parse_type(text: str, name: str = "") -> SqlType:
    """One type, as in a column's definition, or a SqlError."""
    script = Script(text, name)
    return parsed(script, tokenize(script), lambda parser: parser.data_type())


def name_path(node: exp.Expr) -> list[exp.Identifier]:
    """The names of `a.b.c`, first one first. A `*` at the end is left out."""
    if isinstance(node, exp.Dot):
        return [*name_path(node.this), node.expression]
    return [part for part in (node.parts if isinstance(node, exp.Column) else []) if isinstance(part, exp.Identifier)]
