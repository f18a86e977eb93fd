-- Orders arrive as JSON; what each customer has spent is kept in a compacted topic.
--
--   headwater topic create orders
--   headwater topic create totals --compacted
--   headwater run examples/totals.sql --var kafka=127.0.0.1:9092 --checkpoint checkpoints

CREATE TABLE orders (
  order_id STRING,
  customer STRING,
  amount DECIMAL(10, 2),
  placed TIMESTAMP(3)
) WITH (
  'connector' = 'kafka',
  'topic' = 'orders',
  'properties.bootstrap.servers' = '${kafka}',
  'scan.startup.mode' = 'earliest-offset',
  'format' = 'json'
);

CREATE TABLE totals (
  customer STRING,
  orders BIGINT,
  spent DECIMAL(38, 2),
  PRIMARY KEY (customer) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = 'totals',
  'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'raw',
  'value.format' = 'json'
);

INSERT INTO totals
SELECT customer, COUNT(*), SUM(amount) FROM orders GROUP BY customer;
