"""Notices while a batch is under way that a broker does not answer, long before clients in the workers give up."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from headwater.connectors.runtime import Sink, Source

if TYPE_CHECKING:
    from headwater.execution.job import Job

__all__ = ["watched"]

_FIRST_SECONDS = 2.0  # a batch that takes no longer is not looked after
_EVERY_SECONDS = 2.0


@contextmanager
def watched(job: Job, began: float, parties: Sequence[Source | Sink]) -> Iterator[None]:
    """Around a batch. While writers wait for a broker, nothing comes back from Spark: so all parties are asked, in a
    thread of its own, again and again until the batch ends."""
    ended = threading.Event()
    timer = threading.Timer(_FIRST_SECONDS, _ask, (job, began, parties, ended))
    timer.daemon = True
    timer.start()
    job.batch_since = began
    try:
        yield
    finally:
        job.batch_since = None
        ended.set()
        timer.cancel()


def _ask(job: Job, began: float, parties: Sequence[Source | Sink], ended: threading.Event) -> None:
    while not ended.is_set():
        answers = (party.unanswered() for party in parties)
        sentence = next((answer for answer in answers if answer), "")
        # with the batch that it is about: an answer that comes late says nothing about the next one
        job.unanswered = (began, sentence) if sentence else None
        ended.wait(_EVERY_SECONDS)
