-- Windows in GROUP BY, as scripts before 1.13 write them.
CREATE TABLE doctor_sightings (
  doctor STRING, sighting_time TIMESTAMP(3),
  WATERMARK FOR sighting_time AS sighting_time - INTERVAL '15' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'sightings', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counted (doctor STRING, sighting_time TIMESTAMP(3), sightings BIGINT) WITH ('connector' = 'kafka', 'topic' = 'counted', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO counted
SELECT doctor, TUMBLE_ROWTIME(sighting_time, INTERVAL '1' MINUTE) AS sighting_time, COUNT(*) AS sightings
FROM doctor_sightings
GROUP BY TUMBLE(sighting_time, INTERVAL '1' MINUTE), doctor;
