-- Nexmark q18: the last bid of a bidder on an auction
CREATE TABLE result (
  auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, `dateTime` TIMESTAMP(3), extra STRING,
  PRIMARY KEY (auction, bidder) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'json', 'value.format' = 'json'
);

INSERT INTO result
SELECT auction, bidder, price, channel, url, `dateTime`, extra
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number
  FROM bid
)
WHERE rank_number <= 1;
