-- Transactions at the rate of their time.
CREATE TABLE currency_rates (
  currency_code STRING, eur_rate DECIMAL(6, 4), rate_time TIMESTAMP(3), WATERMARK FOR rate_time AS rate_time,
  PRIMARY KEY (currency_code) NOT ENFORCED
) WITH ('connector' = 'upsert-kafka', 'topic' = 'rates', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE transactions (
  id STRING, currency_code STRING, total DECIMAL(10, 2), transaction_time TIMESTAMP(3),
  WATERMARK FOR transaction_time AS transaction_time - INTERVAL '30' SECOND
) WITH ('connector' = 'kafka', 'topic' = 'transactions', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE euros (id STRING, total_eur DECIMAL(18, 4), total DECIMAL(10, 2), currency_code STRING) WITH ('connector' = 'kafka', 'topic' = 'euros', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
INSERT INTO euros
SELECT t.id, t.total * c.eur_rate AS total_eur, t.total, c.currency_code
FROM transactions t
JOIN currency_rates FOR SYSTEM_TIME AS OF t.transaction_time AS c ON t.currency_code = c.currency_code;
