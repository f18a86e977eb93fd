"""Names of output columns: unique, as Flink makes them."""

from __future__ import annotations

__all__ = ["unique_names"]


def unique_names(names: list[str]) -> list[str]:
    """A name that is already taken gets a number: a, a0, a1."""
    taken: set[str] = set()
    unique = []
    for name in names:
        candidate, number = name, 0
        while candidate in taken:
            candidate, number = f"{name}{number}", number + 1
        taken.add(candidate)
        unique.append(candidate)
    return unique
