-- Nexmark q10: bids with the day and minute they belong to; Nexmark writes files, this a topic
CREATE TABLE result (
  auction BIGINT, bidder BIGINT, price BIGINT, `dateTime` TIMESTAMP(3), extra STRING, dt STRING, hm STRING
) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json');

INSERT INTO result
SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm') FROM bid;
