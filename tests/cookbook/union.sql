-- Visitors of three farms in one stream.
CREATE TABLE rickandmorty_visits (visitor STRING, location STRING, visit_time TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'a', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE spaceagency_visits (spacecraft STRING, location STRING, visit_time TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'b', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE hitchhiker_visits (visitor STRING, starship STRING, location STRING, visit_time TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'c', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE visits (visitor STRING, spacecraft STRING, location STRING, visit_time TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'visits', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO visits
SELECT visitor, '' AS spacecraft, location, visit_time FROM rickandmorty_visits
UNION ALL SELECT '' AS visitor, spacecraft, location, visit_time FROM spaceagency_visits
UNION ALL SELECT visitor, starship AS spacecraft, location, visit_time FROM hitchhiker_visits;
