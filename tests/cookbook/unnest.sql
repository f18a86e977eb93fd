-- A row for every element of an array.
CREATE TABLE orders (id BIGINT, items ARRAY<ROW<name STRING, price DECIMAL(10, 2)>>) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE sold (id BIGINT, name STRING, price DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = 'sold', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO sold SELECT id, name, price FROM orders CROSS JOIN UNNEST(items) AS t (name, price);
