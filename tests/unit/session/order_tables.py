"""Tables that the scripts of these tests read and write."""

from __future__ import annotations

__all__ = ["KAFKA", "ORDERS"]

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'k:9092', 'scan.startup.mode' = 'earliest-offset'"
ORDERS = f"""
CREATE TABLE orders (
  id BIGINT, who STRING, price DECIMAL(10, 2), quantity INT, at TIMESTAMP(3), proctime AS PROCTIME(),
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) WITH ({KAFKA}, 'topic' = 'orders', 'format' = 'json');
CREATE TABLE totals (who STRING, total DECIMAL(38, 2), PRIMARY KEY (who) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'totals', 'properties.bootstrap.servers' = 'k:9092',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE lines (line STRING) WITH ({KAFKA}, 'topic' = 'lines', 'format' = 'raw');
"""
