"""When to try a short cut that works for nearly all batches, and what becomes of a job where it does not."""

from __future__ import annotations

__all__ = ["Shortcut"]

LONGEST_REST = 64


class Shortcut:
    """After a failure it rests for a batch, after the next one for two, then for four, …; a success ends that. A batch
    for which it was not taken says nothing."""

    def __init__(self) -> None:
        self._rest = 0
        self._next_rest = 1
        self._taken = False

    def is_open(self) -> bool:
        """Asked once per batch."""
        self._rest -= 1
        self._taken = False
        return self._rest < 0

    def take(self) -> None:
        """It is of use in the batch at hand."""
        self._taken = True

    def failed(self) -> None:
        self._rest = self._next_rest
        self._next_rest = min(2 * self._next_rest, LONGEST_REST)

    def worked(self) -> None:
        if self._taken:
            self._next_rest = 1
