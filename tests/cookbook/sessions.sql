-- Sessions with a gap of ten seconds.
CREATE TABLE server_logs (
  client_ip STRING, userid STRING, log_time TIMESTAMP(3), status_code STRING,
  WATERMARK FOR log_time AS log_time - INTERVAL '5' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE sessions (userid STRING, session_start TIMESTAMP(3), session_end TIMESTAMP(3), request_cnt BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'sessions', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO sessions
SELECT userid, SESSION_START(log_time, INTERVAL '10' SECOND) AS session_beg,
  SESSION_END(log_time, INTERVAL '10' SECOND) AS session_end, COUNT(request_line) AS request_cnt
FROM (SELECT *, status_code AS request_line FROM server_logs)
WHERE status_code = '403'
GROUP BY userid, SESSION(log_time, INTERVAL '10' SECOND);
