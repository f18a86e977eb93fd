"""What a node promises: the kinds of change it emits, and the columns that identify a row."""

from __future__ import annotations

from enum import Enum

from headwater.connectors.base import Emits
from headwater.plan import nodes as n

__all__ = ["Mode", "describe_source_of_updates", "mode_of", "unique_key"]


class Mode(Enum):
    """APPEND: inserts only. UPSERT: the row of a key now, or that the key is gone; at most one per key and batch after
    Normalize, Aggregate and Collapse. RETRACT: exact changes, every -U and -D with the full old row."""

    APPEND = "I"
    UPSERT = "I,UA,D"
    RETRACT = "I,UB,UA,D"


_GIVEN = {None: Mode.APPEND, Emits.APPEND: Mode.APPEND, Emits.UPSERT: Mode.UPSERT, Emits.CHANGES: Mode.RETRACT}


def mode_of(node: n.Node) -> Mode:
    match node:
        case n.Scan():
            return Mode.UPSERT if node.repeats else _GIVEN[node.table.connector.gives(node.table)]
        case n.Values():
            return Mode.APPEND
        case n.Aggregate() | n.Normalize():
            return Mode.RETRACT if node.before else Mode.UPSERT
        case n.Guard() | n.Collapse():
            return Mode.UPSERT
        case n.UnionAll():
            appends = all(mode_of(part) is Mode.APPEND for part in node.parts)
            return Mode.APPEND if appends else Mode.RETRACT
        case n.Project() | n.Filter() | n.Write():
            return mode_of(node.input)
    raise AssertionError(f"no changelog mode for {type(node).__name__}")


def unique_key(node: n.Node) -> tuple[str, ...] | None:
    """Columns that hold a row apart from all others at any time, or None if no such columns are known."""
    match node:
        case n.Scan():
            keyed = mode_of(node) is not Mode.APPEND and node.table.primary_key
            return _present(node.table.primary_key, node) if keyed else None
        case n.Aggregate():
            return node.groups
        case n.Normalize() | n.Collapse():
            return node.key
        case n.Guard() | n.Filter():
            return unique_key(node.input)
        case n.Project():
            return _projected(unique_key(node.input), node)
        case n.Write():
            return node.key or None
        case n.UnionAll() | n.Values():
            return None
    raise AssertionError(f"no key rule for {type(node).__name__}")


def _present(key: tuple[str, ...] | None, node: n.Node) -> tuple[str, ...] | None:
    return key if key is not None and set(key) <= set(node.names) else None


def _projected(key: tuple[str, ...] | None, node: n.Project) -> tuple[str, ...] | None:
    """The key under its new names, if every column of it is passed on as it is."""
    if key is None:
        return None
    passed: dict[str, str] = {}
    for column, expression in zip(node.columns, node.expressions, strict=True):
        if expression.column is not None:
            passed.setdefault(expression.column, column.name)
    return tuple(passed[k] for k in key) if set(key) <= set(passed) else None


def describe_source_of_updates(node: n.Node) -> str:
    """The operator below `node` that makes the stream an updating one, in words."""
    for below in reversed(n.walk(node)):
        match below:
            case n.Aggregate():
                groups = ", ".join(below.groups) or "all rows"
                return f"GROUP BY {groups}" if below.groups else "the aggregate over all rows"
            case n.Scan() if mode_of(below) is not Mode.APPEND:
                return f"the {below.table.connector.identifier} table '{below.table.name}'"
    return "the query"
