-- A view, and a statement set that uses it twice.
CREATE TABLE server_logs (
  client_ip STRING, user_agent STRING, log_time TIMESTAMP(3), request_line STRING, status_code STRING, size INT,
  WATERMARK FOR log_time AS log_time - INTERVAL '30' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'server-logs', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE VIEW successful_requests AS SELECT * FROM server_logs WHERE status_code SIMILAR TO '[2,3][0-9][0-9]';
CREATE TABLE realtime (browser STRING, size INT) WITH ('connector' = 'kafka', 'topic' = 'realtime', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE everything (client_ip STRING, day_of_log STRING) WITH ('connector' = 'kafka', 'topic' = 'everything', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO realtime SELECT REGEXP_EXTRACT(user_agent, '[^\/]+'), size FROM successful_requests;
  INSERT INTO everything SELECT client_ip, DATE_FORMAT(log_time, 'yyyy-MM-dd') FROM server_logs;
END;
