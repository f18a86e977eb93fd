-- Shipments within three hours of their order.
CREATE TABLE orders (id INT, order_time TIMESTAMP(3), WATERMARK FOR order_time AS order_time) WITH ('connector' = 'kafka', 'topic' = 'orders', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE shipments (id INT, order_id INT, shipment_time TIMESTAMP(3), WATERMARK FOR shipment_time AS shipment_time)
WITH ('connector' = 'kafka', 'topic' = 'shipments', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE shipped (order_id INT, order_time TIMESTAMP(3), shipment_time TIMESTAMP(3), day_diff INT) WITH ('connector' = 'kafka', 'topic' = 'shipped', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO shipped
SELECT o.id, o.order_time, s.shipment_time, TIMESTAMPDIFF(DAY, o.order_time, s.shipment_time) AS day_diff
FROM orders o
JOIN shipments s ON o.id = s.order_id
WHERE o.order_time BETWEEN s.shipment_time - INTERVAL '3' DAY AND s.shipment_time;
