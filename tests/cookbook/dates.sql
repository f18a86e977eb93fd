-- Functions for dates and times.
CREATE TABLE subscriptions (id STRING, start_date INT, end_date INT, payment_expiration TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'subscriptions', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE shown (id STRING, start_date TIMESTAMP(3), days_left INT, `quarter` BIGINT) WITH ('connector' = 'kafka', 'topic' = 'shown', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO shown
SELECT id, TO_TIMESTAMP(FROM_UNIXTIME(start_date)), TIMESTAMPDIFF(DAY, LOCALTIMESTAMP, payment_expiration),
  QUARTER(TO_DATE(FROM_UNIXTIME(end_date, 'yyyy-MM-dd')))
FROM subscriptions;
