-- Each order once, as it came first.
CREATE TABLE orders (
  id INT, order_time AS CAST(CURRENT_TIMESTAMP AS TIMESTAMP(3)), proctime AS PROCTIME(),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE once (order_id INT, order_time TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = 'once', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO once
SELECT order_id, order_time
FROM (
  SELECT id AS order_id, order_time, ROW_NUMBER() OVER (PARTITION BY id ORDER BY proctime ASC) AS rownum
  FROM orders
)
WHERE rownum = 1;
