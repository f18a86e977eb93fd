-- Nexmark q2: bids on some auctions
CREATE TABLE result (
  auction BIGINT, price BIGINT
) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json');

INSERT INTO result
SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0;
