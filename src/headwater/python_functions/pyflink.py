"""What PyFlink's decorators and types look like, read by their attributes. PyFlink itself is not imported.

`@udf` makes an object with `_func` (a function, or a ScalarFunction with `eval`), `_input_types`, `_result_type`,
`_deterministic` and `_func_type` ('general' or 'pandas'); `@udtf` has `_result_types`; `@udaf` as `@udf`.
They are private names of PyFlink, which it has had since release 1.12. `@udf` over `async def` has a wrapper of its own
since 2.3; `@udtaf` makes what `@udaf` makes, marked as a table aggregate.
"""

from __future__ import annotations

from typing import Any

from headwater.errors import ValidationError
from headwater.sql import types as t
from headwater.sql.types import Field, SqlType

__all__ = ["KINDS", "is_of_pyflink", "kind_of", "type_of_pyflink"]

KINDS = {
    "UserDefinedScalarFunctionWrapper": "scalar",
    "UserDefinedAsyncScalarFunctionWrapper": "scalar",
    "UserDefinedTableFunctionWrapper": "table",
    "UserDefinedAggregateFunctionWrapper": "aggregate",
}
_PLAIN = {
    "TinyIntType": t.TINYINT,
    "SmallIntType": t.SMALLINT,
    "IntType": t.INT,
    "BigIntType": t.BIGINT,
    "FloatType": t.FLOAT,
    "DoubleType": t.DOUBLE,
    "BooleanType": t.BOOLEAN,
    "DateType": t.DATE,
    "NullType": t.NULL,
}
_SIZED = {"CharType": "CHAR", "VarCharType": "VARCHAR", "BinaryType": "BINARY", "VarBinaryType": "VARBINARY"}
_TIMES = {"TimeType": "TIME", "TimestampType": "TIMESTAMP", "LocalZonedTimestampType": "TIMESTAMP_LTZ"}
_LONGEST = 2147483647


def is_of_pyflink(kind: type) -> bool:
    """Whether a class is PyFlink's own, not a user's that is derived from it."""
    return kind.__module__.partition(".")[0] == "pyflink"


def kind_of(candidate: Any) -> str:
    """scalar, table, aggregate, or empty if PyFlink has not made it."""
    if getattr(candidate, "_is_table_aggregate", False):
        raise ValidationError(
            "Table aggregate functions (@udtaf) are not supported.",
            hint="Use an aggregate function that returns an array of rows (@udaf), and UNNEST its result.",
        )
    # By the names of its classes: PyFlink may be there or not, and is not imported for this.
    names = [base.__name__ for base in type(candidate).__mro__]
    return next((KINDS[name] for name in names if name in KINDS), "")


def type_of_pyflink(kind: Any) -> SqlType:
    name = type(kind).__name__
    nullable = bool(getattr(kind, "_nullable", True))
    return _type(kind, name).as_nullable(nullable=nullable)


def _type(kind: Any, name: str) -> SqlType:
    if name in _PLAIN:
        return _PLAIN[name]
    if name in _SIZED:
        return _sized(_SIZED[name], int(kind.length))
    if name in _TIMES:
        return SqlType(_TIMES[name], precision=min(int(kind.precision), 6))
    match name:
        case "DecimalType":
            return t.decimal(int(kind.precision), int(kind.scale))
        case "ArrayType" | "ListViewType":
            return SqlType("ARRAY", element=type_of_pyflink(kind.element_type))
        case "MapType" | "MapViewType":
            return SqlType("MAP", key=type_of_pyflink(kind.key_type), element=type_of_pyflink(kind.value_type))
        case "MultisetType":
            return SqlType("MULTISET", element=type_of_pyflink(kind.element_type))
        case "RowType":
            return SqlType("ROW", fields=tuple(Field(f.name, type_of_pyflink(f.data_type)) for f in kind.fields))
    raise ValidationError(f"PyFlink's {name} has no SQL type.", hint="Declare the type as text: result_type='BIGINT'.")


def _sized(name: str, length: int) -> SqlType:
    if length == _LONGEST and name.startswith("VAR"):
        return t.STRING if name == "VARCHAR" else t.BYTES
    return SqlType(name, length=length)
