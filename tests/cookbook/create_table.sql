-- A table over a topic, one made up, and one that prints.
CREATE TABLE orders (order_uid BIGINT, product_id BIGINT, price DECIMAL(32, 2), order_time TIMESTAMP(3))
WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE generated (order_uid BIGINT, product_id BIGINT, price DECIMAL(32, 2), order_time TIMESTAMP(3)) WITH (
  'connector' = 'datagen', 'rows-per-second' = '10', 'fields.price.min' = '1', 'fields.price.max' = '1000'
);
CREATE TABLE printed (order_uid BIGINT, price DECIMAL(32, 2)) WITH ('connector' = 'print');
INSERT INTO orders SELECT * FROM generated;
INSERT INTO printed SELECT order_uid, price FROM orders;
