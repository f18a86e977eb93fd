"""A compiled expression: Spark SQL text, its Flink type, and what it reads. No parser and no Spark in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headwater.sql.types import SqlType

__all__ = ["SPARK_SETTINGS", "AggregateCall", "Expr"]

# What the text of an Expr relies on; the session that evaluates it must have these.
SPARK_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",  # an overflow or a bad text is an error, not a wrong value
    "spark.sql.caseSensitive": "true",  # as names are in Flink
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # MAP['a', 1, 'a', 2] is {a=2} in Flink
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",  # Flink's rule for the types of decimal results
    "spark.sql.parser.escapedStringLiterals": "false",
}


@dataclass(frozen=True)
class Expr:
    """A scalar expression over the columns of one input.

    sql            Spark SQL; input columns are always backquoted
    type           the Flink type of the result; NOT NULL only if the result can never be NULL
    refs           the input columns it reads
    text           a short form for EXPLAIN, in Flink's words
    deterministic  False where two evaluations over the same row may differ: RAND, UUID, CURRENT_TIMESTAMP, …
    column         set where the expression is nothing but that input column
    literal        set where the expression is a literal: a text, a whole number, TRUE or FALSE, an interval's amount
    """

    sql: str
    type: SqlType
    refs: frozenset[str]
    text: str
    deterministic: bool = True
    column: str | None = None
    literal: str | int | None = None


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a GROUP BY. `argument` is None for COUNT(*); `type` is Flink's result type."""

    function: str  # COUNT, SUM, AVG, MIN or MAX
    argument: Expr | None
    distinct: bool
    filter: Expr | None
    type: SqlType
    text: str
