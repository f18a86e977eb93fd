-- Numbers that are on both sides.
CREATE TABLE NOC (agent_id STRING, codename STRING) WITH ('connector' = 'kafka', 'topic' = 'noc', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE RealNames (agent_id STRING, name STRING) WITH ('connector' = 'kafka', 'topic' = 'names', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE agents (name STRING, codename STRING) WITH ('connector' = 'kafka', 'topic' = 'agents', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO agents
SELECT name, codename FROM NOC INNER JOIN RealNames ON NOC.agent_id = RealNames.agent_id;
