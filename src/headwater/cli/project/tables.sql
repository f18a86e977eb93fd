-- Tables are topics. ${…} are variables of headwater.toml.
CREATE TABLE orders (
  order_id STRING,
  customer STRING,
  amount DECIMAL(10, 2)
) WITH (
  'connector' = 'kafka',
  'topic' = '${orders}',
  'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

-- One row per customer: the newest message of a key counts, and a null value deletes it.
CREATE TABLE totals (
  customer STRING,
  orders BIGINT,
  spent DECIMAL(38, 2),
  PRIMARY KEY (customer) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '${totals}',
  'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw',
  'value.format' = 'json'
);
