-- Server logs from one table to another, with a day.
CREATE TABLE server_logs (
  client_ip STRING, client_identity STRING, userid STRING, user_agent STRING, log_time TIMESTAMP(3),
  request_line STRING, status_code STRING, size INT
) WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE client_errors (
  log_time TIMESTAMP(3), request_line STRING, status_code STRING, size INT
) WITH ('connector' = 'kafka', 'topic' = 'client-errors', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO client_errors
SELECT log_time, request_line, status_code, size FROM server_logs WHERE status_code SIMILAR TO '4[0-9][0-9]';
