-- A topic of devices, one message per change, the newest one counts. Two results from it, in one go:
-- the devices that are online, and how many of them each site has. A device that goes offline, moves to
-- another site or is deleted disappears from where it was.
--
--   headwater topic create devices devices_online devices_per_site --compacted
--   headwater run examples/devices.sql --var kafka=127.0.0.1:9092 --checkpoint checkpoints

CREATE TABLE devices (
  device STRING,
  site STRING,
  status STRING,
  battery INT,
  PRIMARY KEY (device) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'devices',
  'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw',
  'value.format' = 'json'
);

CREATE TABLE devices_online WITH ('topic' = 'devices_online') LIKE devices;

CREATE TABLE devices_per_site (
  site STRING,
  devices BIGINT,
  lowest_battery INT,
  PRIMARY KEY (site) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'devices_per_site',
  'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw',
  'value.format' = 'json'
);

CREATE VIEW online AS SELECT * FROM devices WHERE status = 'online';

EXECUTE STATEMENT SET
BEGIN
  INSERT INTO devices_online SELECT * FROM online;
  INSERT INTO devices_per_site SELECT site, COUNT(*), MIN(battery) FROM online GROUP BY site;
END;
