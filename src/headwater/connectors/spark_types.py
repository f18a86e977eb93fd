"""Spark's data types: as SQL text, and of partial aggregates."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql.types import ArrayType, DataType, DoubleType, LongType, MapType, StructType

from headwater.changelog.preaggregate import PartialAggregate
from headwater.sql.spark_text import quote_name

__all__ = ["partial_type", "type_sql"]


def type_sql(kind: DataType) -> str:
    """For CAST. Spark's own `simpleString` does not quote the names of fields."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{quote_name(f.name)}: {type_sql(f.dataType)}' for f in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_sql(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_sql(kind.keyType)}, {type_sql(kind.valueType)}>"
    return kind.simpleString()


def partial_type(partial: PartialAggregate, types: Mapping[str, DataType]) -> DataType:
    """`types` are those of the columns that are aggregated."""
    match partial.how:
        case "rows" | "present" | "sum" | "limb" | "beyond_weight":
            return LongType()
        case "beyond":
            return DoubleType()
        case "values":
            return ArrayType(types[partial.column])
    return types[partial.column]
