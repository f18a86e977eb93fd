-- Nexmark q13: bids with what a side table has about them; Nexmark's is a file, this a topic
CREATE TABLE side_input (key BIGINT, `value` STRING, PRIMARY KEY (key) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${side}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'json', 'value.format' = 'json'
);

CREATE TABLE result (
  auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), `value` STRING
) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json');

INSERT INTO result
SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
FROM (SELECT *, PROCTIME() AS p_time FROM bid) B
JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S ON MOD(B.auction, 10000) = S.key;
