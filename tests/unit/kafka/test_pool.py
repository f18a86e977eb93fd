"""Producers are kept for a while, few at a time, and each is used by one task only."""

from __future__ import annotations

import time
from typing import Any

from headwater.connectors.kafka.write.pool import Pool


class Thing:
    def __init__(self, name: str) -> None:
        self.name = name
        self.closed = False

    def close(self) -> None:
        assert not self.closed
        self.closed = True


def use(pool: Pool[Thing], name: str) -> Thing:
    thing = pool.take(name, lambda: Thing(name))
    pool.give_back(name, thing)
    return thing


def test_what_was_given_back_is_used_again() -> None:
    pool: Pool[Thing] = Pool()
    assert use(pool, "a") is use(pool, "a")


def test_nobody_else_has_what_was_taken() -> None:
    pool: Pool[Thing] = Pool()
    first, second = (pool.take("a", lambda: Thing("a")) for _ in range(2))
    assert first is not second
    pool.give_back("a", first)
    pool.give_back("a", second)
    assert (first.closed, second.closed) == (True, False)


def test_the_least_recently_used_is_closed() -> None:
    pool: Pool[Thing] = Pool(kept=2)
    a, b = use(pool, "a"), use(pool, "b")
    use(pool, "a")
    c = use(pool, "c")
    assert (a.closed, b.closed, c.closed) == (False, True, False)


def test_what_is_idle_is_closed() -> None:
    pool: Pool[Thing] = Pool(idle_seconds=0.05)
    thing: Any = use(pool, "a")
    deadline = time.monotonic() + 10
    while not thing.closed and time.monotonic() < deadline:
        time.sleep(0.01)
    assert thing.closed
    assert use(pool, "a") is not thing
