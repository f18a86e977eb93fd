"""What is measured: three jobs, each as the SQL that Headwater and Flink both run, word for word.

Every job reads one topic and ends in a table `results` of one text key and two numbers, so that outcomes compare alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["WORKLOADS", "Place", "Workload"]


@dataclass(frozen=True)
class Place:
    """Where a job reads and writes."""

    servers: str
    source: str
    sink: str


@dataclass(frozen=True)
class Workload:
    """`goal` is what Flink's time divided by ours should at least be."""

    name: str
    title: str
    goal: float
    source: str
    sink: str
    insert: str
    sink_format: Literal["json", "avro"] = "json"

    def statements(self, place: Place, *, bounded: bool) -> list[str]:
        """The job as SQL statements; bounded means up to where the topic ends when the job starts."""
        bound = ",\n  'scan.bounded.mode' = 'latest-offset'" if bounded else ""
        source = self.source.format(servers=place.servers, topic=place.source, bound=bound)
        sink = self.sink.format(servers=place.servers, topic=place.sink)
        return [source, sink, self.insert]


_LOG = """WITH (
  'connector' = 'kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'{bound}
)"""

_UPSERT_SINK = """WITH (
  'connector' = 'upsert-kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json',
  'value.format' = 'json'
)"""

_TOTALS = (
    """CREATE TABLE payments (
  payment_id BIGINT,
  account STRING,
  amount BIGINT,
  paid_at TIMESTAMP(3)
) """
    + _LOG,
    """CREATE TABLE results (
  account STRING,
  payments BIGINT,
  amount BIGINT,
  PRIMARY KEY (account) NOT ENFORCED
) """
    + _UPSERT_SINK,
    "INSERT INTO results SELECT account, COUNT(*), SUM(amount) FROM payments GROUP BY account",
)

# Document 001's example. Flink takes a watermark only on a precision of 3, hence TIMESTAMP(3) in place of TIMESTAMP.
_PAGEVIEWS = (
    """CREATE TABLE pageviews (
  user_id BIGINT,
  page_id BIGINT,
  viewtime TIMESTAMP(3),
  user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) """
    + _LOG,
    """CREATE TABLE results (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) """
    + _UPSERT_SINK.replace("json", "avro"),
    "INSERT INTO results SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews GROUP BY user_region",
)

_REGIONS = (
    """CREATE TABLE accounts (
  id BIGINT,
  region STRING,
  balance BIGINT,
  changed_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json',
  'value.format' = 'json'{bound}
)""",
    """CREATE TABLE results (
  region STRING,
  accounts BIGINT,
  balance BIGINT,
  PRIMARY KEY (region) NOT ENFORCED
) """
    + _UPSERT_SINK,
    "INSERT INTO results SELECT region, COUNT(*), SUM(balance) FROM accounts GROUP BY region",
)

WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("totals", "log → COUNT, SUM by 1,000 keys → upsert topic", 1.2, *_TOTALS),
        Workload("pageviews", "log → COUNT, COUNT(DISTINCT) by region (document 001)", 1.5, *_PAGEVIEWS, "avro"),
        Workload("regions", "upsert topic, 20 updates a key → COUNT, SUM by region", 1.0, *_REGIONS),
    )
}
