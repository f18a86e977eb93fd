"""Jobs with several inputs, ranks and event time: joins, Top-N, windows, deduplication."""

from __future__ import annotations

from scripts import Script

__all__ = ["CHANGELOG"]

_LOG = """WITH (
  'connector' = 'kafka', 'topic' = '${%s}', 'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json'
);
"""

_UPSERT = """WITH (
  'connector' = 'upsert-kafka', 'topic' = '${%s}', 'properties.bootstrap.servers' = '${kafka}',
  'scan.bounded.mode' = 'latest-offset', 'key.format' = 'json', 'value.format' = 'json'
);
"""

_LOG_SINK = """WITH (
  'connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json'
);
"""

_UPSERT_SINK = """WITH (
  'connector' = 'upsert-kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'json', 'value.format' = 'json'
);
"""

_JOIN = (
    """CREATE TABLE customers (
  id BIGINT, name STRING, region STRING, discount BIGINT, PRIMARY KEY (id) NOT ENFORCED
) """
    + _UPSERT % "customers"
    + """CREATE TABLE orders (id BIGINT, customer BIGINT, amount BIGINT, PRIMARY KEY (id) NOT ENFORCED) """
    + _UPSERT % "orders"
    + """CREATE TABLE result (
  id BIGINT, amount BIGINT, name STRING, region STRING, discount BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) """
    + _UPSERT_SINK
    + """INSERT INTO result
SELECT o.id, o.amount, c.name, c.region, c.discount FROM orders AS o JOIN customers AS c ON o.customer = c.id;
"""
)

_LAST = "(SELECT * FROM {table} QUALIFY ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY seq DESC) = 1)"

_JOIN_ANSWER = f"""SELECT o.id, o.amount, 'customer ' || c.id, 'r' || c.region, c.discount
FROM {_LAST.format(table="orders", key="id")} AS o JOIN {_LAST.format(table="customers", key="id")} AS c
ON o.customer = c.id WHERE o.gone = 0"""

_TOP = (
    """CREATE TABLE players (
  team STRING, id BIGINT, score BIGINT, nick STRING, PRIMARY KEY (team, id) NOT ENFORCED
) """
    + _UPSERT % "players"
    + """CREATE TABLE result (
  team STRING, id BIGINT, score BIGINT, nick STRING,
  PRIMARY KEY (team, id) NOT ENFORCED
) """
    + _UPSERT_SINK
    + """INSERT INTO result
SELECT team, id, score, nick
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY team ORDER BY score DESC, id) AS place FROM players)
WHERE place <= 3;
"""
)

_TOP_ANSWER = f"""SELECT 't' || team, id, score, 'player ' || id FROM {_LAST.format(table="players", key="id")}
WHERE gone = 0 QUALIFY ROW_NUMBER() OVER (PARTITION BY team ORDER BY score DESC, id) <= 3"""

_TUMBLE = (
    """CREATE TABLE clicks (
  account STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) """
    + _LOG % "clicks"
    + """CREATE TABLE result (
  window_start TIMESTAMP(3), window_end TIMESTAMP(3), account STRING, clicks BIGINT, amount BIGINT
) """
    + _LOG_SINK
    + """INSERT INTO result
SELECT window_start, window_end, account, COUNT(*), SUM(amount)
FROM TABLE(TUMBLE(TABLE clicks, DESCRIPTOR(ts), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, account;
"""
)

_TUMBLE_ANSWER = """SELECT time_bucket(INTERVAL 1 MINUTE, ts) AS w, w + INTERVAL 1 MINUTE, 'a' || account, COUNT(*),
SUM(amount) FROM clicks GROUP BY w, account"""

_TEMPORAL = (
    """CREATE TABLE sales (
  id BIGINT, currency STRING, amount BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) """
    + _LOG % "sales"
    + """CREATE TABLE rates (
  currency STRING, rate BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts, PRIMARY KEY (currency) NOT ENFORCED
) """
    + _UPSERT % "rates"
    + """CREATE TABLE result (
  id BIGINT, currency STRING, amount BIGINT, rate BIGINT, ts TIMESTAMP(3)
) """
    + _LOG_SINK
    + """INSERT INTO result
SELECT s.id, s.currency, s.amount * r.rate, r.rate, s.ts
FROM sales AS s JOIN rates FOR SYSTEM_TIME AS OF s.ts AS r ON s.currency = r.currency;
"""
)

_TEMPORAL_ANSWER = """SELECT s.id, 'c' || s.currency, s.amount * r.rate, r.rate, s.ts
FROM sales AS s ASOF JOIN rates AS r ON s.currency = r.currency AND s.ts >= r.ts"""

_DEDUPLICATE = (
    """CREATE TABLE readings (
  id BIGINT, reading BIGINT, unit STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND
) """
    + _LOG % "readings"
    + """CREATE TABLE result (
  id BIGINT, reading BIGINT, unit STRING, ts TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) """
    + _UPSERT_SINK
    + """INSERT INTO result
SELECT id, reading, unit, ts
FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) AS place FROM readings)
WHERE place = 1;
"""
)

_DEDUPLICATE_ANSWER = """SELECT id, "value", 'unit ' || "value" % 7, ts FROM readings
QUALIFY ROW_NUMBER() OVER (PARTITION BY id ORDER BY ts) = 1"""

CHANGELOG = {
    script.name: script
    for script in (
        Script(
            "join",
            "two upsert topics, 20 % updated → JOIN → upsert topic",
            1.2,
            ("customers", "orders"),
            _JOIN,
            _JOIN_ANSWER,
        ),
        Script(
            "temporal-join",
            "log → JOIN … FOR SYSTEM_TIME AS OF, upsert topic of 1,000 keys",
            1.2,
            ("sales", "rates"),
            _TEMPORAL,
            _TEMPORAL_ANSWER,
        ),
        Script(
            "top-3",
            "upsert topic, 4 updates a key → Top-3 of 100 rows a group",
            1.5,
            ("players",),
            _TOP,
            _TOP_ANSWER,
        ),
        Script(
            "deduplicate",
            "log, every id twice → the earliest row of each",
            1.2,
            ("readings",),
            _DEDUPLICATE,
            _DEDUPLICATE_ANSWER,
        ),
        Script(
            "tumble",
            "log → COUNT, SUM by 10,000 keys and minute of event time",
            1.3,
            ("clicks",),
            _TUMBLE,
            _TUMBLE_ANSWER,
        ),
    )
}
