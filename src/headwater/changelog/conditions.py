"""Predicates over columns with SQL's three-valued logic: what a join asks of a pair of rows beside equal keys.

A planner builds a tree of the nodes below; its operands have the same type on both sides of a comparison, cast where
they had not. NaN is neither equal to anything nor less or greater, but it is not distinct from NaN. What does not fit
raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from headwater.changelog.columns import constant, equal_rows, flat
from headwater.changelog.ordering import sortable_floats
from headwater.changelog.pairing import Pairs
from headwater.errors import JobError

__all__ = [
    "And",
    "Arithmetic",
    "CaseWhen",
    "Cast",
    "ColumnRef",
    "Compare",
    "Condition",
    "FieldRef",
    "IsNull",
    "Literal",
    "Not",
    "Or",
    "of_pairs",
]

Columns = Mapping[str, pa.Array]


class Condition(Protocol):
    """Or any other expression: a condition is one whose values are booleans. NULL means unknown."""

    @property
    def columns(self) -> frozenset[str]:
        """The names it reads."""

    def evaluate(self, columns: Columns, length: int) -> pa.Array: ...


@dataclass(frozen=True)
class ColumnRef:
    name: str

    @property
    def columns(self) -> frozenset[str]:
        return frozenset([self.name])

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        return columns[self.name]


@dataclass(frozen=True)
class Literal:
    value: Any
    type: pa.DataType

    @property
    def columns(self) -> frozenset[str]:
        return frozenset()

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        return constant(self.value, length, self.type)


_COMPARISONS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
NULL_SAFE = "IS NOT DISTINCT FROM"


@dataclass(frozen=True)
class Compare:
    """`operator` is one of = <> < <= > >= and IS NOT DISTINCT FROM."""

    operator: str
    left: Condition
    right: Condition

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        left, right = self.left.evaluate(columns, length), self.right.evaluate(columns, length)
        if self.operator == NULL_SAFE:
            if pa.types.is_floating(left.type):  # which have two zeros, and several NaN
                left, right = sortable_floats(left), sortable_floats(right)
            return pa.array(equal_rows([left], [right], length))
        return _COMPARISONS[self.operator](left, right)


# Checked, because Arrow's other functions wrap around where a number does not fit.
_ARITHMETIC: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "/": pc.divide_checked,
}


@dataclass(frozen=True)
class Arithmetic:
    """`operator` is one of + - * /; `type` that of the result. A time plus or minus a duration is a time."""

    operator: str
    left: Condition
    right: Condition
    type: pa.DataType

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        left, right = self.left.evaluate(columns, length), self.right.evaluate(columns, length)
        try:
            return _ARITHMETIC[self.operator](left, right).cast(self.type)
        except pa.ArrowInvalid as error:
            raise _failed(f"{left.type} {self.operator} {right.type}", error) from error


@dataclass(frozen=True)
class Cast:
    operand: Condition
    type: pa.DataType

    @property
    def columns(self) -> frozenset[str]:
        return self.operand.columns

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        try:
            return self.operand.evaluate(columns, length).cast(self.type)
        except pa.ArrowInvalid as error:
            raise _failed(f"CAST to {self.type}", error) from error


@dataclass(frozen=True)
class _OfOne:
    operand: Condition

    @property
    def columns(self) -> frozenset[str]:
        return self.operand.columns


@dataclass(frozen=True)
class _OfTwo:
    left: Condition
    right: Condition

    @property
    def columns(self) -> frozenset[str]:
        return self.left.columns | self.right.columns


@dataclass(frozen=True)
class And(_OfTwo):
    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        # By Kleene: FALSE AND NULL is FALSE. Arrow's `and_` makes it NULL.
        return pc.and_kleene(self.left.evaluate(columns, length), self.right.evaluate(columns, length))


@dataclass(frozen=True)
class Or(_OfTwo):
    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        return pc.or_kleene(self.left.evaluate(columns, length), self.right.evaluate(columns, length))


@dataclass(frozen=True)
class Not(_OfOne):
    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        return pc.invert(self.operand.evaluate(columns, length))


@dataclass(frozen=True)
class IsNull(_OfOne):
    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        return self.operand.evaluate(columns, length).is_null()


@dataclass(frozen=True)
class FieldRef(_OfOne):
    """A field of a ROW. It is NULL where the ROW is."""

    name: str

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        return pc.struct_field(self.operand.evaluate(columns, length), [self.name])


@dataclass(frozen=True)
class CaseWhen:
    """The value beside the first of these conditions that is TRUE. All values have the same type."""

    whens: tuple[tuple[Condition, Condition], ...]
    otherwise: Condition

    @property
    def columns(self) -> frozenset[str]:
        return self.otherwise.columns.union(*(part.columns for when in self.whens for part in when))

    def evaluate(self, columns: Columns, length: int) -> pa.Array:
        result = self.otherwise.evaluate(columns, length)
        for test, value in reversed(self.whens):
            true = pc.fill_null(test.evaluate(columns, length), False)
            result = pc.if_else(true, value.evaluate(columns, length), result)
        return result


def of_pairs(condition: Condition, left: pa.Table, right: pa.Table, pairs: Pairs) -> pa.Array:
    """The condition for each pair of rows; NULL means unknown."""
    sides, names = ((left, pairs[0]), (right, pairs[1])), condition.columns
    columns = {n: flat(t, n).take(pa.array(at)) for t, at in sides for n in t.column_names if n in names}
    return condition.evaluate(columns, len(pairs[0]))


def _failed(what: str, error: Exception) -> JobError:
    return JobError(
        f"A condition of a join cannot be computed: {what}.",
        detail=str(error),
        hint="Cast the operands to a wider type, or filter the rows before the join.",
    )
