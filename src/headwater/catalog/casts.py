"""Which types can be cast to which, for metadata columns declared with another type than the connector's."""

from __future__ import annotations

from headwater.sql.types import TIMESTAMPS, SqlType

__all__ = ["can_cast"]


def can_cast(source: SqlType, target: SqlType) -> bool:
    """Whether CAST(source AS target) exists. NOT NULL does not matter."""
    if target.is_nested or source.is_nested:
        return _can_cast_nested(source, target)
    if target.is_string or source.as_nullable() == target.as_nullable():
        return True
    if source.is_numeric:
        return target.is_numeric or target.name == "BOOLEAN"
    if source.name in TIMESTAMPS:
        return target.name in TIMESTAMPS or target.name in {"DATE", "TIME"}
    if source.is_binary:
        return target.is_binary
    return source.is_string or source.name == target.name


def _can_cast_nested(source: SqlType, target: SqlType) -> bool:
    if target.is_string:
        return False
    if source.name != target.name or len(source.fields) != len(target.fields):
        return False
    pairs = [(source.key, target.key), (source.element, target.element)]
    pairs += [(s.type, t.type) for s, t in zip(source.fields, target.fields, strict=True)]
    return all(s is None or t is None or can_cast(s, t) for s, t in pairs)
