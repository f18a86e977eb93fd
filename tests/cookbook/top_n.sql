-- The two wizards with most spells of each kind.
CREATE TABLE spells_cast (wizard STRING, spell STRING) WITH ('connector' = 'kafka', 'topic' = 'spells', 'properties.bootstrap.servers' = '${kafka}', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json');
CREATE TABLE best (spell STRING, times_cast BIGINT, wizard STRING, row_num BIGINT,
  PRIMARY KEY (spell, row_num) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'best', 'properties.bootstrap.servers' = '${kafka}', 'key.format' = 'json', 'value.format' = 'json');
INSERT INTO best
SELECT spell, times_cast, wizard, row_num
FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY spell ORDER BY times_cast DESC) AS row_num
  FROM (SELECT COALESCE(wizard, '-') AS wizard, COALESCE(spell, '-') AS spell, COUNT(*) AS times_cast
    FROM spells_cast GROUP BY COALESCE(wizard, '-'), COALESCE(spell, '-'))
)
WHERE row_num <= 2;
