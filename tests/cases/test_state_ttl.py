"""'table.exec.state.ttl'. What is forgotten between two batches depends on how the input is cut, so this is played as
written only."""

from __future__ import annotations

from headwater.testing import CaseRunner, ReplayMode, parse_case

CASE = """\
topic clicks partitions=1
topic forgotten
topic kept

sql
CREATE TABLE clicks (who STRING)
WITH ('connector' = 'kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE forgotten (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${forgotten}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv');
CREATE TABLE kept WITH ('topic' = '${kept}') LIKE forgotten (OVERWRITING OPTIONS);
SET 'table.exec.state.ttl' = '1 ms';
INSERT INTO forgotten SELECT who, COUNT(*) FROM clicks GROUP BY who;
SET 'table.exec.state.ttl' = '1 d';
INSERT INTO kept SELECT who, COUNT(DISTINCT who) + COUNT(*) FROM clicks GROUP BY who;

produce clicks
null => {"who":"ann"}
null => {"who":"ann"}

expect forgotten exact
ann => ann,2

expect kept exact
ann => ann,3

produce clicks
null => {"who":"ann"}

expect forgotten exact
ann => ann,1

expect kept exact
ann => ann,4

restart kill

produce clicks
null => {"who":"ann"}

expect forgotten exact
ann => ann,1

expect kept exact
ann => ann,5
"""


def test_keys_that_are_not_used_are_forgotten(case_runner: CaseRunner) -> None:
    case_runner.play(parse_case(CASE, "ttl.case"), ReplayMode.AS_WRITTEN)
