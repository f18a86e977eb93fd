-- A pattern of rows: a subscription that ends and begins again.
CREATE TABLE subscriptions (
  user_id STRING, type STRING, proc_time AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'subscriptions', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE back (user_id STRING, started STRING) WITH ('connector' = 'kafka', 'topic' = 'back', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO back
SELECT * FROM subscriptions MATCH_RECOGNIZE (
  PARTITION BY user_id ORDER BY proc_time
  MEASURES LAST(PREMIUM.type) AS started
  AFTER MATCH SKIP PAST LAST ROW
  PATTERN (PREMIUM BASIC)
  DEFINE PREMIUM AS PREMIUM.type IN ('premium', 'platinum'), BASIC AS BASIC.type = 'basic'
);
