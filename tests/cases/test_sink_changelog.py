"""'sink.changelog' and 'sink.ignore-retractions'. How many changes there are, and which of them are retracted, depends
on how the input is cut, so this is played as written only."""

from __future__ import annotations

from headwater.testing import CaseRunner, ReplayMode, parse_case

CASE = """\
topic clicks
topic rows
topic log
topic keyed partitions=2
topic upserts
topic never_deleted

sql
CREATE TABLE clicks (id STRING, who STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${clicks}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv');
CREATE TABLE rows_ (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = '${rows}', 'properties.bootstrap.servers' = '${kafka}',
  'format' = 'csv', 'sink.changelog' = 'append');
CREATE TABLE log_ (who STRING, n BIGINT, more MAP<STRING, BYTES> METADATA FROM 'headers')
WITH ('connector' = 'kafka', 'topic' = '${log}', 'properties.bootstrap.servers' = '${kafka}',
  'format' = 'json', 'sink.changelog' = 'retract');
CREATE TABLE keyed (id STRING, who STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = '${keyed}', 'properties.bootstrap.servers' = '${kafka}',
  'format' = 'csv', 'sink.changelog' = 'retract');
CREATE TABLE upserts (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${upserts}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv', 'sink.changelog' = 'retract');
CREATE TABLE never_deleted (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = '${never_deleted}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw', 'value.format' = 'csv', 'sink.ignore-retractions' = 'true');
INSERT INTO rows_ VALUES ('ann', 1);
INSERT INTO log_ SELECT who, COUNT(*), CAST(NULL AS MAP<STRING, BYTES>) FROM clicks GROUP BY who HAVING COUNT(*) < 9;
INSERT INTO keyed SELECT id, who FROM clicks;
INSERT INTO upserts SELECT who, COUNT(*) FROM clicks GROUP BY who;
INSERT INTO never_deleted SELECT who, COUNT(*) FROM clicks GROUP BY who;

expect rows exact
ann => ann,1

produce clicks
c1 => c1,ann

expect log exact
@header.rowkind=+I null => {"who":"ann","n":1}

expect keyed exact
@header.rowkind=+I c1 => c1,ann

expect upserts exact
@header.rowkind=+I ann => ann,1

expect never_deleted exact
ann => ann,1

produce clicks
c2 => c2,ann

expect log exact
@header.rowkind=-U null => {"who":"ann","n":1}
@header.rowkind=+U null => {"who":"ann","n":2}

expect keyed exact
@header.rowkind=+I c2 => c2,ann

expect upserts exact
@header.rowkind=-U ann => null
@header.rowkind=+U ann => ann,2

expect never_deleted exact
ann => ann,2

produce clicks
c2 => c2,bob

expect log any-order
@header.rowkind=-U null => {"who":"ann","n":2}
@header.rowkind=+U null => {"who":"ann","n":1}
@header.rowkind=+I null => {"who":"bob","n":1}

expect keyed exact
@header.rowkind=-U c2 => c2,ann
@header.rowkind=+U c2 => c2,bob

expect upserts per-key
@header.rowkind=-U ann => null
@header.rowkind=+U ann => ann,1
@header.rowkind=+I bob => bob,1

expect never_deleted per-key
ann => ann,1
bob => bob,1

produce clicks
c2 => null

expect log exact
@header.rowkind=-D null => {"who":"bob","n":1}

expect keyed exact
@header.rowkind=-D c2 => c2,bob

expect upserts exact
@header.rowkind=-D bob => null

expect never_deleted exact

table upserts
ann | 1

table never_deleted
ann | 1
bob | 1

sql
INSERT INTO rows_ SELECT who, COUNT(*) FROM clicks GROUP BY who;

error insert contains
Table 'rows_' doesn't support consuming update and delete changes, which are produced by GROUP BY who.
'sink.changelog' = 'append' means that it takes inserts only.
Hint: Set 'sink.changelog' to 'upsert', for a table with a PRIMARY KEY, or to 'retract'
"""


def test_what_becomes_of_a_row_that_is_taken_back(case_runner: CaseRunner) -> None:
    case_runner.play(parse_case(CASE, "changelog.case"), ReplayMode.AS_WRITTEN)
