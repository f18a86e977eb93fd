"""Producers that a worker process keeps open from batch to batch: few of them, and not for long.

An open producer has a handful of threads and sockets, and Spark gives the tasks of a batch to any of its Python
workers. So each process keeps at most `KEPT` that nobody uses, closes the least recently used beyond that, and closes
what has been idle for `IDLE_SECONDS`. Opening one again takes some 20 ms.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["IDLE_SECONDS", "KEPT", "Pool"]

# Spark's Python workers run one task at a time; the two others are for tasks that alternate.
KEPT = 3
IDLE_SECONDS = 60.0


class Closable(Protocol):
    def close(self) -> None: ...


T = TypeVar("T", bound=Closable)


class Pool(Generic[T]):
    """Whoever takes something out has it alone, until it is given back or closed."""

    def __init__(self, kept: int = KEPT, idle_seconds: float = IDLE_SECONDS) -> None:
        self._kept = kept
        self._idle_seconds = idle_seconds
        self._free: OrderedDict[Hashable, tuple[float, T]] = OrderedDict()  # the least recently used comes first
        self._lock = threading.Lock()
        self._timer: threading.Timer | None = None

    def take(self, key: Hashable, open_new: Callable[[], T]) -> T:
        with self._lock:
            # Opening is left to the caller's thread, outside the lock: it takes round trips, and others need not wait
            # for it.
            found = self._free.pop(key, None)
        return found[1] if found is not None else open_new()

    def give_back(self, key: Hashable, used: T) -> None:
        with self._lock:
            # Several threads may have opened the same key at the same time; the one that comes back last is kept.
            superfluous = [self._free.pop(key)[1]] if key in self._free else []
            self._free[key] = (time.monotonic(), used)
            while len(self._free) > self._kept:
                superfluous.append(self._free.popitem(last=False)[1][1])
            self._schedule()
        # Outside the lock: closing waits for the threads of the client.
        for one in superfluous:
            one.close()

    def close_idle(self, seconds: float = 0.0) -> None:
        """Close what nobody has used for so long."""
        limit = time.monotonic() - seconds
        with self._lock:
            idle = [key for key, (since, _) in self._free.items() if since <= limit]
            closing = [self._free.pop(key)[1] for key in idle]
            self._timer = None
            self._schedule()
        for one in closing:
            one.close()

    def _schedule(self) -> None:
        """Once per idle period, as long as there is something to close."""
        if self._free and self._timer is None:
            self._timer = threading.Timer(self._idle_seconds, self.close_idle, [self._idle_seconds])
            # A worker process that ends must not wait for it.
            self._timer.daemon = True
            self._timer.start()

    def __reduce__(self) -> Any:
        raise TypeError("a pool belongs to one process")
