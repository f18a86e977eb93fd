"""A batch of ordinary messages is read in a quicker way; where one is not ordinary, the rows are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kafka_lab import Lab, noting_answers

from headwater.connectors.kafka import source
from headwater.connectors.kafka.ordinary import Ends
from headwater.testing import CaseRunner
from headwater.testing.kafka import Record

ORDINARY = [b'{"who":"%s","n":%d}' % (b"abc"[i % 3 : i % 3 + 1], i) for i in range(30)]
UNUSUAL = [b'[{"who":"x","n":100},{"who":"y","n":101}]', b'{"who":"a","n":"102"}']
COPY = "INSERT INTO s SELECT who, n FROM t;"


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each batch that asked for it whether the quicker way was there; batches of a few rows are large here."""
    monkeypatch.setattr(source, "MANY_MESSAGES", 1)
    return noting_answers(monkeypatch, "read_ordinary")


class Copy:
    """A topic of two partitions, whose rows are copied to another."""

    def __init__(self, lab: Lab, partitions: list[list[bytes]]) -> None:
        self.lab = lab
        self.topic, self.sink = lab.topic("in", 2), lab.topic("out", 2)
        for number, values in enumerate(partitions):
            lab.kafka.produce(Record(self.topic, None, value, number) for value in values)

    def run(self, insert: str = COPY, columns: str = "who STRING, n BIGINT", checkpoint: str = "", **sink: str) -> Any:
        session = self.lab.session(checkpoint)
        bounds = {"scan__startup__mode": "earliest-offset", "scan__bounded__mode": "latest-offset"}
        read = self.lab.ddl("t", "who STRING, n BIGINT, o BIGINT METADATA FROM 'offset' VIRTUAL, "
                            "p INT METADATA FROM 'partition' VIRTUAL", topic=self.topic, **bounds)  # fmt: skip
        session.sql(read + self.lab.ddl("s", columns, topic=self.sink, **sink) + insert)
        session.wait()
        return session.jobs[0].progress()

    def numbers(self) -> list[int]:
        """In the order of the topic."""
        return [row["n"] for row in self.lab.values(self.sink, 2)]


def test_all_messages_are_ordinary(lab: Lab, attempts: list[bool]) -> None:
    copy = Copy(lab, [ORDINARY[:20], ORDINARY[20:]])
    progress = copy.run()
    assert (attempts, progress.batches, progress.rows_in, progress.rows_out) == ([True], 1, 30, 30)
    assert sorted(copy.numbers()) == list(range(30))


def test_a_batch_ends_before_what_is_unusual(lab: Lab, attempts: list[bool]) -> None:
    copy = Copy(lab, [ORDINARY[:20], [*ORDINARY[20:], *UNUSUAL]])
    progress = copy.run(sink__partitioner="fixed", sink__parallelism="1")
    assert (progress.batches, progress.rows_in) == (2, 32)
    assert attempts == [True]  # and then there is a rest
    assert copy.numbers() == [*range(30), 100, 101, 102]


def test_a_job_goes_on_where_the_shorter_batch_ended(lab: Lab, attempts: list[bool]) -> None:
    copy = Copy(lab, [ORDINARY[:20], [*ORDINARY[20:], *UNUSUAL]])
    copy.run(checkpoint="c")
    for kind in ("intents", "commits"):  # as if it had been killed right after the first batch
        (last,) = (lab.directory / "c" / "1-s" / kind).glob("*2.json")
        last.unlink()
    assert copy.run(checkpoint="c").rows_in == 12
    assert attempts == [True, True]
    behind = [*range(20, 30), 100, 101, 102]
    assert sorted(copy.numbers()) == sorted([*range(20), *behind, *behind])


def test_what_a_given_up_task_tells_late_is_not_taken_for_the_next_batch(case_runner: CaseRunner) -> None:
    ends = Ends(case_runner.spark())
    ends.begin()
    late = ends.reading
    ends.begin()
    ends.seen.add({(late, "t", 0): 5, (ends.reading, "t", 1): 7})
    assert ends.applied({("t", 0): 100, ("t", 1): 100}) == {("t", 0): 100, ("t", 1): 7}


def test_exactly_once_each_row_is_there_once(lab: Lab, attempts: list[bool]) -> None:
    copy = Copy(lab, [ORDINARY[:20], [*ORDINARY[20:], *UNUSUAL]])
    progress = copy.run(sink__delivery_guarantee="exactly-once")
    assert (attempts, progress.batches) == ([True], 1)
    assert sorted(copy.numbers()) == [*range(30), 100, 101, 102]


def test_groups_count_the_same(lab: Lab, attempts: list[bool]) -> None:
    columns = "who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED"
    for unusual in ([], UNUSUAL):
        copy = Copy(lab, [ORDINARY[:20], [*ORDINARY[20:], *unusual]])
        insert = "INSERT INTO s SELECT UPPER(who), COUNT(*) FROM t GROUP BY UPPER(who);"
        copy.run(insert, columns, connector="upsert-kafka")
        found = {row["who"]: row["n"] for row in lab.values(copy.sink, 2)}
        assert found == ({"A": 11, "B": 10, "C": 10, "X": 1, "Y": 1} if unusual else dict.fromkeys("ABC", 10))
    assert attempts == [True, True]


def test_metadata_come_along(lab: Lab, attempts: list[bool]) -> None:
    copy = Copy(lab, [ORDINARY[:3], ORDINARY[3:5]])
    copy.run("INSERT INTO s SELECT n, o, p FROM t;", "n BIGINT, o BIGINT, p INT")
    assert attempts == [True]
    assert sorted(json.dumps(row) for row in lab.values(copy.sink, 2)) == [
        json.dumps({"n": n, "o": o, "p": p}) for n, o, p in ((0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 0, 1), (4, 1, 1))
    ]


def test_a_table_that_is_read_twice_takes_the_other_way(lab: Lab, attempts: list[bool]) -> None:
    copy = Copy(lab, [ORDINARY[:20], [*ORDINARY[20:], *UNUSUAL]])
    copy.run("INSERT INTO s SELECT who, n FROM t WHERE n < 10 UNION ALL SELECT who, n FROM t WHERE n >= 10;")
    assert attempts == []
    assert sorted(copy.numbers()) == [*range(30), 100, 101, 102]


CHANGES = {
    "debezium-json": (
        b'{"before":null,"after":{"who":"a","n":%d},"op":"c"}',
        b'{"before":{"who":"a","n":%d},"after":{"who":"b","n":%d},"op":"u"}',
        b'{"before":{"who":"b","n":%d},"after":null,"op":"d"}',
        b'{"after":{"who":"a","n":1},"op":"unknown"}',
    ),
    "canal-json": (
        b'{"data":[{"who":"a","n":"%d"}],"type":"INSERT"}',
        b'{"data":[{"who":"b","n":"%d"}],"old":[{"who":"a","n":"%d"}],"type":"UPDATE"}',
        b'{"data":[{"who":"b","n":"%d"}],"type":"DELETE"}',
        b'{"data":[{"who":"b","n":"1"}],"type":"UPDATE","old":null}',
    ),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("bad", [False, True], ids=["good", "bad"])
def test_changes_add_up(lab: Lab, attempts: list[bool], name: str, bad: bool) -> None:
    """Of 10 rows 6 move to another group, of which 2 go."""
    inserted, moved, gone, senseless = CHANGES[name]
    messages = [inserted % n for n in range(10)]
    messages += [moved % (n, n) for n in range(6)] + [gone % n for n in range(2)] + ([senseless] if bad else [])
    topic, sink = lab.topic("changes"), lab.topic("groups")
    lab.kafka.produce(Record(topic, None, value, 0) for value in [*messages, None])
    session = lab.session()
    bounds = {"scan__startup__mode": "earliest-offset", "scan__bounded__mode": "latest-offset"}
    read = lab.ddl("t", "who STRING, n BIGINT", topic=topic, format=name, scan__bad_records="skip", **bounds)
    counts = "who STRING, c BIGINT, s BIGINT, PRIMARY KEY (who) NOT ENFORCED"
    session.sql(
        read + lab.ddl("s", counts, connector="upsert-kafka", topic=sink)
        + "INSERT INTO s SELECT LOWER(who), COUNT(*), SUM(n) FROM t GROUP BY LOWER(who);"
    )  # fmt: skip
    session.wait()
    assert attempts == [True]
    assert session.jobs[0].progress().bad_records == bad
    found = {row["who"]: (row["c"], row["s"]) for row in lab.values(sink)}
    assert found == {"a": (4, 6 + 7 + 8 + 9), "b": (4, 2 + 3 + 4 + 5)}
