-- The same table, read back as a changelog and written as CSV.
CREATE TABLE pageviews_per_region (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${pageviews_per_region}',
  'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'avro',
  'value.format' = 'avro'
);

CREATE TABLE pageviews_per_region_db (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = '${pageviews_per_region_db}',
  'properties.bootstrap.servers' = '${kafka}',
  'format' = 'csv'
);

INSERT INTO pageviews_per_region_db
SELECT user_region, pv, uv FROM pageviews_per_region;
