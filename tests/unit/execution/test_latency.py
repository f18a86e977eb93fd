"""How old the oldest row of a batch is when it is committed."""

from __future__ import annotations

from headwater.execution.latency import Latency, total_of
from headwater.execution.start_message import beginning
from headwater.protocol.checkpoint import Recovered
from headwater.protocol.records import Commit, Genesis, Intent


def test_rows_wait_since_the_last_look_that_did_not_see_them() -> None:
    latency = Latency()
    for tick in range(100):
        latency.look(tick * 0.02, 50)
    latency.look(2.0, 60)
    assert round(latency.committed(2.5, 50), 2) == 0.52


def test_what_came_during_a_batch_waits_since_its_beginning() -> None:
    latency = Latency()
    latency.look(0.0, 0)
    latency.look(1.0, 10)
    assert latency.committed(2.0, 0) == 2.0
    latency.look(2.0, 30)
    assert latency.committed(3.0, 10) == 2.0
    assert latency.committed(3.5, 20) == 2.5, "a batch that took only a part"


def test_what_was_there_at_the_start_waits_since_the_start() -> None:
    latency = Latency()
    latency.look(5.0, 1000)
    assert latency.committed(7.0, 0) == 2.0


def test_no_looks_no_latency() -> None:
    assert Latency().committed(1.0, 0) == 0.0
    assert total_of([{"a:0": 3, "a:1": 4}, {}]) == 7


GENESIS = Genesis("id", "f", 2, [{"orders:0": 0}], [None])


def test_a_start_says_where_it_is() -> None:
    new = Recovered(GENESIS, Commit.of_genesis(GENESIS), None)
    assert beginning(new) == "Begins at orders:0 offset 0."
    values = Genesis("id", "f", 2, [{}], [None])
    assert beginning(Recovered(values, Commit.of_genesis(values), None)) == ""
    position = {f"orders:{n}": 1000 + n for n in range(10)}
    later = Commit(41, "", "", 2, [position], [None])
    assert beginning(Recovered(GENESIS, later, None)) == (
        "Continues after batch 41 at orders:0 offset 1,000, orders:1 offset 1,001, orders:2 offset 1,002, "
        "orders:3 offset 1,003, orders:4 offset 1,004, orders:5 offset 1,005 and 4 more."
    )
    pending = Intent(42, [{}], [{}], [None], [], {}, 0)
    assert beginning(Recovered(GENESIS, Commit(41, "", "", 2, [{}], [None]), pending)) == (
        "Continues after batch 41; batch 42, which was not committed, is repeated first."
    )
