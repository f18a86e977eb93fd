-- Nexmark q4: average closing price per category
CREATE TABLE result (
  id BIGINT, final BIGINT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}',
  'key.format' = 'json', 'value.format' = 'json'
);

INSERT INTO result
SELECT Q.category, AVG(Q.final)
FROM (
  SELECT MAX(B.price) AS final, A.category
  FROM auction A, bid B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  GROUP BY A.id, A.category
) Q
GROUP BY Q.category;
