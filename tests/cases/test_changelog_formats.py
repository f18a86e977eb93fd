"""Changelog formats as sinks: as in Flink a delete and an insert for an update, or one message.

How many there are depends on how the input is cut, so the bytes are compared as written only; what they amount to is in
cdc/repeated_changes.case."""

from __future__ import annotations

from headwater.testing import CaseRunner, ReplayMode, parse_case

CASE = """\
topic clicks partitions=2
topic plain
topic whole partitions=2
topic arrays

sql
CREATE TABLE clicks (id STRING, who STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'json');
CREATE TABLE plain (who STRING, n BIGINT)
WITH ('connector' = 'kafka', 'topic' = '${plain}', 'properties.bootstrap.servers' = '${kafka}',
  'format' = 'debezium-json');
CREATE TABLE whole (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = '${whole}', 'properties.bootstrap.servers' = '${kafka}',
  'format' = 'maxwell-json', 'maxwell-json.encode.update-as-one-message' = 'true');
CREATE TABLE arrays (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = '${arrays}', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'raw',
  'value.format' = 'canal-json', 'value.canal-json.encode.update-as-one-message' = 'true');
EXECUTE STATEMENT SET BEGIN
INSERT INTO plain SELECT who, COUNT(*) FROM clicks GROUP BY who;
INSERT INTO whole SELECT who, COUNT(*) FROM clicks GROUP BY who;
INSERT INTO arrays SELECT who, COUNT(*) FROM clicks GROUP BY who;
END;

produce clicks
c1 => {"id":"c1","who":"ann"}
c2 => {"id":"c2","who":"bob"}

expect plain any-order
null => {"before":null,"after":{"who":"ann","n":1},"op":"c"}
null => {"before":null,"after":{"who":"bob","n":1},"op":"c"}

expect whole any-order
null => {"data":{"who":"ann","n":1},"type":"insert"}
null => {"data":{"who":"bob","n":1},"type":"insert"}

expect arrays per-key
ann => {"data":[{"who":"ann","n":1}],"type":"INSERT"}
bob => {"data":[{"who":"bob","n":1}],"type":"INSERT"}

produce clicks
c3 => {"id":"c3","who":"ann"}
c2 => null

expect plain any-order
null => {"before":{"who":"ann","n":1},"after":null,"op":"d"}
null => {"before":null,"after":{"who":"ann","n":2},"op":"c"}
null => {"before":{"who":"bob","n":1},"after":null,"op":"d"}

expect whole any-order
null => {"data":{"who":"ann","n":2},"old":{"who":"ann","n":1},"type":"update"}
null => {"data":{"who":"bob","n":1},"type":"delete"}

expect arrays per-key
ann => {"data":[{"who":"ann","n":2}],"old":[{"who":"ann","n":1}],"type":"UPDATE"}
bob => {"data":[{"who":"bob","n":1}],"type":"DELETE"}
"""


def test_changes_as_written(case_runner: CaseRunner) -> None:
    case_runner.play(parse_case(CASE, "changelog_formats"), ReplayMode.AS_WRITTEN)
