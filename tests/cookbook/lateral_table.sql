-- Words of a text: a table function.
CREATE FUNCTION words AS 'cookbook_functions.words' LANGUAGE PYTHON;
CREATE TABLE texts (id BIGINT, content STRING) WITH ('connector' = 'kafka', 'topic' = 'texts', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE split (id BIGINT, word STRING, length INT) WITH ('connector' = 'kafka', 'topic' = 'split', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO split SELECT id, word, length FROM texts, LATERAL TABLE(words(content)) AS t(word, length);
INSERT INTO split SELECT id, word, length FROM texts LEFT JOIN LATERAL TABLE(words(content)) AS t(word, length) ON TRUE;
