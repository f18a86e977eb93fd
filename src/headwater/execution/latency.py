"""How long rows wait: from when they could have been read to the commit of their batch.

The driver looks at the end of the input before each batch and, when idle, many times a second. A row came after the
last look that did not see it. So the age of the oldest row of a batch, at its commit, is at most the time since that
look: it is what is reported, and it is close to the truth wherever batches follow each other or the job was idle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from headwater.connectors.runtime import Position

__all__ = ["Latency", "total_of"]


class Latency:
    """`total` is a number that grows with what has come or was read: the sum of offsets over all partitions. What was
    there before the first look is counted from that one."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()

    def look(self, now: float, total: int) -> None:
        """The input ends here now. Of looks that saw the same end the last one counts."""
        if len(self._looks) > 1 and self._looks[-1][1] == total:
            self._looks[-1] = (now, total)
        else:
            self._looks.append((now, total))

    def committed(self, now: float, start: int) -> float:
        """A batch that began to read at `start` is done: the age of its oldest row, in seconds."""
        # The last look that had not seen past `start` is kept: rows behind it came after it.
        while len(self._looks) > 1 and self._looks[1][1] <= start:
            self._looks.popleft()
        return now - self._looks[0][0] if self._looks else 0.0


def total_of(positions: Sequence[Position]) -> int:
    return sum(sum(position.values()) for position in positions)
