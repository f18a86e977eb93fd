"""A topic that was deleted and made again is read from its beginning, however often it is looked at before that; one
that was only missing in an answer goes on where it was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from headwater.connectors.kafka.clients.admin import Look
from headwater.connectors.kafka.read.data_loss import DataLossPolicy
from headwater.connectors.runtime import RuntimeContext
from headwater.session import Session

TABLE = """CREATE TABLE t (n INT) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'json',
  'properties.bootstrap.servers' = 'nowhere:9092', 'scan.on-data-loss' = 'continue')"""
PLACE = ("t", 0)


def policy() -> DataLossPolicy:
    session = Session()
    session.sql(TABLE)
    admin: Any = SimpleNamespace(
        earliest=lambda asked: dict.fromkeys(asked, 0), topic_ids=lambda topics: dict.fromkeys(topics, "first")
    )
    return DataLossPolicy(session.catalog.table("t"), admin, RuntimeContext(None, "job", 1, []))  # type: ignore[arg-type]


def look(end: int, topic_id: str) -> Look:
    return Look({PLACE: end}, {PLACE: 0}, {"t": topic_id})


def test_it_is_so_until_the_new_position_is_committed() -> None:
    found = policy()
    assert found.checked({PLACE: 3}, look(5, "first"), "read_uncommitted") == {PLACE: 3}
    found.committed({PLACE: 3})
    # Empty at first: no batch runs. Then it has more messages than the job had read of the old one.
    assert found.checked({PLACE: 3}, look(0, "second"), "read_uncommitted") == {PLACE: 0}
    assert found.checked({PLACE: 3}, look(9, "second"), "read_uncommitted") == {PLACE: 0}
    found.committed({PLACE: 9})
    assert found.checked({PLACE: 9}, look(12, "second"), "read_uncommitted") == {PLACE: 9}


def test_a_topic_that_was_only_missing_goes_on_where_it_was() -> None:
    found = policy()
    assert found.checked({PLACE: 3}, look(5, "first"), "read_uncommitted") == {PLACE: 3}
    assert found.checked({PLACE: 3}, Look({}), "read_uncommitted") == {}
    found.committed({})
    # Looked at twice before a batch runs.
    for end in (5, 6):
        assert found.checked({}, look(end, "first"), "read_uncommitted") == {PLACE: 3}
    found.committed({PLACE: 6})
    assert found.missing == {}


def test_that_it_was_missing_outlives_a_restart() -> None:
    found = policy()
    found.checked({PLACE: 3}, look(5, "first"), "read_uncommitted")
    found.checked({PLACE: 3}, Look({}), "read_uncommitted")
    later = policy()
    later.check_topics(found.topic_ids, found.missing)
    assert later.checked({}, look(5, "first"), "read_uncommitted") == {PLACE: 3}


def test_a_topic_that_is_another_one_after_it_was_missing() -> None:
    found = policy()
    found.checked({PLACE: 3}, look(5, "first"), "read_uncommitted")
    found.checked({PLACE: 3}, Look({}), "read_uncommitted")
    found.committed({})
    for end in (5, 6):
        assert found.checked({}, look(end, "second"), "read_uncommitted") == {PLACE: 0}
