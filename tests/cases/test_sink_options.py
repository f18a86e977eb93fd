"""Where messages go and what goes with them: partitioners, topics that rows name, topics that are created. How rows are
spread depends on how the input is cut, so these are played as written only."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource

from headwater.broker import Broker
from headwater.session import Session
from headwater.testing import CaseRunner, ReplayMode, parse_case

SOURCE = """\
topic source
{topics}

sql
CREATE TABLE source (id INT, who STRING, place STRING) WITH ('connector' = 'kafka', 'topic' = '${{source}}',
  'properties.bootstrap.servers' = '${{kafka}}', 'format' = 'csv', 'scan.startup.mode' = 'earliest-offset');
"""
SINK = "'properties.bootstrap.servers' = '${kafka}', 'format' = 'csv'"


class ByWho:
    """ann's rows to partition 2, all others by the length of the key; nobody's nowhere."""

    def partition(
        self, record: Mapping[str, Any], key: bytes | None, value: bytes | None, topic: str, partitions: int
    ) -> int:
        assert value is not None
        assert topic.startswith(("custom", "once"))
        if record["who"] == "nobody":
            return partitions
        return 2 if record["who"] == "ann" else len(key or b"") % partitions


PARTITIONERS = (
    SOURCE.format(
        topics="topic fixed partitions=3\ntopic turns partitions=3\ntopic custom partitions=3\ntopic once partitions=3"
    )
    + f"""\
CREATE TABLE fixed (id INT) WITH ('connector' = 'kafka', 'topic' = '${{fixed}}', 'sink.partitioner' = 'fixed',
  'sink.parallelism' = '1', {SINK});
CREATE TABLE turns (id INT) WITH ('connector' = 'kafka', 'topic' = '${{turns}}', 'sink.partitioner' = 'round-robin',
  'sink.delivery-guarantee' = 'none', 'sink.parallelism' = '1', {SINK});
CREATE TABLE custom (id INT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${{custom}}',
  'sink.partitioner' = 'test_sink_options.ByWho', 'key.format' = 'csv', 'key.fields' = 'who', {SINK});
CREATE TABLE once (id INT, who STRING) WITH ('connector' = 'kafka', 'topic' = '${{once}}',
  'sink.partitioner' = 'test_sink_options.ByWho', 'sink.delivery-guarantee' = 'exactly-once', {SINK});
INSERT INTO fixed SELECT id FROM source WHERE id < 4;
INSERT INTO turns SELECT id FROM source WHERE id < 4;
INSERT INTO custom SELECT id, who FROM source;
INSERT INTO once SELECT id, who FROM source WHERE id < 4;

produce source
null => 1,ann,x
null => 2,bo,x
null => 3,carol,x

expect fixed any-order
@partition=0 null => 1
@partition=0 null => 2
@partition=0 null => 3

expect turns any-order
@partition=1 null => 1
@partition=2 null => 2
@partition=0 null => 3

expect custom any-order
@partition=2 ann => 1,ann
@partition=2 bo => 2,bo
@partition=2 carol => 3,carol

expect once any-order
@partition=2 null => 1,ann
@partition=0 null => 2,bo
@partition=0 null => 3,carol

produce source
null => 4,nobody,x

error run contains
Partitioner 'test_sink_options.ByWho' answered 3 for a message to topic 'custom
The topic has 3 partitions, so it must be a number from 0 to 2.
"""
)

TOPICS = (
    SOURCE.format(topics="topic north partitions=2\ntopic south partitions=3")
    + f"""\
CREATE TABLE places (id INT, topic STRING METADATA, marks ARRAY<ROW<name STRING, content BYTES>> METADATA FROM
  'header-list') WITH ('connector' = 'kafka', 'topic' = '${{north}};${{south}}', 'sink.partitioner' = 'fixed', {SINK});
CREATE TABLE matching (id INT, who STRING, place STRING METADATA FROM 'topic', made TIMESTAMP(3) METADATA FROM
  'timestamp') WITH ('connector' = 'kafka', 'topic-pattern' = '(${{north}}|${{south}})',
  'sink.delivery-guarantee' = 'exactly-once', {SINK});
INSERT INTO places SELECT id, IF(place = 'n', '${{north}}', IF(place = 's', '${{south}}', place)),
  ARRAY[ROW('a', CAST(who AS BYTES)), ROW('a', CAST('2' AS BYTES))] FROM source WHERE id < 10;
INSERT INTO matching SELECT id, who, IF(place = 'n', '${{north}}', '${{south}}'), TIMESTAMP '2024-01-01 00:00:00'
  FROM source WHERE id >= 10;

produce source
null => 1,ann,n
null => 2,bob,s
null => 11,ann,n
null => 12,bob,s

expect north any-order
@partition=0 @header.a=ann @header.a=2 null => 1
@timestamp=1704067200000 null => 11,ann

expect south any-order
@partition=0 @header.a=bob @header.a=2 null => 2
@timestamp=1704067200000 null => 12,bob

produce source
null => 3,carol,elsewhere

error run contains
The topic of a row of table 'places' is not valid. Expected topic to be in: [north
but was: elsewhere
"""
)

TIMES = (
    SOURCE.format(topics="topic stamped")
    + f"""\
CREATE TABLE stamped (who STRING, made TIMESTAMP_LTZ(3) METADATA FROM 'timestamp') WITH ('connector' = 'kafka',
  'topic' = '${{stamped}}', {SINK});
INSERT INTO stamped SELECT who, TO_TIMESTAMP_LTZ(id, 3) FROM source;

produce source
null => 1,ann,n

expect stamped exact
@timestamp=1 null => ann

produce source
null => 0,bob,n

error run contains
The time of a message must be later than 1970-01-01 00:00:00 UTC; in a row of table 'stamped' it is 0 ms after that.
"""
)


@pytest.mark.parametrize("text", [PARTITIONERS, TOPICS, TIMES], ids=["partitioners", "topics", "times"])
def test_messages_go_where_the_table_says(text: str, case_runner: CaseRunner) -> None:
    case_runner.play(parse_case(text, "sink options"), ReplayMode.AS_WRITTEN)


def test_topics_are_created_if_the_table_asks_for_it(broker: Broker, case_runner: CaseRunner, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex[:8]
    session = Session(str(tmp_path), variables={"kafka": broker.bootstrap_servers, "mark": mark})
    session.spark_session = case_runner.spark()
    upsert = (
        "'connector' = 'upsert-kafka', 'key.format' = 'csv', 'value.format' = 'csv', 'properties.bootstrap.servers'"
    )
    session.sql(f"""
    CREATE TABLE made (id INT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert} = '${{kafka}}',
      'topic' = 'made-${{mark}}', 'sink.topic.create' = 'true', 'sink.topic.partitions' = '3',
      'sink.topic.replication-factor' = '1', 'sink.topic.config.segment.ms' = '60000');
    CREATE TABLE plain (id INT) WITH ('connector' = 'kafka', 'format' = 'csv', 'topic' = 'plain-${{mark}}',
      'properties.bootstrap.servers' = '${{kafka}}', 'sink.topic.create' = 'true');
    INSERT INTO made VALUES (1, 1), (2, 2);
    INSERT INTO plain VALUES (1);
    """)
    session.wait()
    assert [job.progress().rows_out for job in session.jobs] == [2, 1]
    assert [job.progress().warnings for job in session.jobs] == [(), ()]
    session.sql(f"""
    CREATE TABLE log_of_rows (id INT, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({upsert} = '${{kafka}}',
      'topic' = 'plain-${{mark}}');
    INSERT INTO log_of_rows VALUES (1, 1);
    """)
    session.wait()
    assert "is not compacted ('cleanup.policy' = 'delete')" in session.jobs[2].progress().warnings[0]
    session.close()
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    known = admin.list_topics(timeout=10).topics
    assert len(known[f"made-{mark}"].partitions) == 3
    resource = ConfigResource(ConfigResource.Type.TOPIC, f"made-{mark}")
    settings = admin.describe_configs([resource])[resource].result(10)
    assert settings["cleanup.policy"].value == "compact"
    assert settings["segment.ms"].value == "60000"
    admin.delete_topics([f"made-{mark}", f"plain-{mark}"])
