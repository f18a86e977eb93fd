"""The examples of the five documents parse as they stand, and the one misprint is explained."""

from __future__ import annotations

import pytest

from headwater.errors import SqlError
from headwater.sql import types
from headwater.sql.parser import parse_script
from headwater.sql.statements import CreateTable, Insert

SOURCE_TABLE = """
-- Create an Upsert Kafka source table. 
CREATE TABLE pageviews_per_region (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '<yourTopicName>',
  'properties.bootstrap.servers' = '<yourServers>',
  'key.format' = 'avro',
  'value.format' = 'avro'
);

-- Create a Kafka result table. 
CREATE TABLE pageviews_per_region_db (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'kafka',
  'topic' = '<yourTopicName>',
  'properties.bootstrap.servers' = '<yourKafkaBrokers>',
  'format' = 'csv'
);

-- Write data from the Upsert Kafka source table to the Kafka result table. 
INSERT INTO pageviews_per_region_db
SELECT user_region, pv, uv FROM pageviews_per_region;
"""  # noqa: W291

RESULT_TABLE = """
--创建统计PV和UV的源表。
CREATE TABLE pageviews (
  user_id BIGINT,
  page_id BIGINT,
  viewtime TIMESTAMP,
  user_region STRING,
  WATERMARK FOR viewtime AS viewtime - INTERVAL '2' SECOND
) WITH (
  'connector' = 'kafka',
  'topic' = '<yourTopicName>',
  'properties.bootstrap.servers' = '...',
  'format' = 'json'
);


--创建Upsert Kafka结果表。
CREATE TABLE pageviews_per_region (
  user_region STRING,
  pv BIGINT,
  uv BIGINT,
  PRIMARY KEY (user_region) NOT ENFORCED
) WITH (
  'connector' = 'upsert-kafka',
  'topic' = '<yourTopicName>',
  'properties.bootstrap.servers' = '...',
  'key.format' = 'avro',
  'value.format' = 'avro'
);

--将统计的PV、UV数据写入结果表中。
INSERT INTO pageviews_per_regionSELECT
  user_region,
  COUNT(*),
  COUNT(DISTINCT user_id)
FROM pageviews
GROUP BY user_region;
"""

OLD_UPSERT = """
   create table upsertKafkaSink(
     car_id STRING,
     car_owner STRING,
     car_brand STRING,
     car_speed INT,
     primary key (car_id) not enforced
   )
   with (
     'connector.type' = 'upsert-kafka',
     'connector.version' = '0.11',
     'connector.topic' = 'test-topic',
     'connector.properties.bootstrap.servers' = 'xx.xx.xx.xx:9092',
     'format.type' = 'csv'
   );
"""

OLD_KAFKA = """
   create table kafkaSink(
     car_id STRING,
     car_owner STRING,
     car_brand STRING,
     car_speed INT)
   with (
     'connector.type' = 'kafka',
     'connector.version' = '0.10',
     'connector.topic' = 'test-topic',
     'connector.properties.bootstrap.servers' = 'xx.xx.xx.xx:9092',
     'connector.sink-partitioner' = 'round-robin',
     'format.type' = 'csv'
   );
"""

CONNECTOR = """
CREATE TABLE kafkaTable (
 user_id BIGINT,
 item_id BIGINT,
 category_id BIGINT,
 behavior STRING,
 ts TIMESTAMP(3)
) WITH (
 'connector' = 'kafka',
 'topic' = 'user_behavior',
 'properties.bootstrap.servers' = 'localhost:9092',
 'properties.group.id' = 'testGroup',
 'format' = 'csv',
 'scan.startup.mode' = 'earliest-offset'
)
"""


def test_the_source_table_document() -> None:
    source, result, insert = parse_script(SOURCE_TABLE)
    assert isinstance(source, CreateTable)
    assert isinstance(result, CreateTable)
    assert isinstance(insert, Insert)
    assert source.primary_key == result.primary_key == ("user_region",)
    assert [c.name for c in source.columns] == ["user_region", "pv", "uv"]
    assert result.options["format"] == "csv"
    assert insert.target == "pageviews_per_region_db"
    assert (insert.position.line, insert.position.column) == (30, 1)


def test_the_result_table_document_with_its_space() -> None:
    text = RESULT_TABLE.replace("regionSELECT", "region SELECT")
    pageviews, per_region, insert = parse_script(text)
    assert isinstance(pageviews, CreateTable)
    assert isinstance(per_region, CreateTable)
    assert isinstance(insert, Insert)
    assert pageviews.columns[2].type == types.timestamp(6)  # type: ignore[union-attr]
    assert pageviews.watermark is not None
    assert pageviews.watermark.column == "viewtime"
    assert [e.key for e in insert.query.expressions] == ["column", "count", "count"]


def test_the_result_table_document_as_printed_explains_the_missing_space() -> None:
    with pytest.raises(SqlError) as caught:
        parse_script(RESULT_TABLE)
    assert caught.value.hint == "Did you mean 'pageviews_per_region SELECT'? There is no space before SELECT."
    assert caught.value.position is not None
    assert (caught.value.position.line, caught.value.position.column) == (32, 13)


@pytest.mark.parametrize(
    ("text", "name", "columns", "options"),
    [(OLD_UPSERT, "upsertKafkaSink", 4, 5), (OLD_KAFKA, "kafkaSink", 4, 6), (CONNECTOR, "kafkaTable", 5, 6)],
)
def test_the_other_documents(text: str, name: str, columns: int, options: int) -> None:
    (created,) = parse_script(text)
    assert isinstance(created, CreateTable)
    assert (created.name, len(created.columns), len(created.options)) == (name, columns, options)


def test_options_of_the_older_spelling_in_double_quotes() -> None:
    (created,) = parse_script(OLD_KAFKA.replace("'", '"'))
    assert isinstance(created, CreateTable)
    assert created.options["connector.type"] == "kafka"
