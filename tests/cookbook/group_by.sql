-- How often a browser is seen.
CREATE TABLE server_logs (user_agent STRING, status_code STRING) WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE browsers (browser STRING, status_code STRING, cnt BIGINT, PRIMARY KEY (browser, status_code) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'browsers', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO browsers
SELECT browser, status_code, COUNT(*) AS cnt
FROM (
  SELECT COALESCE(REGEXP_EXTRACT(user_agent, '[^\/]+'), '-') AS browser, COALESCE(status_code, '-') AS status_code
  FROM server_logs
) GROUP BY browser, status_code;
