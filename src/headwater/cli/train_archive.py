"""The small job that a class-data archive of Spark is made from: `install.class_archive` runs this in a process."""

from __future__ import annotations

import sys

import headwater
from headwater.cli.spark_output import launch_spark
from headwater.install.class_archive import QUIET
from headwater.spark_internals import ended_jvm

__all__ = ["train"]

_SECONDS = 300
_TRAINING = """
CREATE TABLE rows_ (who STRING, n INT, at TIMESTAMP(3)) WITH (
  'connector' = 'datagen', 'number-of-rows' = '200', 'fields.who.length' = '1');
CREATE TABLE groups_ (who STRING, c BIGINT, d BIGINT, s BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO groups_ SELECT who, COUNT(*), COUNT(DISTINCT n), SUM(CAST(n AS BIGINT)) FROM rows_ GROUP BY who;
"""

_QUERY = "SELECT who, COUNT(*) AS c, SUM(CAST(n AS BIGINT)) AS s FROM rows_ WHERE n > 0 GROUP BY who ORDER BY who"


def train(archive: str) -> None:
    """The JVM writes the archive when it ends."""
    options = " ".join([f"-XX:ArchiveClassesAtExit={archive}", *QUIET])
    conf = {"spark.driver.extraJavaOptions": options, "spark.ui.port": "0"}
    session = headwater.connect(master="local[2]", conf=conf)
    session.jvm = launch_spark(session.master, session.conf)
    session.sql(_TRAINING)
    session.wait()
    session.sql(_QUERY).rows()
    spark = session.spark
    spark.sql("SELECT to_json(from_json(j, 'a INT')), from_csv(j, 'a STRING') FROM VALUES ('{}') AS t(j)").collect()
    with ended_jvm(spark, _SECONDS):
        session.close()


if __name__ == "__main__":
    train(sys.argv[1])
