"""Headwater's answers in the form of Flink's: types and changes as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from answers import Answer, final_rows
from flink_values import shown

from headwater.errors import HeadwaterError
from headwater.results.values import json_value
from headwater.session import Results, Session
from headwater.sql.types import SqlType

__all__ = ["answer"]


def answer(session: Session, statements: Sequence[str]) -> Answer:
    try:
        return _answer(session.sql(";\n".join(statements)))
    except HeadwaterError as error:
        return Answer(failed=str(error))


def _answer(results: Results) -> Answer:
    query = results[-1].query
    if query is None:
        return Answer()
    kinds = [column.type for column in query.columns]
    # LIMIT is applied to the table that the changes make up, not to the changes.
    limited = query.query.limit is not None or query.query.offset
    changes = (("+I", row) for row in query.rows()) if limited else query.changes()
    texts = ((kind, *(shown(_value(v, k)) for v, k in zip(row, kinds, strict=True))) for kind, row in changes)
    return Answer(tuple(map(str, kinds)), not query.updating, final_rows(texts))


def _value(value: Any, kind: SqlType) -> Any:
    """A ROW as a tuple, and a FLOAT as the shortest number that means it."""
    if value is None:
        return None
    match kind.name:
        case "FLOAT":
            return json_value(value, kind)
        case "ROW":
            return tuple(_value(value[field.name], field.type) for field in kind.fields)
        case "ARRAY":
            return [_value(item, _part(kind.element)) for item in value]
        case "MAP" | "MULTISET":
            return dict(_entries(value, kind))
    return value


def _entries(value: dict[Any, Any], kind: SqlType) -> Iterator[tuple[Any, Any]]:
    key, item = (kind.key, kind.element) if kind.name == "MAP" else (kind.element, SqlType("INT"))
    return ((_value(k, _part(key)), _value(v, _part(item))) for k, v in value.items())


def _part(kind: SqlType | None) -> SqlType:
    assert kind is not None
    return kind
