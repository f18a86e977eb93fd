-- Nexmark q1: prices in another currency
CREATE TABLE result (
  auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), `dateTime` TIMESTAMP(3), extra STRING
) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json');

INSERT INTO result
SELECT auction, bidder, 0.908 * price AS price, `dateTime`, extra FROM bid;
