-- The three suppliers who sell most in five minutes.
CREATE TABLE orders (
  bidtime TIMESTAMP(3), price DOUBLE, item STRING, supplier STRING,
  WATERMARK FOR bidtime AS bidtime - INTERVAL '5' SECONDS
) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE best (window_start TIMESTAMP(3), window_end TIMESTAMP(3), supplier STRING, price DOUBLE, rownum BIGINT)
WITH ('connector' = 'kafka', 'topic' = 'best', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO best
SELECT window_start, window_end, supplier, price, rownum
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY window_start, window_end ORDER BY price DESC) AS rownum
  FROM (
    SELECT window_start, window_end, supplier, SUM(price) AS price
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(bidtime), INTERVAL '5' MINUTES))
    GROUP BY window_start, window_end, supplier
  )
) WHERE rownum <= 3;
