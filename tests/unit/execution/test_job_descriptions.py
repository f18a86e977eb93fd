"""Spark's UI shows which batch of which job a Spark job is: read back from the status store that the UI shows."""

from __future__ import annotations

import time
from pathlib import Path

from pyspark.sql import SparkSession

from headwater.options.session import SessionOptions
from headwater.session import Session
from headwater.testing.spark import spark_of_tests

SCRIPT = """
SET 'headwater.batch.max-rows' = '2';
CREATE TABLE numbers (n INT) WITH ('connector' = 'datagen', 'number-of-rows' = '4');
CREATE TABLE described (n INT) WITH ('connector' = 'blackhole');
INSERT INTO described SELECT n FROM numbers;
"""


def test_a_batch_is_a_job_with_a_name_and_a_number(tmp_path: Path) -> None:
    spark = spark_of_tests()
    session = Session(str(tmp_path / "state"), settings=SessionOptions())
    session.get_spark = lambda: spark
    session.sql(SCRIPT)
    (job,) = session.jobs
    job.wait()
    wanted = {"described: batch 1", "described: batch 2"}
    # Spark tells its status store of a job in a thread of its own.
    deadline = time.monotonic() + 30
    while not wanted <= (found := _descriptions(spark)):
        assert time.monotonic() < deadline, f"{sorted(wanted)} not in {sorted(found)}"
        time.sleep(0.05)


def _descriptions(spark: SparkSession) -> set[str]:
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    found = (jobs.apply(place).description() for place in range(jobs.size()))
    return {description.get() for description in found if description.isDefined()}
