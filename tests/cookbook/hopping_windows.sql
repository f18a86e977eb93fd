-- Bids of the last minute, every half.
CREATE TABLE bids (bid_id STRING, currency_code STRING, bid_price DOUBLE, transaction_time TIMESTAMP(3),
  WATERMARK FOR transaction_time AS transaction_time - INTERVAL '5' SECONDS) WITH ('connector' = 'kafka', 'topic' = 'bids', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE averages (window_start TIMESTAMP(3), window_end TIMESTAMP(3), currency_code STRING, avg_price DOUBLE)
WITH ('connector' = 'kafka', 'topic' = 'averages', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO averages
SELECT window_start, window_end, currency_code, ROUND(AVG(bid_price), 2)
FROM TABLE(HOP(TABLE bids, DESCRIPTOR(transaction_time), INTERVAL '30' SECONDS, INTERVAL '1' MINUTE))
GROUP BY window_start, window_end, currency_code;
