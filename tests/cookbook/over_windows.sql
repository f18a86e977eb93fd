-- The average of the last two minutes, per city.
CREATE TABLE temperature_measurements (
  measurement_time TIMESTAMP(3), city STRING, temperature FLOAT,
  WATERMARK FOR measurement_time AS measurement_time - INTERVAL '15' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'temperatures', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE averages (measurement_time TIMESTAMP(3), city STRING, temperature FLOAT, avg_temperature_minute FLOAT)
WITH ('connector' = 'kafka', 'topic' = 'averages', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO averages
SELECT measurement_time, city, temperature,
  AVG(CAST(temperature AS FLOAT)) OVER last_minute AS avg_temperature_minute
FROM temperature_measurements
WINDOW last_minute AS (
  PARTITION BY city ORDER BY measurement_time RANGE BETWEEN INTERVAL '1' MINUTE PRECEDING AND CURRENT ROW
);
