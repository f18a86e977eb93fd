-- Windows over windows.
CREATE TABLE measurements (
  request_time TIMESTAMP(3), client_ip STRING, size INT,
  WATERMARK FOR request_time AS request_time - INTERVAL '5' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'measurements', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE avg_request_size (window_start TIMESTAMP(3), window_end TIMESTAMP(3), avg_size DOUBLE) WITH ('connector' = 'kafka', 'topic' = 'avg', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE VIEW server_logs_window_10s AS
SELECT TUMBLE_START(request_time, INTERVAL '10' SECOND) AS window_start,
  TUMBLE_ROWTIME(request_time, INTERVAL '10' SECOND) AS window_end,
  SUM(size) AS total_size, COUNT(*) AS num_requests
FROM measurements
GROUP BY TUMBLE(request_time, INTERVAL '10' SECOND);
INSERT INTO avg_request_size
SELECT TUMBLE_START(window_end, INTERVAL '5' MINUTE), TUMBLE_END(window_end, INTERVAL '5' MINUTE),
  CAST(AVG(total_size) AS DOUBLE)
FROM server_logs_window_10s
GROUP BY TUMBLE(window_end, INTERVAL '5' MINUTE);
