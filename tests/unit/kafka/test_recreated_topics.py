"""A topic that was deleted and made again is read from its beginning, however often it is looked at before that."""

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
    admin: Any = SimpleNamespace(earliest=lambda asked: dict.fromkeys(asked, 0))
    return DataLossPolicy(session.catalog.table("t"), admin, RuntimeContext(None, "job", 1, []))  # type: ignore[arg-type]


def look(end: int, topic_id: str) -> Look:
    return Look({PLACE: end}, {PLACE: 0}, {"t": topic_id})


def test_it_is_so_until_the_new_position_is_committed() -> None:
    found = policy()
    assert found.checked({PLACE: 3}, look(5, "first"), "read_uncommitted") == {PLACE: 3}
    found.committed()
    # Empty at first: no batch runs. Then it has more messages than the job had read of the old one.
    assert found.checked({PLACE: 3}, look(0, "second"), "read_uncommitted") == {PLACE: 0}
    assert found.checked({PLACE: 3}, look(9, "second"), "read_uncommitted") == {PLACE: 0}
    found.committed()
    assert found.checked({PLACE: 9}, look(12, "second"), "read_uncommitted") == {PLACE: 9}
