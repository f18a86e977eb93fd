"""Arithmetic of positions: how many rows lie between two, and how far a batch of limited size gets."""

from __future__ import annotations

from headwater.protocol.records import Position

__all__ = ["rows_between", "share_limit"]


def rows_between(start: Position, end: Position) -> int:
    """How many rows lie between two positions."""
    return sum(end[k] - start.get(k, 0) for k in end)


def share_limit(position: Position, end: Position, limit: int) -> Position:
    """`end`, or a place before it so that about `limit` rows are read, shared out in proportion to what waits."""
    waiting = rows_between(position, end)
    if waiting <= limit:
        return end
    # At least one row of every partition that has any: a large one must not starve the others.
    return {
        k: min(end[k], position.get(k, 0) + max(1, (end[k] - position.get(k, 0)) * limit // waiting))
        if end[k] > position.get(k, 0)
        else end[k]
        for k in end
    }
