-- For every state its most populous city: a correlated subquery in FROM.
CREATE TABLE people (id INT, city STRING, state STRING, arrival_time TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'people', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TEMPORARY VIEW current_population AS
SELECT city, state, COUNT(*) AS population
FROM (
  SELECT city, state, ROW_NUMBER() OVER (PARTITION BY id ORDER BY arrival_time DESC) AS rownum FROM people
) WHERE rownum = 1 GROUP BY city, state;
CREATE TABLE biggest (state STRING, city STRING, population BIGINT) WITH ('connector' = 'print');
INSERT INTO biggest
SELECT state, city, population
FROM (SELECT DISTINCT state FROM current_population) States,
LATERAL (SELECT city, population FROM current_population WHERE state = States.state ORDER BY population DESC LIMIT 2);
