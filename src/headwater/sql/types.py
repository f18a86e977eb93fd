"""Flink's data types as plain values: how they are written, and what they are in Spark.

TIMESTAMP(p) has no time zone (Spark TIMESTAMP_NTZ); TIMESTAMP_LTZ(p) is an instant (Spark TIMESTAMP). TIME(p) travels
through Spark as INT, the milliseconds of the day, as it does inside Flink; formats turn it into text or Avro's time.
MULTISET<T> is MAP<T, INT>. Lengths of CHAR, VARCHAR, BINARY and VARBINARY are kept but not enforced (Flink's default).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from headwater.sql.flink_text import flink_name
from headwater.sql.spark_text import quote_name

__all__ = ["Field", "SqlType", "has_map"]

_SPARK_NAMES = {
    "BOOLEAN": "BOOLEAN",
    "TINYINT": "TINYINT",
    "SMALLINT": "SMALLINT",
    "INT": "INT",
    "BIGINT": "BIGINT",
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "DATE": "DATE",
    "TIME": "INT",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "CHAR": "STRING",
    "VARCHAR": "STRING",
    "STRING": "STRING",
    "BINARY": "BINARY",
    "VARBINARY": "BINARY",
    "BYTES": "BINARY",
    "NULL": "VOID",
    "INTERVAL DAY": "INTERVAL DAY TO SECOND",
    "INTERVAL YEAR": "INTERVAL YEAR TO MONTH",
}

STRINGS = frozenset({"CHAR", "VARCHAR", "STRING"})
BYTE_STRINGS = frozenset({"BINARY", "VARBINARY", "BYTES"})
INTEGERS = ("TINYINT", "SMALLINT", "INT", "BIGINT")
FRACTIONS = ("FLOAT", "DOUBLE")
TIMESTAMPS = frozenset({"TIMESTAMP", "TIMESTAMP_LTZ"})


@dataclass(frozen=True)
class Field:
    """A field of a ROW. Its comment does not make it another type."""

    name: str
    type: SqlType
    comment: str = field(default="", compare=False)


@dataclass(frozen=True)
class SqlType:
    """One type. `name` is the canonical name (INTEGER is INT, BYTES stays BYTES, VARCHAR(2147483647) is STRING).

    length     CHAR, VARCHAR, BINARY, VARBINARY
    precision  DECIMAL, TIME, TIMESTAMP, TIMESTAMP_LTZ     scale  DECIMAL
    element    ARRAY, MULTISET      key, element  MAP      fields  ROW
    """

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    key: SqlType | None = None
    element: SqlType | None = None
    fields: tuple[Field, ...] = ()
    nullable: bool = True

    def as_nullable(self, *, nullable: bool = True) -> SqlType:
        return replace(self, nullable=nullable)

    def not_null(self) -> SqlType:
        return replace(self, nullable=False)

    @property
    def is_string(self) -> bool:
        return self.name in STRINGS

    @property
    def is_binary(self) -> bool:
        return self.name in BYTE_STRINGS

    @property
    def is_integer(self) -> bool:
        return self.name in INTEGERS

    @property
    def is_numeric(self) -> bool:
        return self.name in INTEGERS or self.name in FRACTIONS or self.name == "DECIMAL"

    @property
    def is_nested(self) -> bool:
        return self.name in {"ARRAY", "MAP", "MULTISET", "ROW"}

    @property
    def item(self) -> SqlType:
        """What an ARRAY or a MAP holds: elements, or values. Of a MULTISET it is how often each element is there."""
        if self.name == "MULTISET":
            return SqlType("INT")
        assert self.element is not None, self
        return self.element

    def __str__(self) -> str:
        """As a user would write it in a CREATE TABLE."""
        return _written(self) + ("" if self.nullable else " NOT NULL")

    def spark(self) -> str:
        """The Spark SQL type that carries values of this type."""
        if self.name == "DECIMAL":
            return f"DECIMAL({self.precision},{self.scale})"
        if self.name == "ARRAY":
            assert self.element is not None
            return f"ARRAY<{self.element.spark()}>"
        if self.name == "MULTISET":
            assert self.element is not None
            return f"MAP<{self.element.spark()},INT>"
        if self.name == "MAP":
            assert self.key is not None
            assert self.element is not None
            return f"MAP<{self.key.spark()},{self.element.spark()}>"
        if self.name == "ROW":
            inner = ",".join(f"{quote_name(f.name)}:{f.type.spark()}" for f in self.fields)
            return f"STRUCT<{inner}>"
        return _SPARK_NAMES[self.name]


def _written(t: SqlType) -> str:
    if t.name == "DECIMAL":
        return f"DECIMAL({t.precision}, {t.scale})"
    if t.name in {"CHAR", "VARCHAR", "BINARY", "VARBINARY"} and t.length is not None:
        return f"{t.name}({t.length})"
    if t.name in {"TIME", "TIMESTAMP", "TIMESTAMP_LTZ"} and t.precision is not None:
        return f"{t.name}({t.precision})"
    if t.name in {"ARRAY", "MULTISET"}:
        return f"{t.name}<{t.element}>"
    if t.name == "MAP":
        return f"MAP<{t.key}, {t.element}>"
    if t.name == "ROW":
        return "ROW<" + ", ".join(f"{flink_name(f.name)} {f.type}" for f in t.fields) + ">"
    return t.name


BOOLEAN = SqlType("BOOLEAN")
TINYINT = SqlType("TINYINT")
SMALLINT = SqlType("SMALLINT")
INT = SqlType("INT")
BIGINT = SqlType("BIGINT")
FLOAT = SqlType("FLOAT")
DOUBLE = SqlType("DOUBLE")
STRING = SqlType("STRING")
BYTES = SqlType("BYTES")
DATE = SqlType("DATE")
TIME = SqlType("TIME", precision=0)
NULL = SqlType("NULL")


def decimal(precision: int = 10, scale: int = 0) -> SqlType:
    return SqlType("DECIMAL", precision=precision, scale=scale)


def timestamp(precision: int = 6) -> SqlType:
    return SqlType("TIMESTAMP", precision=precision)


def timestamp_ltz(precision: int = 6) -> SqlType:
    return SqlType("TIMESTAMP_LTZ", precision=precision)


def has_map(kind: SqlType) -> bool:
    """Whether a MAP or MULTISET is part of the type: those cannot be compared."""
    parts = (*(field.type for field in kind.fields), *(part for part in (kind.key, kind.element) if part is not None))
    return kind.name in {"MAP", "MULTISET"} or any(has_map(part) for part in parts)
