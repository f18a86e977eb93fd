"""A leader that does not answer is looked up again; an offset that is none is no answer. What several real brokers do
then is in `tests/recovery/test_leader_changes.py`; here the client is a stand-in that answers as it does there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from headwater.connectors.kafka.clients.rdkafka_admin import RdKafkaAdmin
from headwater.errors import KafkaUnavailableError

NO_OFFSET = -1001  # librdkafka's constant for an invalid offset
TIMED_OUT = KafkaException(KafkaError(KafkaError._TIMED_OUT))


class Client:
    """Answers with the given offsets or errors of two partitions, one pair per request; the last one again."""

    def __init__(self, *answers: tuple[int | KafkaException, int | KafkaException]) -> None:
        self._answers: Iterator[tuple[Any, ...]] = iter(answers)
        self._last = answers[-1]
        self.looked_up: list[str] = []

    def list_offsets(self, asked: Mapping[Any, Any], **_: Any) -> dict[Any, Future[Any]]:
        answers = next(self._answers, self._last)
        return dict(zip(asked, map(_done, answers), strict=True))

    def list_topics(self, topic: str, timeout: float) -> None:
        self.looked_up.append(topic)

    def poll(self, seconds: float) -> None:
        pass


def _done(answer: int | KafkaException) -> Future[Any]:
    future: Future[Any] = Future()
    if isinstance(answer, KafkaException):
        future.set_exception(answer)
    else:
        future.set_result(SimpleNamespace(offset=answer))
    return future


def latest(client: Client) -> dict[tuple[str, int], int]:
    admin = RdKafkaAdmin(None, {"bootstrap.servers": "127.0.0.1:1"}, {"bootstrap.servers": "127.0.0.1:1"})
    admin._client = client
    return dict(admin.latest([("t", 0), ("t", 1)]))


def test_offsets_are_answers() -> None:
    client = Client((5, 7))
    assert latest(client) == {("t", 0): 5, ("t", 1): 7}
    assert client.looked_up == []


@pytest.mark.parametrize("missing", [NO_OFFSET, TIMED_OUT])
def test_the_leader_is_looked_up_and_asked_again(missing: int | KafkaException) -> None:
    client = Client((5, missing), (6, 7))
    assert latest(client) == {("t", 0): 6, ("t", 1): 7}
    assert client.looked_up == ["t"]


@pytest.mark.parametrize("missing", [NO_OFFSET, TIMED_OUT])
def test_without_an_answer_nothing_is_known(missing: int | KafkaException) -> None:
    with pytest.raises(KafkaUnavailableError):
        latest(Client((5, missing)))
