-- WHERE.
CREATE TABLE server_logs (client_ip STRING, log_time TIMESTAMP_LTZ(3), request_line STRING, status_code STRING)
WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE unauthorized (log_time TIMESTAMP_LTZ(3), request_line STRING, status_code STRING) WITH ('connector' = 'print');
INSERT INTO unauthorized SELECT log_time, request_line, status_code FROM server_logs
WHERE status_code IN ('403', '401');
