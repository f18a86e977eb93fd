-- Nexmark q23: bids with their auction and its seller: a join of three
CREATE TABLE result (
  auction BIGINT, bidder BIGINT, price BIGINT, itemName STRING, category BIGINT, seller STRING, city STRING
) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json');

INSERT INTO result
SELECT B.auction, B.bidder, B.price, A.itemName, A.category, P.name, P.city
FROM bid AS B
JOIN auction AS A ON B.auction = A.id
JOIN person AS P ON A.seller = P.id
WHERE P.state = 'OR';
