"""The answers to Nexmark's queries as DuckDB computes them from tables `person`, `auction` and `bid`.

q6 and q13 are not taken, and q12 depends on the clock.
"""

from __future__ import annotations

__all__ = ["ANSWERS"]

RANKS = (
    "price < 10000",
    "price >= 10000 AND price < 1000000",
    "price >= 1000000",
)
_COUNTS = ", ".join(
    [
        "COUNT(*)",
        *(f"COUNT(*) FILTER (WHERE {r})" for r in RANKS),
        "COUNT(DISTINCT bidder)",
        *(f"COUNT(DISTINCT bidder) FILTER (WHERE {r})" for r in RANKS),
        "COUNT(DISTINCT auction)",
        *(f"COUNT(DISTINCT auction) FILTER (WHERE {r})" for r in RANKS),
    ]
)
_HOPS = """
  SELECT auction, s AS start_time, COUNT(*) AS num FROM (
    SELECT auction, UNNEST(range(time_bucket(INTERVAL 2 SECOND, dateTime) - INTERVAL 8 SECOND,
      time_bucket(INTERVAL 2 SECOND, dateTime) + INTERVAL 1 SECOND, INTERVAL 2 SECOND)) AS s FROM bid
  ) GROUP BY ALL"""
_TEN = "time_bucket(INTERVAL 10 SECOND, {}dateTime)"
_CHANNEL = "nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '')"
_DAY = "strftime(dateTime, '%Y-%m-%d')"

ANSWERS = {
    "q0": "SELECT auction, bidder, price, dateTime, extra FROM bid",
    "q1": "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)), dateTime, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    "q3": "SELECT P.name, P.city, P.state, A.id FROM auction A JOIN person P ON A.seller = P.id "
    "WHERE A.category = 10 AND P.state IN ('OR', 'ID', 'CA')",
    "q4": "SELECT category, CAST(trunc(AVG(final)) AS BIGINT) FROM (SELECT MAX(B.price) AS final, A.category "
    "FROM auction A, bid B WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires "
    "GROUP BY A.id, A.category) GROUP BY category",
    "q5": f"WITH counts AS ({_HOPS}) SELECT auction, num FROM counts JOIN "
    "(SELECT MAX(num) AS most, start_time FROM counts GROUP BY start_time) AS m USING (start_time) WHERE num >= most",
    "q7": f"SELECT auction, bidder, price, B.dateTime, extra FROM bid B JOIN (SELECT MAX(price) AS most, "
    f"{_TEN.format('')} + INTERVAL 10 SECOND AS t FROM bid GROUP BY ALL) M ON price = most "
    "WHERE B.dateTime BETWEEN M.t - INTERVAL 10 SECOND AND M.t",
    "q8": f"SELECT DISTINCT P.id, P.name, {_TEN.format('P.')} FROM person P JOIN auction A ON P.id = A.seller "
    f"AND {_TEN.format('P.')} = {_TEN.format('A.')}",
    "q9": "SELECT * EXCLUDE (n) FROM (SELECT A.*, B.auction, B.bidder, B.price, B.dateTime AS t, B.extra AS e, "
    "ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.dateTime) AS n FROM auction A, bid B "
    "WHERE A.id = B.auction AND B.dateTime BETWEEN A.dateTime AND A.expires) WHERE n = 1",
    "q10": f"SELECT auction, bidder, price, dateTime, extra, {_DAY}, strftime(dateTime, '%H:%M') FROM bid",
    "q11": "WITH starts AS (SELECT *, CASE WHEN dateTime > LAG(dateTime) OVER w + INTERVAL 10 SECOND THEN 1 ELSE 0 "
    "END AS new FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)), numbered AS (SELECT *, SUM(new) OVER "
    "(PARTITION BY bidder ORDER BY dateTime) AS session FROM starts) SELECT bidder, COUNT(*), MIN(dateTime), "
    "MAX(dateTime) + INTERVAL 10 SECOND FROM numbered GROUP BY bidder, session",
    "q14": "SELECT auction, bidder, CAST(0.908 * price AS DECIMAL(23, 3)), CASE WHEN hour(dateTime) BETWEEN 8 AND 18 "
    "THEN 'dayTime' WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END, dateTime, "
    "extra, length(extra) - length(replace(extra, 'c', '')) FROM bid "
    "WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000",
    "q15": f"SELECT {_DAY}, {_COUNTS} FROM bid GROUP BY ALL",
    "q16": f"SELECT channel, {_DAY}, MAX(strftime(dateTime, '%H:%M')), {_COUNTS} FROM bid GROUP BY channel, {_DAY}",
    "q17": f"SELECT auction, {_DAY}, COUNT(*), {', '.join(f'COUNT(*) FILTER (WHERE {r})' for r in RANKS)}, MIN(price), "
    f"MAX(price), CAST(trunc(AVG(price)) AS BIGINT), SUM(price) FROM bid GROUP BY auction, {_DAY}",
    "q18": "SELECT auction, bidder, price, channel, url, dateTime, extra FROM (SELECT *, ROW_NUMBER() OVER "
    "(PARTITION BY bidder, auction ORDER BY dateTime DESC) AS n FROM bid) WHERE n = 1",
    "q19": "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC, bidder) AS n "
    "FROM bid) WHERE n <= 10",
    "q20": "SELECT auction, bidder, price, channel, url, B.dateTime, B.extra, itemName, description, initialBid, "
    "reserve, A.dateTime, expires, seller, category, A.extra FROM bid B JOIN auction A ON B.auction = A.id "
    "WHERE A.category = 10",
    "q21": f"SELECT auction, bidder, price, channel, CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' "
    f"WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3' ELSE {_CHANNEL} END FROM bid WHERE {_CHANNEL} IS NOT NULL "
    "OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')",
    "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), "
    "split_part(url, '/', 6) FROM bid",
    "q23": "SELECT B.auction, B.bidder, B.price, A.itemName, A.category, P.name, P.city FROM bid B "
    "JOIN auction A ON B.auction = A.id JOIN person P ON A.seller = P.id WHERE P.state = 'OR'",
}
