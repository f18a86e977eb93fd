"""Ctrl-C and SIGTERM: the first asks for a clean stop, the second ends the process where it is."""

from __future__ import annotations

import os
import signal
import sys
import termios
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from signal import _HANDLER

__all__ = ["Stop", "in_background"]

T = TypeVar("T")

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_LOCAL_FLAGS = 3  # where termios keeps them
_SHOW_CURSOR = "\x1b[?25h\n"


class Stop:
    """While it is entered, `requested` becomes true instead of the process ending. Polled, never waited for: a signal
    handler must not touch a lock."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, _HANDLER] = {}
        self._terminal: list[Any] | None = None

    def __enter__(self) -> Stop:
        self._before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        self._terminal = _without_echo()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        _restore(self._terminal)

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        if self.requested:
            _restore(self._terminal)
            _leave_at_once(128 + number)
        self.requested = True


def _leave_at_once(code: int) -> None:
    """No clean-up: what is committed is committed, the JVM sees that we are gone, and the rest is done again."""
    if sys.stderr.isatty():
        sys.stderr.write(_SHOW_CURSOR)
        sys.stderr.flush()
    # Not sys.exit: threads of jobs and of py4j would be waited for, and the second Ctrl-C means "now".
    os._exit(code)


def _without_echo() -> list[Any] | None:
    """Keep the terminal from writing '^C' into whatever is drawn on it; its settings before, if there is one."""
    if not sys.stdin.isatty():
        return None
    before: list[Any] = termios.tcgetattr(sys.stdin)
    after = list(before)
    # Only the echo of control characters: what a person types must stay visible.
    after[_LOCAL_FLAGS] = after[_LOCAL_FLAGS] & ~termios.ECHOCTL
    termios.tcsetattr(sys.stdin, termios.TCSANOW, after)
    return before


def _restore(settings: list[Any] | None) -> None:
    if settings is not None:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, settings)


def in_background(action: Callable[[], T], while_waiting: Callable[[], None] = lambda: None) -> T:
    """Run `action` in another thread, and `while_waiting` here about twenty times a second.

    Whatever takes long is done this way: signals are still heard, the screen still moves. Spark must be started so,
    since in the main thread it would put a handler of its own on Ctrl-C.
    """
    answer: list[T] = []
    problem: list[BaseException] = []

    def work() -> None:
        try:
            answer.append(action())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            problem.append(error)

    thread = threading.Thread(target=work, name="headwater-start", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(0.05)
        while_waiting()
    if problem:
        raise problem[0]
    return answer[0]
