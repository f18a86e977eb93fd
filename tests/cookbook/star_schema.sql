-- Facts with several dimensions, as they are when the fact comes.
CREATE TABLE passengers (passenger_key STRING, first_name STRING, last_name STRING,
  PRIMARY KEY (passenger_key) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'passengers', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE stations (station_key STRING, city STRING, PRIMARY KEY (station_key) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'stations', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE train_activities (
  scheduled_departure_time TIMESTAMP(3), passenger_key STRING, origin_station_key STRING, proctime AS PROCTIME()
) WITH ('connector' = 'kafka', 'topic' = 'activities', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE joined (departure TIMESTAMP(3), passenger STRING, city STRING) WITH ('connector' = 'kafka', 'topic' = 'joined', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO joined
SELECT t.scheduled_departure_time, p.first_name || ' ' || p.last_name, s.city
FROM train_activities AS t
LEFT JOIN passengers FOR SYSTEM_TIME AS OF t.proctime AS p ON t.passenger_key = p.passenger_key
LEFT JOIN stations FOR SYSTEM_TIME AS OF t.proctime AS s ON t.origin_station_key = s.station_key;
