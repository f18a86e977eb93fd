"""'table.exec.state.ttl' and the hint STATE_TTL. What is forgotten between two batches depends on how the input is cut,
so this is played as written only."""

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


HINT = """\
topic orders partitions=1
topic names partitions=1
topic named

sql
CREATE TABLE orders (id INT, who STRING)
WITH ('connector' = 'kafka', 'topic' = '${orders}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'csv',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE names (who STRING, name STRING, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${names}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv');
CREATE TABLE named (id INT, name STRING)
WITH ('connector' = 'kafka', 'topic' = '${named}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'csv',
  'sink.changelog' = 'retract', 'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '${named}');
SET 'table.exec.state.ttl' = '1 d';
INSERT INTO named SELECT /*+ STATE_TTL('o' = '1 ms', 'n' = '0 s') */ o.id, n.name
FROM orders AS o JOIN names AS n ON o.who = n.who;

produce names
ann => ann,Ann

produce orders
null => 1,ann

produce orders
null => 2,ann

expect named any-order
null => 1,Ann
null => 2,Ann

restart kill

produce names
ann => ann,Anna

produce orders
null => 3,ann

expect named any-order
null => 3,Anna
"""


def test_the_sides_of_a_join_are_forgotten_apart(case_runner: CaseRunner) -> None:
    """Orders are forgotten before the name changes: their rows are not retracted. The name is kept."""
    case_runner.play(parse_case(HINT, "ttl_hint.case"), ReplayMode.AS_WRITTEN)
