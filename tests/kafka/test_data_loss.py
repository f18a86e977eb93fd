"""Messages that are gone before they are read ('scan.on-data-loss'), and messages of transactions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from kafka_lab import Lab

from headwater.errors import DataLossError
from headwater.session import Session

EARLIEST = {"scan__startup__mode": "earliest-offset"}


def delete_before(lab: Lab, topic: str, offset: int) -> None:
    """As retention does."""
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})
    for future in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        future.result(30)


def delete_topic(lab: Lab, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})  # lives until the result is there
    admin.delete_topics([topic])[topic].result(30)


def start(lab: Lab, sink: str, **options: str) -> Session:
    session = lab.session("state")
    options = {"scan__topic_partition_discovery__interval": "200 ms", **EARLIEST, **options}
    session.sql(lab.ddl("t", "n INT", **options) + lab.ddl("s", "n INT", topic=sink) + "INSERT INTO s SELECT n FROM t;")
    return session


@pytest.fixture
def stopped_at_3(lab: Lab, until: Callable[..., None]) -> tuple[str, str]:
    """A topic and a sink; a job has read three messages of the topic and was stopped."""
    topic, sink = lab.topic("lost"), lab.topic("sink")
    lab.produce(topic, [{"n": n} for n in range(3)])
    session = start(lab, sink, topic=topic)
    until(lambda: len(lab.values(sink)) == 3, session.jobs[0])
    session.stop_jobs()
    return topic, sink


def test_retention_has_passed(lab: Lab, stopped_at_3: tuple[str, str], until: Callable[..., None]) -> None:
    topic, sink = stopped_at_3
    lab.produce(topic, [{"n": n} for n in range(3, 10)])
    delete_before(lab, topic, 8)
    with pytest.raises(DataLossError) as raised:
        start(lab, sink, topic=topic).wait()
    text = str(raised.value)
    assert f"Table 't' needs messages that topic '{topic}' no longer has." in text
    assert "Partition 0: the job stands at offset 3, and the topic now begins at 8." in text
    assert "'scan.on-data-loss' = 'continue'" in text
    session = start(lab, sink, topic=topic, scan__on_data_loss="continue")
    until(lambda: [row["n"] for row in lab.values(sink)] == [0, 1, 2, 8, 9], session.jobs[0])
    [warning] = session.jobs[0].progress().warnings
    assert f"lost messages of topic '{topic}', partition 0" in warning
    # The same once more in a job that runs; all that came is deleted again before it is read.
    session.jobs[0].pause()
    lab.produce(topic, [{"n": n} for n in range(10, 15)])
    delete_before(lab, topic, 15)
    session.jobs[0].resume()
    until(lambda: len(session.jobs[0].progress().warnings) == 2, session.jobs[0])
    lab.produce(topic, [{"n": 15}])
    until(lambda: [row["n"] for row in lab.values(sink)] == [0, 1, 2, 8, 9, 15], session.jobs[0])


def test_a_topic_is_deleted(lab: Lab, stopped_at_3: tuple[str, str], until: Callable[..., None]) -> None:
    topic, sink = stopped_at_3
    session = start(lab, sink, topic=topic)
    until(lambda: session.jobs[0].progress().status == "running", session.jobs[0])
    delete_topic(lab, topic)
    with pytest.raises(DataLossError, match="stands at offset 3, and the topic has been deleted") as raised:
        session.wait()
    assert topic in str(raised.value)
    # Made anew it is another topic: the offsets of the old one mean nothing there.
    lab.kafka.create({topic: 1})
    lab.produce(topic, [{"n": 100}])
    with pytest.raises(DataLossError, match="has been deleted and created again since the last commit"):
        start(lab, sink, topic=topic).wait()
    session = start(lab, sink, topic=topic, scan__on_data_loss="continue")
    until(lambda: [row["n"] for row in lab.values(sink)] == [0, 1, 2, 100], session.jobs[0])
    # Deleted and made anew while the job goes on.
    delete_topic(lab, topic)
    until(lambda: any("deleted" in w for w in session.jobs[0].progress().warnings), session.jobs[0])
    lab.kafka.create({topic: 1})
    lab.produce(topic, [{"n": 200}, {"n": 201}])
    until(lambda: [row["n"] for row in lab.values(sink)] == [0, 1, 2, 100, 200, 201], session.jobs[0])


def test_a_bounded_job_ends_although_its_end_is_gone(lab: Lab, until: Callable[..., None]) -> None:
    topic, sink = lab.topic("bounded"), lab.topic("sink")
    lab.produce(topic, [{"n": n} for n in range(10)])
    session = lab.session("state")
    script = lab.ddl(
        "t", "n INT", topic=topic, **EARLIEST, scan__bounded__mode="latest-offset", scan__on_data_loss="continue"
    )
    script += lab.ddl("s", "n INT", topic=sink) + "INSERT INTO s SELECT n FROM t;"
    session.sql("SET 'headwater.batch.max-rows' = '4';" + script)
    assert session.jobs[0].wait(60)
    assert [row["n"] for row in lab.values(sink)] == list(range(10))
    # A job whose bound was fixed before messages up to it, and beyond, were removed.
    other = lab.session("other")
    other.on_job = lambda job: job.pause()
    other.sql(script)
    [job] = other.jobs
    until(lambda: list((lab.directory / "other").rglob("log/*.json")), job)
    lab.produce(topic, [{"n": 10}])
    delete_before(lab, topic, 11)
    job.resume()
    assert job.wait(60)
    assert job.progress().status == "finished"


def test_transactions(lab: Lab) -> None:
    """A bounded job ends at control records, and `read_committed` hides what was aborted or is undecided."""
    topic, sink = lab.topic("transactions"), lab.topic("sink")
    lab.transaction(topic, [{"n": 1}, {"n": 2}], commit=True)
    lab.transaction(topic, [{"n": 3}], commit=False)
    lab.transaction(topic, [{"n": 4}], commit=True)
    committed = {"properties__isolation__level": "read_committed"}

    def numbers(**options: str) -> list[int]:
        return [n for (n,) in lab.table("n INT", topic=topic, **EARLIEST, **options)]

    assert numbers() == [1, 2, 3, 4]
    assert numbers(**committed) == [1, 2, 4]
    # Offsets: 0, 1 and a marker; 3 and a marker; 5 and a marker. Ends on, before and behind markers.
    for end, expected in {2: [1, 2], 3: [1, 2], 4: [1, 2], 5: [1, 2], 7: [1, 2, 4]}.items():
        session = lab.session()
        bound = {
            "scan__bounded__mode": "specific-offsets",
            "scan__bounded__specific_offsets": f"partition:0,offset:{end}",
        }
        session.sql(lab.ddl("t", "n INT", topic=topic, **EARLIEST, **committed, **bound))
        session.sql(lab.ddl("s", "n INT", topic=sink) + "INSERT INTO s SELECT n FROM t")
        before = len(lab.values(sink))
        assert session.jobs[0].wait(60)
        assert [row["n"] for row in lab.values(sink)[before:]] == expected
    # Start in a marker, end in a marker: nothing to read, and still an end.
    marker = {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "partition:0,offset:6"}
    session = lab.session()
    session.sql(lab.ddl("t", "n INT", topic=topic, **marker, **committed, scan__bounded__mode="latest-offset"))
    session.sql(lab.ddl("s", "n INT", topic=sink) + "INSERT INTO s SELECT n FROM t")
    assert session.jobs[0].wait(60)
