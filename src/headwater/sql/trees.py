"""How Flink SQL looks as sqlglot trees, and what to read from them: what the rest of Headwater relies on.

    f(a, b)               exp.Anonymous(this="f", expressions=[a, b]) for every function but those below
    COUNT SUM AVG MIN MAX ROW_NUMBER RANK DENSE_RANK     exp.Count, exp.Sum, …; DISTINCT is exp.Distinct inside
    CURRENT_TIMESTAMP …   exp.Anonymous without arguments (also CURRENT_DATE, CURRENT_TIME, LOCALTIME, LOCALTIMESTAMP)
    CAST, TRY_CAST        exp.Cast, exp.TryCast; `to_type(node.args["to"])` is the SqlType
    DATE '…', TIME '…', TIMESTAMP '…'    exp.Cast of a string literal to its exact type: TIMESTAMP(3) for three digits
    INTERVAL '1:30' MINUTE TO SECOND     exp.Interval(this=Literal, unit=Var | IntervalSpan), see `intervals`
    TRIM, EXTRACT, CEIL, FLOOR           exp.Trim(this, expression, position), exp.Extract, exp.Ceil/Floor(this, to=Var)
    SUBSTRING, POSITION, OVERLAY         exp.Anonymous with plain arguments, in the order of the words
    TIMESTAMPADD(DAY, …)  exp.Anonymous whose first argument is exp.Var (likewise TIMESTAMPDIFF)
    JSON_VALUE(…) and its kin            exp.Anonymous with exp.Kwarg for clauses, see `parser.json_functions`
    f(x) FILTER (WHERE c) OVER w         exp.Window around exp.Filter, see `parser.windows`
    ARRAY[1, 2]           exp.Array        MAP['a', 1]   exp.Map(keys=exp.Array, values=exp.Array)
    ROW(1, 'a')           exp.Struct       (1, 'a')      exp.Tuple
    x[1]                  exp.Bracket(this=x, expressions=[index]) with the index as written: arrays count from 1
    a.b.c                 exp.Column of up to four parts, then exp.Dot: `name_path(node)` gives them in order
    a NOT LIKE b          exp.Not around the predicate, for all predicates; LIKE … ESCAPE is exp.Escape around exp.Like
    a IS [NOT] DISTINCT FROM b           exp.NullSafeNEQ [exp.NullSafeEQ]
    X'0AFF'               exp.HexString    N'…', U&'…'   string exp.Literal, decoded
    t /*+ OPTIONS(…) */   exp.Table(hints=[…]): `table_options(table)` gives the options
    SELECT /*+ h(…) */    exp.Select(hint=exp.Hint(expressions=[exp.Anonymous(this="h", …), …]))
    FROM, joins, queries  see `parser.relations` and `parser.queries`

Positions: `meta["start"]` and `meta["end"]` (inclusive) are offsets into the parsed text; `script.position_of` turns
them into a line and a column.
"""

from __future__ import annotations

from sqlglot import exp

from headwater.sql.paths import joined
from headwater.sql.types import SqlType

__all__ = ["data_type_node", "name_path", "option_keys", "table_options", "table_path", "to_type"]

_META = "sql_type"


def data_type_node(sql_type: SqlType) -> exp.DataType:
    """The type as a node of an expression tree: opaque to sqlglot, whose types have other names and parameters."""
    node = exp.DataType(this=exp.DataType.Type.USERDEFINED, kind=str(sql_type))
    node.meta[_META] = sql_type
    return node


def to_type(node: exp.Expr) -> SqlType:
    """The Flink type of an `exp.DataType` that came from a script (or `data_type_node`)."""
    sql_type = node.meta.get(_META)
    if not isinstance(sql_type, SqlType):
        raise TypeError(f"not a type from a Flink script: {node!r}")
    return sql_type


def name_path(node: exp.Expr) -> list[exp.Identifier]:
    """The names of `a.b.c`, first one first. A `*` at the end is left out."""
    if isinstance(node, exp.Dot):
        return [*name_path(node.this), node.expression]
    return [part for part in (node.parts if isinstance(node, exp.Column) else []) if isinstance(part, exp.Identifier)]


def table_options(table: exp.Expr) -> dict[str, str]:
    """The options that `/*+ OPTIONS(…) */` gives this table, in the order written."""
    return {p.this.name: p.args["value"].name for hint in table.args.get("hints") or [] for p in hint.expressions}


def option_keys(table: exp.Expr) -> dict[str, exp.Expr]:
    """Where `/*+ OPTIONS(…) */` names each of them."""
    return {p.this.name: p.this for hint in table.args.get("hints") or [] for p in hint.expressions}


def table_path(table: exp.Expr) -> str:
    """The name of an exp.Table with its database, as the catalog knows it."""
    return joined([part.name for part in (table.args.get("db"), table.this) if part is not None])
