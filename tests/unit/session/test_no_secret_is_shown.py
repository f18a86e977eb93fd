"""Whatever a session hands out can be printed: in a log, a notebook, a traceback."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, cast

import pytest

from headwater.errors import HeadwaterError
from headwater.execution.job import Job, JobSettings
from headwater.options.secrets import masked_sql
from headwater.session import Session
from headwater.session.definitions import Definitions
from headwater.sql.parser import parse_script

SECRET = "hush-hush"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required username="ann" password="{SECRET}";'
TABLES = f"""
SET 'python.password' = '{SECRET}';
SET python.token = {SECRET};
CREATE TABLE t (a INT, b AS a + 1) WITH ('connector' = 'kafka', 'topic' = 't', 'format' = 'avro-confluent',
  'properties.bootstrap.servers' = 'h:1', 'properties.sasl.jaas.config' = '{JAAS}',
  'properties.ssl.keystore.key' = '{SECRET}', 'avro-confluent.url' = 'http://ann:{SECRET}@h',
  'avro-confluent.basic-auth.user-info' = 'ann:{SECRET}', 'properties.ssl.key.password' = '${{pw}}');
CREATE TABLE old (a INT) WITH ('connector.type' = 'kafka', 'connector.topic' = 't', 'format.type' = 'json',
  'connector.properties.bootstrap.servers' = 'h:1', 'connector.properties.sasl.jaas.config' = '{JAAS}');
CREATE TABLE shown (a INT) WITH ('connector' = 'print');
CREATE VIEW v AS SELECT a FROM t /*+ OPTIONS('properties.ssl.key.password' = '{SECRET}') */;
SHOW CREATE TABLE t;
SHOW CREATE TABLE old;
SHOW CREATE VIEW v;
DESCRIBE t;
SHOW TABLES;
SET;
EXPLAIN INSERT INTO shown SELECT a FROM v;
"""
INSERTS = f"""
INSERT INTO shown SELECT a FROM t /*+ OPTIONS('properties.ssl.key.password' = '{SECRET}') */;
EXECUTE STATEMENT SET BEGIN INSERT INTO t /*+ OPTIONS('properties.sasl.password'='{SECRET}') */ SELECT a FROM old; END;
"""


def session() -> Session:
    return Session(
        f"s3://bucket/x?secret_access_key={SECRET}", conf={"spark.hadoop.x.secret": SECRET}, variables={"pw": SECRET}
    )


def reachable(value: object, seen: set[int]) -> Iterator[object]:
    """The value and all that can be reached from it through dataclasses and collections."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if is_dataclass(value) and not isinstance(value, type):
        yield value
        for field in fields(value):
            yield from reachable(getattr(value, field.name), seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from reachable(part, seen)
    elif isinstance(value, Mapping):
        yield from reachable(list(value.values()), seen)


def test_reprs_hide_secrets() -> None:
    used = session()
    results = used.sql(TABLES)
    statements = parse_script(TABLES + INSERTS, "jobs.sql", used.variables)
    definitions = Definitions(checkpoint=used.checkpoint)
    jobs = [job for statement in statements for job in definitions.apply(statement)]
    started = [Job(job.name, job.plan, cast(Any, None), used.checkpoint, JobSettings()) for job in jobs]
    relations = [used.catalog.get(name) for name in used.catalog.names()]
    found = list(
        reachable([used, results, statements, definitions, jobs, started, relations, used.check(INSERTS)], set())
    )
    leaks = {type(value).__name__ for value in found if SECRET in repr(value)}
    assert leaks == set()
    assert {"Session", "Result", "CreateTable", "Insert", "StatementSet", "Table", "View", "Scan", "Write"} <= {
        type(value).__name__ for value in found
    }


@pytest.mark.parametrize(
    "script",
    [
        "SET '${env:HEADWATER_TEST_KEY}' = '1'",
        "SET 'pipeline.name' = '${env:HEADWATER_TEST_KEY}/x'",
        "CREATE TABLE q (a STRING) WITH ('connector' = '${env:HEADWATER_TEST_KEY}')",
        "CREATE TABLE q (a STRING) WITH ('connector' = 'kafka', 'topik' = '${env:HEADWATER_TEST_KEY}')",
        "SELECT ${env:HEADWATER_TEST_KEY} FROM nowhere; SET '${env:HEADWATER_TEST_KEY}' = '1'",
        "SELECT '${env:HEADWATER_TEST_KEY}' + 1",
    ],
)
def test_errors_hide_values_from_outside(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever a script uses them; a traceback shows the causes of an error, too."""
    monkeypatch.setenv("HEADWATER_TEST_KEY", "hunter2_key")
    session = Session()
    for run in (session.check, session.sql):
        with pytest.raises(HeadwaterError) as caught:
            run(script)
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert "hunter2" not in shown


def test_results_hide_secrets() -> None:
    shown = [cell for result in session().sql(TABLES) for row in result.rows for cell in row]
    assert any("CREATE VIEW v" in cell for cell in shown)
    assert not any(SECRET in cell for cell in shown)


@pytest.mark.parametrize(
    ("sql", "masked"),
    [
        ("SET 'x.password' = 'a''b'", "SET 'x.password' = '******'"),
        ("SET x.password = ab;", "SET x.password = '******';"),
        ("WITH ('a' = 'b', \"my.token\"=\"x y\")", "WITH ('a' = 'b', \"my.token\"='******')"),
        ("'url' = 'http://a:b@h/'", "'url' = 'http://******@h/'"),
        ("WHERE password_hash = 'x'", "WHERE password_hash = '******'"),
        ("WHERE a = 'x'", "WHERE a = 'x'"),
    ],
)
def test_sql_is_shown_without_values_of_secret_options(sql: str, masked: str) -> None:
    assert masked_sql(sql) == masked
