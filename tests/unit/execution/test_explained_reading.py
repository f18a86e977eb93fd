"""What EXPLAIN says of readers that pre-aggregate is what a job does."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headwater.connectors.runtime import RuntimeContext
from headwater.execution.explain import pre_aggregated_scans
from headwater.execution.inputs import Inputs
from headwater.execution.lowering import Lowering
from headwater.execution.spark import job_session
from headwater.execution.worker import new_reports
from headwater.session import Session
from headwater.testing.spark import spark_of_tests

pytestmark = pytest.mark.spark

# Nothing connects to it: sources are opened, not read.
_KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = '127.0.0.1:1'"
_TIMED = "shop STRING, n BIGINT, ts {type}, WATERMARK FOR ts AS ts - INTERVAL '5' SECOND"
_TABLES = f"""
CREATE TABLE log_ (id INT, who STRING, n BIGINT, f DOUBLE, `at` TIMESTAMP(3) METADATA FROM 'timestamp')
WITH ({_KAFKA}, 'topic' = 'log', 'format' = 'json');
CREATE TABLE raw_ (line STRING) WITH ({_KAFKA}, 'topic' = 'raw', 'format' = 'raw');
CREATE TABLE avro_ (who STRING, n BIGINT) WITH ({_KAFKA}, 'topic' = 'avro', 'format' = 'avro');
CREATE TABLE lenient (who STRING, n BIGINT)
WITH ({_KAFKA}, 'topic' = 'lenient', 'format' = 'json', 'scan.bad-records' = 'skip');
CREATE TABLE by_java (who STRING, n BIGINT)
WITH ({_KAFKA}, 'topic' = 'by_java', 'format' = 'json', 'properties.some.java.thing' = '1');
CREATE TABLE timed_by_java ({_TIMED.format(type="TIMESTAMP(3)")})
WITH ({_KAFKA}, 'topic' = 'by_java', 'format' = 'json', 'properties.some.java.thing' = '1');
CREATE TABLE cdc (who STRING, n BIGINT) WITH ({_KAFKA}, 'topic' = 'cdc', 'format' = 'debezium-json');
CREATE TABLE ups (who STRING, n BIGINT, PRIMARY KEY (who) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'properties.bootstrap.servers' = '127.0.0.1:1', 'topic' = 'ups',
      'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE timed ({_TIMED.format(type="TIMESTAMP(3)")}) WITH ({_KAFKA}, 'topic' = 'timed', 'format' = 'json');
CREATE TABLE local_ ({_TIMED.format(type="TIMESTAMP_LTZ(3)")}) WITH ({_KAFKA}, 'topic' = 'local', 'format' = 'json');
CREATE TABLE kept ({_TIMED.format(type="TIMESTAMP(3)")})
WITH ({_KAFKA}, 'topic' = 'kept', 'format' = 'json', 'scan.bad-records' = 'dead-letter',
      'scan.dead-letter.topic' = 'dead');
CREATE TABLE cdc_timed (id INT, name STRING, ts TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', WATERMARK FOR ts AS ts)
WITH ({_KAFKA}, 'topic' = 'cdc_timed', 'format' = 'debezium-json');
CREATE TABLE out_ (k STRING, n BIGINT) WITH ('connector' = 'print');
"""
_WINDOW = "SELECT shop, SUM(n) FROM TABLE({function}(TABLE {table}, DESCRIPTOR(ts), {sizes})) GROUP BY shop, window_start, window_end"  # noqa: E501  # a query
_TUMBLE = _WINDOW.format(function="TUMBLE", table="{table}", sizes="INTERVAL '1' MINUTE")
_HOP = _WINDOW.format(function="HOP", table="timed", sizes="INTERVAL '1' MINUTE, INTERVAL '5' MINUTE")
_CHANGES = _WINDOW.format(function="TUMBLE", table="cdc_timed", sizes="INTERVAL '1' MINUTE")
_CHANGES = _CHANGES.replace("SELECT shop, SUM(n)", "SELECT 'all', COUNT(*)").replace("BY shop, ", "BY ")
_SESSION = _WINDOW.format(function="SESSION", table="timed PARTITION BY shop", sizes="INTERVAL '1' MINUTE")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_of_tests()


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("SELECT who, COUNT(*) FROM log_ GROUP BY who", ["log_"]),
        ("SELECT who, COUNT(*) FROM log_ WHERE id > 3 GROUP BY who", ["log_"]),
        ("SELECT who, COUNT(*) FROM log_ WHERE id > n GROUP BY who", []),
        ("SELECT UPPER(who), COUNT(*) FROM log_ GROUP BY UPPER(who)", []),
        ("SELECT who, COUNT(DISTINCT f) FROM log_ GROUP BY who", []),
        ("SELECT CAST(`at` AS STRING), COUNT(*) FROM log_ GROUP BY `at`", []),
        ("SELECT who, n FROM log_", []),
        ("SELECT line, COUNT(*) FROM raw_ GROUP BY line", ["raw_"]),
        ("SELECT who, SUM(n) FROM avro_ GROUP BY who", ["avro_"]),
        ("SELECT who, SUM(n) FROM lenient GROUP BY who", ["lenient"]),
        ("SELECT who, SUM(n) FROM by_java GROUP BY who", ["by_java"]),
        (_TUMBLE.format(table="timed_by_java"), []),
        ("SELECT who, SUM(n) FROM cdc GROUP BY who", []),
        ("SELECT 'all', SUM(n) FROM ups", []),
        ("SELECT who, SUM(n) FROM log_ GROUP BY who UNION ALL SELECT who, n FROM lenient", ["log_"]),
        (_TUMBLE.format(table="timed"), ["timed"]),
        (_TUMBLE.format(table="local_"), ["local_"]),
        (_TUMBLE.format(table="kept"), []),
        (_HOP, ["timed"]),
        (_SESSION, []),
        (f"{_TUMBLE.format(table='timed')} UNION ALL {_HOP}", ["timed"]),
        (_CHANGES, []),
    ],
)
def test_explain_says_what_is_pre_aggregated(spark: SparkSession, sql: str, tables: list[str]) -> None:
    check(spark, sql, tables, "UTC")


def test_windows_across_a_change_of_clocks(spark: SparkSession) -> None:
    """Only the operator knows when such a window ends."""
    check(spark, _TUMBLE.format(table="local_"), [], "Europe/Berlin")
    check(spark, _TUMBLE.format(table="timed"), ["timed"], "Europe/Berlin")


def check(spark: SparkSession, sql: str, expected: list[str], zone: str) -> None:
    session = Session()
    session.sql(_TABLES)
    session.sql(f"SET 'table.local-time-zone' = '{zone}'")
    (plan,) = session.check(f"INSERT INTO out_ {sql}")
    job = job_session(spark, 2, zone)
    inputs = Inputs(plan, RuntimeContext(job, "explained", 2, []))
    try:
        lowering = Lowering(job, plan, inputs, (2,) * len(inputs.sources), 2, "", new_reports(spark.sparkContext))
        lowering.rows()
    finally:
        inputs.close()
    assert sorted(set(lowering.pre_aggregated)) == expected
    assert sorted({scan.table.name for scan in pre_aggregated_scans(plan, zone)}) == expected
    shown = session.explain(f"INSERT INTO out_ {sql}")
    assert sorted({line.split("Scan ")[1].split()[0] for line in _scans(shown) if "pre-aggregated" in line}) == expected


def _scans(shown: str) -> list[str]:
    return [line for line in shown.splitlines() if "Scan " in line]
