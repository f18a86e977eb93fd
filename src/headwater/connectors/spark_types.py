"""Spark's data types as SQL text."""

from __future__ import annotations

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from headwater.sql.spark_text import quote_name

__all__ = ["type_sql"]


def type_sql(kind: DataType) -> str:
    """For CAST. Spark's own `simpleString` does not quote the names of fields."""
    if isinstance(kind, StructType):
        return f"STRUCT<{', '.join(f'{quote_name(f.name)}: {type_sql(f.dataType)}' for f in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"ARRAY<{type_sql(kind.elementType)}>"
    if isinstance(kind, MapType):
        return f"MAP<{type_sql(kind.keyType)}, {type_sql(kind.valueType)}>"
    return kind.simpleString()
