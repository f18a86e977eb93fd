"""Between a job and its reader: bounded, in order, and ended by either side."""

from __future__ import annotations

import threading

import pytest

from headwater.connectors.result import Channel
from headwater.errors import ResultClosedError


def test_what_is_put_waits_for_room() -> None:
    channel, put = Channel(capacity=10), []

    def job() -> None:
        for number in range(5):
            channel.put(bytes([number]) * 6)
            put.append(number)
        channel.finish()

    thread = threading.Thread(target=job)
    thread.start()
    thread.join(0.3)
    assert put == [0, 1]  # the second one fits as long as there is any room at all
    taken = []
    while (chunk := channel.take(5)) is not None:
        taken.append(chunk[0])
    thread.join(5)
    assert taken == put == [0, 1, 2, 3, 4]
    assert not channel.waiting


def test_a_reader_that_goes_ends_the_job_even_while_it_waits() -> None:
    channel, raised = Channel(capacity=1), threading.Event()
    channel.put(b"full")

    def job() -> None:
        with pytest.raises(ResultClosedError):
            channel.put(b"more")
        raised.set()

    thread = threading.Thread(target=job)
    thread.start()
    channel.close()
    assert raised.wait(5)
    thread.join(5)
    assert channel.take(0) is None


def test_nothing_comes() -> None:
    assert Channel().take(0.01) is None
