"""Flink SQL as a sqlglot dialect: only where it differs. `parse_expression` and `parse_query` are the way in.

How the trees look (what the rest of Headwater may rely on):

    f(a, b)               exp.Anonymous(this="f", expressions=[a, b]) for every function but those below
    COUNT SUM AVG MIN MAX ROW_NUMBER RANK DENSE_RANK     exp.Count, exp.Sum, …; DISTINCT is exp.Distinct inside
    CURRENT_TIMESTAMP …   exp.Anonymous without arguments (also CURRENT_DATE, CURRENT_TIME, LOCALTIME, LOCALTIMESTAMP)
    CAST, TRY_CAST        exp.Cast, exp.TryCast; `to_type(node.args["to"])` is the SqlType
    DATE '…', TIME '…', TIMESTAMP '…'    exp.Cast of a string literal to exactly that type, TIMESTAMP(3) for three digits
    INTERVAL '1:30' MINUTE TO SECOND     exp.Interval(this=Literal, unit=Var | IntervalSpan); `interval_amount(node)`
    TRIM, EXTRACT, CEIL, FLOOR           exp.Trim(this, expression, position), exp.Extract, exp.Ceil/Floor(this, to=Var)
    SUBSTRING, POSITION, OVERLAY         exp.Anonymous with plain arguments, in the order of the words
    TIMESTAMPADD(DAY, …)  exp.Anonymous whose first argument is exp.Var
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

Places: `meta["start"]` and `meta["end"]` are offsets into the parsed text; `script.position_of` turns them into a line.
"""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy

from headwater.sql.parse_literals import interval_amount
from headwater.sql.parse_functions import FunctionParser as FlinkParser
from headwater.sql.parse_tokens import FlinkTokenizer
from headwater.sql.parse_types import to_type

__all__ = ["Flink", "FlinkParser", "interval_amount", "name_path", "to_type"]


class Flink(Dialect):
    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    NULL_ORDERING = "nulls_are_small"

    Tokenizer = FlinkTokenizer
    Parser = FlinkParser


def parse_expression(text: str) -> exp.Expr:
    p = FlinkParser(dialect=Flink)
    p.load(Flink().tokenize(text), text)
    node = p.expression_here()
    p.expect_end()
    return node


def name_path(node: exp.Expr) -> list[exp.Identifier]:
    """The names of `a.b.c`, first one first."""
    if isinstance(node, exp.Dot):
        return [*name_path(node.this), node.expression]
    return list(node.parts)
