-- A changelog of a database, aggregated and kept up to date.
CREATE TABLE accident_claims (
  claim_id INT, claim_total FLOAT, accident_state STRING, PRIMARY KEY (claim_id) NOT ENFORCED
) WITH (
  'connector' = 'kafka', 'topic' = 'pg_claims.claims.accident_claims', 'properties.bootstrap.servers' = '${kafka}',
  'properties.group.id' = 'accident_claims', 'format' = 'debezium-json', 'scan.startup.mode' = 'earliest-offset'
);
CREATE TABLE agg_insurance_costs (es_key STRING, insurance_costs DOUBLE, PRIMARY KEY (es_key) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'costs', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO agg_insurance_costs
SELECT COALESCE(accident_state, '-'), SUM(claim_total) FROM accident_claims GROUP BY COALESCE(accident_state, '-');
