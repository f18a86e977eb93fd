"""Names of columns that Headwater gives itself, beside those of a query: a table or a query of the user's has none.

Rows carry them through Spark and through state: the kind of a change, its place in a partition, numbered columns of
groups and joins. Other names that begin with two underscores are free: Debezium writes '__op' and '__deleted', for
example.
"""

from __future__ import annotations

__all__ = ["RESERVED_PREFIX", "is_reserved"]

RESERVED_PREFIX = "__hw_"


def is_reserved(name: str) -> bool:
    return name.startswith(RESERVED_PREFIX)
