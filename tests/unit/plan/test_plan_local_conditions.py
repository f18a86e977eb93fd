"""A WHERE that readers evaluate keeps the rows that Spark keeps."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest
from plan_tables import plan
from pyspark.sql import SparkSession

from headwater.connectors.runtime import LocalAggregation
from headwater.execution.lowering.aggregate import local_aggregation
from headwater.plan import nodes as n

NUMBERS = [0, 1, -1, 7, 2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63)]
STRINGS = ["", "a", "A", "b", "ab", "a ", " a", "\uffff", "\U00010000", "é", "e\u0301", "it's", "100%", "a\\b"]
SIGNS = ["=", "<>", "<", "<=", ">", ">="]


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    from headwater.execution.spark import job_session
    from headwater.testing.spark import spark_of_tests

    return job_session(spark_of_tests(), 1, "")


def local(where: str) -> LocalAggregation | None:
    root = plan(f"INSERT INTO by_who SELECT who, COUNT(*) FROM log_ WHERE {where} GROUP BY who")
    (node,) = [node for node in n.walk(root) if isinstance(node, n.Aggregate)]
    found = local_aggregation(node)
    return found[1] if found is not None else None


def comparison(random: Random) -> str:
    column = random.choice(["id", "n", "who"])
    if random.random() < 0.2:
        return f"{column} IS {random.choice(['', 'NOT '])}NULL"
    sides = [column, quoted(random.choice(STRINGS)) if column == "who" else str(random.choice(NUMBERS))]
    random.shuffle(sides)
    return f"{sides[0]} {random.choice(SIGNS)} {sides[1]}"


def condition(random: Random, depth: int = 0) -> str:
    if depth == 3 or random.random() < 0.3:
        return comparison(random)
    if random.random() < 0.3:
        return f"NOT ({condition(random, depth + 1)})"
    word = random.choice([" AND ", " OR "])
    return word.join(f"({condition(random, depth + 1)})" for _ in range(random.choice([2, 3])))


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_random_conditions_keep_the_rows_that_spark_keeps(spark: SparkSession) -> None:
    random = Random(12)
    ids = [None, *(number for number in NUMBERS if -(2**31) <= number < 2**31)]
    rows = [(random.choice(ids), random.choice([None, *STRINGS]), random.choice([None, *NUMBERS])) for _ in range(200)]
    schema = pa.schema([("id", pa.int32()), ("who", pa.string()), ("n", pa.int64())])
    columns = dict(zip(schema.names, pa.table(list(zip(*rows, strict=True)), schema=schema).columns, strict=True))
    columns = {name: column.combine_chunks() for name, column in columns.items()}
    conditions = [found for found in (local(condition(random)) for _ in range(150)) if found is not None]
    assert len(conditions) == 150  # every one of them can be evaluated while reading
    frame = spark.createDataFrame(rows, "id INT, who STRING, n BIGINT").coalesce(1)
    expected = frame.selectExpr(*(f"{one.where_sql} AS c{place}" for place, one in enumerate(conditions))).collect()
    for place, one in enumerate(conditions):
        assert one.where is not None
        assert one.where.evaluate(columns, len(rows)).to_pylist() == [row[place] for row in expected], one.where_sql


def test_the_columns_of_a_condition_are_read_too() -> None:
    found = local("n < 5 AND id <> 3")

    assert found is not None
    assert found.columns == ("who", "id", "n")
    assert found.groups.columns == ("who",)


def test_conditions_one_above_the_other_are_all_kept() -> None:
    found = local("n < 5")
    nested = plan(
        "INSERT INTO by_who SELECT w, COUNT(*) FROM (SELECT who AS w, n FROM log_ WHERE who <> 'x') AS t "
        "WHERE n < 5 GROUP BY w"
    )
    (node,) = [node for node in n.walk(nested) if isinstance(node, n.Aggregate)]
    both = local_aggregation(node)

    assert found is not None
    assert both is not None
    assert both[1].where_sql == f"{found.where_sql} AND (`who` <> 'x')"
    assert both[1].columns == ("who", "n")


@pytest.mark.parametrize(
    "where",
    [
        "n + 1 < 5",  # may overflow, which is an error
        "n < id",
        "n < 5.0",
        "d < 5",
        "who < 5",  # a string that is no number is an error
        "who LIKE 'a%'",
        "UPPER(who) = 'A'",
        "n IS NOT DISTINCT FROM 5",
        "n IS DISTINCT FROM 5",
        "n = NULL",
        "n < 5 OR RAND() < 0.5",
        "CARDINALITY(tags) > 1",
    ],
)
def test_more_than_columns_and_literals_is_left_to_spark(where: str) -> None:
    assert local(where) is None


def test_a_condition_on_a_column_of_another_name_is_asked_of_the_column_itself() -> None:
    renamed = plan(
        "INSERT INTO by_who SELECT who, COUNT(*) FROM (SELECT who, id AS n FROM log_) AS t WHERE n < 5 GROUP BY who"
    )
    (node,) = [node for node in n.walk(renamed) if isinstance(node, n.Aggregate)]

    found = local_aggregation(node)
    assert found is not None
    assert found[1].where_sql == "(`id` < 5)"
