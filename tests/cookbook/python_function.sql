-- A function of the user's: Fahrenheit.
CREATE FUNCTION to_fahr AS 'cookbook_functions.to_fahr' LANGUAGE PYTHON;
CREATE TABLE temperature_measurements (city STRING, temperature FLOAT, measurement_time TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'temperatures', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE shown (city STRING, temperature FLOAT, fahrenheit DOUBLE) WITH ('connector' = 'kafka', 'topic' = 'shown', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO shown SELECT city, temperature, to_fahr(temperature) FROM temperature_measurements;
