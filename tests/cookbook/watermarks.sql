-- The same by the time of the events, which may be late.
CREATE TABLE doctor_sightings (
  doctor STRING, sighting_time TIMESTAMP(3),
  WATERMARK FOR sighting_time AS sighting_time - INTERVAL '15' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'sightings', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE counted (doctor STRING, sighting_time TIMESTAMP(3), sightings BIGINT) WITH ('connector' = 'kafka', 'topic' = 'counted', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO counted
SELECT doctor, window_end, COUNT(*) FROM TABLE(
  TUMBLE(TABLE doctor_sightings, DESCRIPTOR(sighting_time), INTERVAL '1' MINUTE))
GROUP BY doctor, window_start, window_end;
