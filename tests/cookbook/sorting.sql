-- ORDER BY the time of a stream.
CREATE TABLE server_logs (
  log_time TIMESTAMP(3), size INT, WATERMARK FOR log_time AS log_time - INTERVAL '30' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE sorted (log_time TIMESTAMP(3), size INT) WITH ('connector' = 'kafka', 'topic' = 'sorted', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO sorted SELECT log_time, size FROM server_logs ORDER BY log_time ASC;
