"""What is measured: five jobs, each as the SQL that Headwater and Flink both run, word for word.

Every job reads one topic and writes a table `results`. That is an upsert topic of one string key and two numbers, which
is compared row by row, or a log, whose messages are compared byte for byte.
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
    """`goal` is what Flink's time divided by ours should at least be; `result` how the sink's topic is read back."""

    name: str
    title: str
    goal: float
    source: str
    sink: str
    insert: str
    result: Literal["json table", "avro table", "log"] = "json table"

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

_LOG_SINK = """WITH (
  'connector' = 'kafka',
  'topic' = '{topic}',
  'properties.bootstrap.servers' = '{servers}',
  'format' = 'json'
)"""

_PAYMENTS = (
    """CREATE TABLE payments (
  payment_id BIGINT,
  account STRING,
  amount BIGINT,
  paid_at TIMESTAMP(3)
) """
    + _LOG
)

_TOTALS = (
    _PAYMENTS,
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

_PAGEVIEWS_WHERE = (
    *_PAGEVIEWS[:2],
    (
        "INSERT INTO results SELECT user_region, COUNT(*), COUNT(DISTINCT user_id) FROM pageviews "
        "WHERE page_id < 900 AND user_region <> 'r0' GROUP BY user_region"
    ),
)

# What a row of `copy` becomes is also written in generate.py, which computes the expected messages.
_COPY = (
    _PAYMENTS,
    """CREATE TABLE results (
  payment_id BIGINT,
  account STRING,
  cents BIGINT,
  kind STRING,
  paid_at TIMESTAMP(3)
) """
    + _LOG_SINK,
    """INSERT INTO results
SELECT payment_id, UPPER(account), amount * 100 + 1, CASE WHEN amount >= 5000 THEN 'large' ELSE 'small' END, paid_at
FROM payments WHERE amount >= 1000 AND account <> 'a0'""",
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
        Workload("totals", "log → COUNT, SUM by 1,000 keys → upsert topic", 1.3, *_TOTALS),
        Workload("pageviews", "log → COUNT, COUNT(DISTINCT) by region (document 001)", 1.7, *_PAGEVIEWS, "avro table"),
        Workload("pageviews-where", "document 001 with a WHERE", 1.5, *_PAGEVIEWS_WHERE, "avro table"),
        Workload("regions", "upsert topic, 20 updates a key → COUNT, SUM by region", 2.4, *_REGIONS),
        Workload("copy", "log → WHERE and expressions → log", 1.0, *_COPY, "log"),
    )
}
