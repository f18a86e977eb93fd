"""A compiled expression: Spark SQL text, its Flink type, and what it reads. Neither parser nor Spark in here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = [
    "ACCUMULATOR_FORM",
    "OWN_WATERMARK",
    "SPARK_SETTINGS",
    "AggregateCall",
    "CalledFunction",
    "Cases",
    "Expr",
    "KeptAs",
    "MovedTime",
    "Predicate",
    "UserAggregate",
]

ACCUMULATOR_FORM = 1
"""The version of the form in which accumulators of the user's functions are stored."""
KeptAs = Literal["accumulator", "values"]
"""What a group keeps for an aggregate function of the user's: its accumulator, or all values, over which it is
evaluated."""

# What the text of an Expr relies on; the session that evaluates it must have these.
SPARK_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",  # an overflow or a bad text is an error, not a wrong value
    "spark.sql.caseSensitive": "true",  # as names are in Flink
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # MAP['a', 1, 'a', 2] is {a=2} in Flink
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",  # Flink's rule for the types of decimal results
    "spark.sql.legacy.codingErrorAction": "true",  # what a character set lacks is replaced, as in Java, and no error
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.variable.substitute": "false",  # a name or a string may hold ${…}
}


class CalledFunction(Protocol):
    """A function of the user's that an expression calls."""

    @property
    def sql_name(self) -> str:
        """Under which Spark must know it."""
        ...

    @property
    def declaration(self) -> str:
        """Its name, types and version: what a checkpoint remembers of it."""
        ...


@dataclass(frozen=True)
class Predicate:
    """A condition as data, for whoever evaluates it without Spark: a column compared with a literal (`operator` is one
    of = <> < <= > >=), a column that IS NULL, or AND, OR, NOT over `operands`. `sql` is the text that it stands for."""

    sql: str
    operator: str
    column: str = ""
    literal: str | int | None = None
    operands: tuple[Predicate, ...] = ()


@dataclass(frozen=True)
class Cases:
    """CASE as data: the result of the first of these conditions that is TRUE. `sql` is the text that it stands for."""

    sql: str
    whens: tuple[tuple[Predicate, Expr], ...]
    otherwise: Expr | None


@dataclass(frozen=True)
class MovedTime:
    """A timestamp plus a length of time as data: an input column, and so many microseconds. `sql` is the text that it
    stands for."""

    sql: str
    column: str
    micros: int


OWN_WATERMARK = "__hw_watermark"
"""A column of rows that have an event time: the watermark of the partition that a row came from, before the row."""


@dataclass(frozen=True)
class Expr:
    """A scalar expression over the columns of one input.

    sql            Spark SQL; input columns are always backquoted
    type           the Flink type of the result; NOT NULL only if the result can never be NULL
    refs           the input columns it reads
    text           a short form for EXPLAIN, in Flink's words
    deterministic  False where two evaluations over the same row may differ: RAND, UUID, CURRENT_TIMESTAMP, …
    by_arrival     True where it depends on when a row came: CURRENT_WATERMARK. A batch that is computed again gives the
                   same, but a retraction of the row does not
    column         set where the expression is nothing but that input column
    literal        set where the expression is a literal: a text, a whole number, TRUE or FALSE, an interval's amount
    conjuncts      set where the expression is nothing but these, joined by AND
    keeps          set where different values of that input column always give different values: CAST(id AS STRING)
    functions      those of the user's that it calls
    predicate      set where it is such a condition; it counts only as long as `sql` stays (`as_predicate`)
    cases          set where it is a CASE of such conditions, as long as `sql` stays (`as_cases`)
    moved          set where it is a timestamp plus a length of time, as long as `sql` stays (`as_moved`)
    paths          set where of some of `refs` only fields are read: (column, field) for those, (column,) for the others
    """

    sql: str
    type: SqlType
    refs: frozenset[str]
    text: str
    deterministic: bool = True
    column: str | None = None
    literal: str | int | None = None
    functions: frozenset[CalledFunction] = frozenset()
    keeps: str | None = None
    conjuncts: tuple[Expr, ...] = ()
    predicate: Predicate | None = None
    cases: Cases | None = None
    moved: MovedTime | None = None
    paths: frozenset[tuple[str, ...]] | None = None
    by_arrival: bool = False

    @property
    def reads(self) -> frozenset[tuple[str, ...]]:
        """What it reads of the input: columns as (column,), and fields of a ROW as (column, field)."""
        return self.paths if self.paths is not None else frozenset((name,) for name in self.refs)

    @property
    def identifies(self) -> str | None:
        """The input column whose rows it tells apart."""
        return self.column or self.keeps

    @property
    def as_predicate(self) -> Predicate | None:
        return self.predicate if self.predicate is not None and self.predicate.sql == self.sql else None

    @property
    def as_moved(self) -> MovedTime | None:
        """A column by itself is moved by nothing."""
        if self.column is not None:
            return MovedTime(self.sql, self.column, 0)
        return self.moved if self.moved is not None and self.moved.sql == self.sql else None

    @property
    def as_field(self) -> tuple[str, str] | None:
        """An input column and a field of it, where it is nothing but that field."""
        for path in self.paths or ():
            if len(path) == 2 and self.sql == f"({quote_name(path[0])}).{quote_name(path[1])}":
                return path[0], path[1]
        return None

    @property
    def as_cases(self) -> Cases | None:
        return self.cases if self.cases is not None and self.cases.sql == self.sql else None


@dataclass(frozen=True)
class UserAggregate:
    """An aggregate function of the user's: the `call` as an expression, which Spark never evaluates, and what the
    function can do (`accumulate` into something that can be stored, `retract`, `merge`). The planner decides what is
    `kept`."""

    call: Expr
    can: frozenset[str]
    kept: KeptAs = "values"

    def keeps(self, needed: frozenset[str]) -> KeptAs:
        """What a group must keep if these methods are called."""
        return "accumulator" if needed <= self.can else "values"


@dataclass(frozen=True)
class AggregateCall:
    """One aggregate of a GROUP BY. `argument` is None for COUNT(*); `type` is Flink's result type. `separator` is that
    of LISTAGG. With `nulls`, a NULL is a value like any other (ARRAY_AGG). A function of the user's has a ROW of its
    arguments as `argument`."""

    function: str  # as `sql.expressions.aggregates` names it
    argument: Expr | None
    distinct: bool
    filter: Expr | None
    type: SqlType
    text: str
    separator: str = ""
    nulls: bool = False
    user: UserAggregate | None = None

    @property
    def keeps_order(self) -> bool:
        """Whether it depends on the order in which rows come."""
        return self.function in _BY_ARRIVAL or self.is_list

    @property
    def is_list(self) -> bool:
        """Whether the result is made of all values."""
        return self.function in _LISTS or (self.user is not None and self.user.kept == "values")

    @property
    def accumulates(self) -> bool:
        """Whether a group keeps the accumulator of a function of the user's."""
        return self.user is not None and self.user.kept == "accumulator"

    def keeps_values(self, *, retracting: bool) -> bool:
        """Whether its values are remembered one by one."""
        first_or_best = self.function in {"MIN", "MAX", *_BY_ARRIVAL}
        return self.argument is not None and (self.distinct or self.is_list or (retracting and first_or_best))


_BY_ARRIVAL = frozenset({"FIRST_VALUE", "LAST_VALUE"})
_LISTS = frozenset({"LISTAGG", "ARRAY_AGG", "COLLECT", "JSON_ARRAYAGG", "JSON_OBJECTAGG"})
