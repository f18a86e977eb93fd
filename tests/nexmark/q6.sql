-- Nexmark q6: average of a seller's last ten closing prices; Flink does not run it either: OVER needs rows that are only inserted
CREATE TABLE result (
  seller BIGINT, avg_price BIGINT
) WITH ('connector' = 'kafka', 'topic' = '${sink}', 'properties.bootstrap.servers' = '${kafka}', 'format' = 'json');

INSERT INTO result
SELECT Q.seller, AVG(Q.final) OVER (PARTITION BY Q.seller ORDER BY Q.`dateTime` ROWS BETWEEN 10 PRECEDING AND CURRENT ROW)
FROM (
  SELECT MAX(B.price) AS final, A.seller, B.`dateTime`
  FROM auction AS A, bid AS B
  WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
  GROUP BY A.id, A.seller, B.`dateTime`
) AS Q;
