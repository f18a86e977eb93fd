"""Where reading starts and ends, which topics and partitions are read, and that a checkpoint wins over all of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from kafka_lab import Lab

from headwater.errors import HeadwaterError, KafkaRefusedError, ValidationError

EARLIEST = {"scan__startup__mode": "earliest-offset"}
BOUNDED = {"scan__bounded__mode": "latest-offset"}


def commit(lab: Lab, group: str, offsets: dict[tuple[str, int], int]) -> None:
    consumer = Consumer({"bootstrap.servers": lab.kafka.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(t, p, o) for (t, p), o in offsets.items()], asynchronous=False)
    consumer.close()


def committed(lab: Lab, group: str) -> dict[int, int]:
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})
    [future] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {tp.partition: tp.offset for tp in future.result(30).topic_partitions}


def numbers(lab: Lab, topic: str, **options: str) -> list[int]:
    return [n for (n,) in lab.table("n INT", topic=topic, **options)]


@pytest.fixture
def filled(lab: Lab) -> str:
    """Partition 0 has 0 … 4 at seconds 0 … 4 of 1970, partition 1 has 10 … 14."""
    topic = lab.topic("filled", 2)
    for n in range(5):
        lab.produce(topic, [{"n": n}], 0, 1000 * n or 1)
        lab.produce(topic, [{"n": 10 + n}], 1, 1000 * n or 1)
    return topic


def test_start_modes(lab: Lab, filled: str) -> None:
    everything = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14]
    assert numbers(lab, filled, **EARLIEST) == everything
    assert numbers(lab, filled, scan__startup__mode="latest-offset") == []
    at = {"scan__startup__mode": "timestamp", "scan__startup__timestamp_millis": "3000"}
    assert numbers(lab, filled, **at) == [3, 4, 13, 14]
    assert numbers(lab, filled, **{**at, "scan__startup__timestamp_millis": "9000"}) == []
    group = f"group-{filled}"
    commit(lab, group, {(filled, 0): 3})
    grouped = {"properties__group__id": group}
    assert numbers(lab, filled, **grouped) == [3, 4]  # nothing committed for partition 1: latest, as Kafka would
    assert numbers(lab, filled, **grouped, properties__auto__offset__reset="earliest") == [3, 4, 10, 11, 12, 13, 14]
    with pytest.raises(KafkaRefusedError, match=f"Group '{group}' has no committed offset for {filled}-1"):
        numbers(lab, filled, **grouped, properties__auto__offset__reset="none")
    specific = {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "partition:1,offset:4"}
    assert numbers(lab, filled, **specific, **grouped) == [3, 4, 14]
    with pytest.raises(ValidationError, match=f"names partition 7, which topic '{filled}' does not have"):
        numbers(lab, filled, **{**specific, "scan__startup__specific_offsets": "partition:7,offset:4"})


def test_bounded_modes(lab: Lab, filled: str) -> None:
    at = {"scan__bounded__mode": "timestamp", "scan__bounded__timestamp_millis": "2000"}
    assert numbers(lab, filled, **EARLIEST, **at) == [0, 1, 10, 11]
    specific = {"scan__bounded__mode": "specific-offsets", "scan__bounded__specific_offsets": "partition:0,offset:2"}
    assert numbers(lab, filled, **EARLIEST, **specific) == [0, 1]
    group = f"group-{filled}"
    commit(lab, group, {(filled, 0): 1, (filled, 1): 2})
    assert numbers(lab, filled, **EARLIEST, scan__bounded__mode="group-offsets", properties__group__id=group) == [
        0,
        10,
        11,
    ]


def test_a_warning_says_where_a_new_group_starts(lab: Lab, filled: str) -> None:
    session = lab.session()
    session.sql(lab.ddl("t", "n INT", topic=filled, properties__group__id=f"new-{filled}", **BOUNDED))
    session.sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole'); INSERT INTO nowhere SELECT n FROM t;")
    session.wait()
    [warning] = session.jobs[0].progress().warnings
    assert "has no committed offset for" in warning
    assert "starts at the latest offset, Kafka's default" in warning


def test_a_changelog_may_begin_and_end_elsewhere(lab: Lab) -> None:
    topic = lab.topic("upserts")
    lab.produce(topic, [("a", {"n": 1}), ("b", {"n": 1}), ("a", None), ("c", {"n": 1}), ("c", {"n": 2})])
    columns = "id STRING, n INT, PRIMARY KEY (id) NOT ENFORCED"
    upsert = {"connector": "upsert-kafka", "topic": topic}
    assert lab.table(columns, **upsert) == [("b", 1), ("c", 2)]
    ending = {"scan__bounded__mode": "specific-offsets", "scan__bounded__specific_offsets": "partition:0,offset:4"}
    assert lab.table(columns, **upsert, **ending) == [("b", 1), ("c", 1)]
    late = {"scan__startup__mode": "specific-offsets", "scan__startup__specific_offsets": "partition:0,offset:2"}
    rows = lab.table(columns, **upsert, **late, scan__startup__partial_changelog="true")
    assert rows == [("c", 2)]  # b is in the part that was skipped


def test_lists_and_patterns_of_topics(lab: Lab) -> None:
    first, second, other = lab.topic("list"), lab.topic("list", 2), lab.topic("other")
    for n, topic in enumerate([first, second, other]):
        lab.produce(topic, [{"n": n}])
    columns = "n INT, topic STRING METADATA VIRTUAL"
    expected = [(0, first), (1, second)]
    assert lab.table(columns, topic=f"{first}; {second}", **EARLIEST) == expected
    pattern = f"list-({first[5:]}|{second[5:]})"
    assert lab.table(columns, topic_pattern=pattern, **EARLIEST) == expected
    assert lab.table(columns, topic_pattern=first[:-1], **EARLIEST) == []  # the whole name must match
    with pytest.raises(ValidationError, match=r"'topic-pattern' = 'list-\[' is not a regular expression"):
        lab.table(columns, topic_pattern="list-[", **EARLIEST)
    with pytest.raises(KafkaRefusedError, match="Topic 'no-such-topic' does not exist"):
        lab.table(columns, topic=f"{first};no-such-topic", **EARLIEST)


def test_the_same_key_in_two_topics_of_a_changelog(lab: Lab) -> None:
    """Offsets of different topics cannot be compared: what counts between them is the time of the message."""
    first, second = lab.topic("upserts"), lab.topic("upserts")
    lab.produce(first, [("x", {"n": 0}), ("x", {"n": 1}), ("k", {"n": 2})], timestamp=1000)
    lab.produce(second, [("k", {"n": 3})], timestamp=2000)
    sink = lab.topic("sink")
    columns = "id STRING, n INT, PRIMARY KEY (id) NOT ENFORCED"
    session = lab.session()
    both = {"connector": "upsert-kafka", "topic": f"{first};{second}"}
    session.sql(lab.ddl("t", columns, **both, **BOUNDED))
    session.sql(
        lab.ddl("s", "n INT, how_many BIGINT, PRIMARY KEY (n) NOT ENFORCED", connector="upsert-kafka", topic=sink)
    )
    session.sql("INSERT INTO s SELECT n, COUNT(*) FROM t GROUP BY n")
    session.wait()
    assert sorted(row["n"] for row in lab.values(sink)) == [1, 3]


def test_new_partitions_and_new_topics_are_read_from_their_beginning(lab: Lab, until: Callable[..., None]) -> None:
    stem = lab.topic("found", create=False)
    sink = lab.topic("sink")
    lab.kafka.create({f"{stem}-1": 1})
    session = lab.session("state")
    session.sql(
        lab.ddl(
            "t",
            "n INT",
            topic_pattern=f"{stem}-.*",
            scan__startup__mode="latest-offset",
            scan__topic_partition_discovery__interval="200 ms",
        )
        + lab.ddl("s", "n INT", topic=sink)
        + "INSERT INTO s SELECT n FROM t;"
    )
    [job] = session.jobs
    until(lambda: job.progress().status == "running", job)
    admin = AdminClient({"bootstrap.servers": lab.kafka.bootstrap_servers})
    admin.create_partitions([NewPartitions(f"{stem}-1", 2)])[f"{stem}-1"].result(30)
    lab.kafka.create({f"{stem}-2": 1})
    lab.produce(f"{stem}-2", [{"n": 2}])
    lab.produce(f"{stem}-1", [{"n": 1}], partition=1)
    until(lambda: sorted(row["n"] for row in lab.values(sink)) == [1, 2], job)
    session.stop_jobs()
    # Found again after a restart, each where it was read to.
    lab.produce(f"{stem}-1", [{"n": 3}], partition=1)
    again = lab.session("state")
    again.sql(
        lab.ddl("t", "n INT", topic_pattern=f"{stem}-.*")
        + lab.ddl("s", "n INT", topic=sink)
        + "INSERT INTO s SELECT n FROM t;"
    )
    until(lambda: sorted(row["n"] for row in lab.values(sink)) == [1, 2, 3], again.jobs[0])
    again.stop_jobs()
    assert sorted(row["n"] for row in lab.values(sink)) == [1, 2, 3]


def test_what_comes_while_a_job_is_down_is_not_lost(lab: Lab, until: Callable[..., None]) -> None:
    """Not in partitions that were idle before, nor of a job that never had a batch: its start is written down."""
    topic, sink = lab.topic("idle", 2), lab.topic("sink")
    lab.produce(topic, [{"n": 0}])
    script = lab.ddl("t", "n INT", topic=topic, scan__startup__mode="latest-offset")
    script += lab.ddl("s", "n INT", topic=sink) + "INSERT INTO s SELECT n FROM t;"

    def run_until(condition: Callable[[], bool]) -> None:
        session = lab.session("state")
        session.sql(script)
        until(lambda: session.jobs[0].progress().status == "running" and condition(), session.jobs[0])
        session.stop_jobs()

    run_until(lambda: True)
    lab.produce(topic, [{"n": 1}])
    run_until(lambda: lab.values(sink) == [{"n": 1}])
    lab.produce(topic, [{"n": 2}], partition=1)
    run_until(lambda: lab.values(sink) == [{"n": 1}, {"n": 2}])


def test_lag_tools_see_where_a_running_job_is(lab: Lab, until: Callable[..., None]) -> None:
    topic = lab.topic("lag", 2)
    lab.produce(topic, [{"n": n} for n in range(5)])
    lab.produce(topic, [{"n": n} for n in range(3)], partition=1)
    groups = {"on": f"on-{topic}", "off": f"off-{topic}", "flink": f"flink-{topic}"}
    session = lab.session()
    session.sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole')")
    switches = {
        "on": {},
        "off": {"enable__auto__commit": "false"},
        "flink": {"commit__offsets__on__checkpoint": "false"},
    }
    for name, switch in switches.items():
        options = {f"properties__{key}": value for key, value in {"group__id": groups[name], **switch}.items()}
        session.sql(lab.ddl(f"t_{name}", "n INT", topic=topic, **EARLIEST, **options))
        session.sql(f"INSERT INTO nowhere SELECT n FROM t_{name}")
    until(lambda: all(job.progress().rows_in == 8 for job in session.jobs), session.jobs[0])
    until(lambda: committed(lab, groups["on"]) == {0: 5, 1: 3}, session.jobs[0])
    assert all(job.running for job in session.jobs)
    lab.produce(topic, [{"n": 9}])
    until(lambda: committed(lab, groups["on"]) == {0: 6, 1: 3}, session.jobs[0])
    until(lambda: all(job.progress().rows_in == 9 for job in session.jobs), session.jobs[0])
    assert committed(lab, groups["off"]) == committed(lab, groups["flink"]) == {}


def test_a_job_that_cannot_start_says_so_at_once(lab: Lab) -> None:
    session = lab.session()
    session.sql(lab.ddl("t", "n INT", topic="no-such-topic", **EARLIEST))
    session.sql("CREATE TABLE nowhere (n INT) WITH ('connector' = 'blackhole'); INSERT INTO nowhere SELECT n FROM t;")
    with pytest.raises(HeadwaterError, match="Topic 'no-such-topic' does not exist"):
        session.wait()
