-- How many addresses are seen per minute of processing time.
CREATE TABLE server_logs (
  client_ip STRING, request_line STRING, log_time AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counted (window_start TIMESTAMP(3), window_end TIMESTAMP(3), ip_addresses BIGINT) WITH ('connector' = 'kafka', 'topic' = 'counted', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO counted
SELECT window_start, window_end, COUNT(DISTINCT client_ip) AS ip_addresses
FROM TABLE(TUMBLE(TABLE server_logs, DESCRIPTOR(log_time), INTERVAL '1' MINUTE))
GROUP BY window_start, window_end;
