"""A short cut that fails is tried less and less often; one that works is taken."""

from __future__ import annotations

from headwater.runtime.shortcut import LONGEST_REST, Shortcut


def test_rests_grow_and_end() -> None:
    shortcut = Shortcut()
    tried = []
    for batch in range(40):
        if shortcut.is_open():
            tried.append(batch)
            shortcut.failed()
    assert tried == [0, 2, 5, 10, 19, 36]
    for _ in range(LONGEST_REST):
        if shortcut.is_open():
            break
    shortcut.take()
    shortcut.worked()
    assert all(shortcut.is_open() for _ in range(5))
    shortcut.failed()
    assert [shortcut.is_open() for _ in range(3)] == [False, True, True]


def test_batches_that_do_not_take_it_say_nothing() -> None:
    shortcut = Shortcut()
    shortcut.is_open()
    shortcut.take()
    shortcut.failed()
    assert [shortcut.is_open() for _ in range(2)] == [False, True]
    shortcut.worked()  # a small batch
    shortcut.failed()
    assert [shortcut.is_open() for _ in range(3)] == [False, False, True]
