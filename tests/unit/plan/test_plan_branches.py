"""A table that is read once for both sides of a join gives each side the rows that it gets from a scan of its own."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from plan_tables import plan
from pyspark.sql import DataFrame, SparkSession

from headwater.changelog.conditions import Condition
from headwater.changelog.kinds import HASH
from headwater.connectors.runtime import RowOrder
from headwater.execution.lowering import Lowering, join
from headwater.execution.lowering.branches import branches_of
from headwater.execution.worker import INPUT, input_column
from headwater.plan import nodes as n

ROWS = [(i % 7 if i % 5 else None, "abc"[i % 3] if i % 4 else None, i % 11, [str(i)] * (i % 3)) for i in range(200)]
SCHEMA = "id INT, who STRING, n BIGINT, tags ARRAY<STRING>"
STEPS = ["n > 4", "who = 'a'", "id IS NULL", "NOT n < 3", "n * 2 > 7", "n <> 0"]
EASY = ["n + 1 AS x", "n AS x", "UPPER(who) || '`n`' AS x"]
PARTIAL = ["100 / n AS x", "CARDINALITY(tags) AS x"]  # the first fails where n is 0


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    from headwater.execution.spark import job_session
    from headwater.testing.spark import spark_of_tests

    return job_session(spark_of_tests(), 1, "")


class _Inputs:
    """Remembers what was asked for; readers leave nothing out."""

    def __init__(self) -> None:
        self.asked: list[tuple[n.Scan, Condition | None]] = []

    def scan(self, scan: n.Scan, where: Condition | None = None, order: RowOrder = "any") -> n.Scan:
        self.asked.append((scan, where))
        return scan


class _Lowering(Lowering):
    def scanned(self, scan: Any, plan: Any) -> DataFrame:
        return self.spark.createDataFrame(ROWS, SCHEMA).coalesce(1).select(*scan.names)


def lowering(spark: SparkSession, root: n.Write) -> _Lowering:
    return _Lowering(spark, root, _Inputs(), (1,), 2, "", None)  # type: ignore[arg-type]  # of all this, no test needs more


def joined(sql: str) -> tuple[n.Write, n.Join]:
    root = plan(f"INSERT INTO changes {sql}")
    (node,) = [node for node in n.walk(root) if isinstance(node, n.Join)]
    return root, node


def part(random: Random, name: str) -> str:
    """A query over the table, of one or two levels."""
    if random.random() < 0.5:
        inner = f"SELECT id, who, n, {random.choice(EASY)} FROM log_ WHERE {condition(random)}"
        return f"(SELECT id, who, n, x FROM ({inner}) AS i WHERE {condition(random)}) AS {name}"
    return f"(SELECT id, who, n, {random.choice(PARTIAL)} FROM log_ WHERE n <> 0 AND {condition(random)}) AS {name}"


def condition(random: Random) -> str:
    return " AND ".join(f"({step})" for step in random.sample(STEPS, random.choice([1, 1, 2])))


@pytest.mark.parametrize("seed", range(8))
def test_each_side_gets_the_rows_of_a_scan_of_its_own(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    kind = random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
    columns = "CAST(a.x AS STRING), CAST(b.x AS BIGINT)"
    root, node = joined(f"SELECT {columns} FROM {part(random, 'a')} {kind} {part(random, 'b')} ON a.id = b.id")
    branches = branches_of(node.inputs)
    assert branches is not None
    keys = [node.left_keys, node.right_keys]
    not_null = keys if kind == "JOIN" else [(), ()]
    once = lowering(spark, root)
    rows = join._read_once(once, branches, keys, not_null)
    assert len(once.inputs.asked) == 1  # type: ignore[attr-defined]
    for number, side in enumerate(node.inputs):
        alone = join.prepared_side(lowering(spark, root), side, keys[number], not_null=not_null[number])
        mine = rows.where(f"{INPUT} = {number}").selectExpr(f"{input_column(number)}.*", HASH)
        assert mine.schema.simpleString() == alone.schema.simpleString()
        assert Counter(map(str, mine.collect())) == Counter(map(str, alone.collect()))
    assert rows.where(f"{INPUT} IS NULL OR {HASH} IS NULL").count() == 0


def test_what_fails_for_rows_that_a_filter_drops_is_not_computed_for_them(spark: SparkSession) -> None:
    root, node = joined(
        "SELECT a.who, b.n FROM (SELECT id, who, 100 / n AS x FROM log_ WHERE n <> 0) AS a "
        "JOIN (SELECT id, n FROM log_ WHERE n = 0) AS b ON a.id = b.id AND a.x > b.n"
    )
    branches = branches_of(node.inputs)
    assert branches is not None
    rows = join._read_once(lowering(spark, root), branches, [node.left_keys, node.right_keys], [(), ()])
    kept = Counter(row[0] for row in rows.select(INPUT).collect())
    assert kept == {0: sum(r[2] != 0 for r in ROWS), 1: sum(r[2] == 0 for r in ROWS)}


def test_readers_are_asked_for_what_either_side_wants(spark: SparkSession) -> None:
    root, node = joined("SELECT a.who, b.n FROM log_ a JOIN log_ b ON a.id = b.id WHERE a.n = 1 AND b.who = 'x'")
    one = lowering(spark, root)
    join._read_once(one, branches_of(node.inputs) or [], [node.left_keys, node.right_keys], [(), ()])
    ((scan, where),) = one.inputs.asked  # type: ignore[attr-defined]
    assert scan.names == ("id", "who", "n")
    assert where is not None
    assert where.columns == {"n", "who"}


def test_one_side_that_wants_all_rows_gets_them(spark: SparkSession) -> None:
    root, node = joined("SELECT a.who, b.n FROM log_ a JOIN log_ b ON a.id = b.id WHERE a.n = 1")
    one = lowering(spark, root)
    join._read_once(one, branches_of(node.inputs) or [], [node.left_keys, node.right_keys], [(), ()])
    assert one.inputs.asked[0][1] is None  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a.who, b.n FROM log_ a JOIN plain b ON a.who = b.who",
        "SELECT a.who, b.n FROM ups a JOIN ups b ON a.id = b.id",
        "SELECT a.who, b.n FROM log_ a JOIN log_ b ON a.id = b.id WHERE a.n > 5 * RAND()",
        "SELECT a.who, b.n FROM log_ a JOIN (SELECT who, COUNT(*) AS n FROM log_ GROUP BY who) b ON a.who = b.who",
        "SELECT a.who, b.n FROM log_ a JOIN log_ /*+ OPTIONS('topic' = 'another') */ b ON a.id = b.id",
    ],
)
def test_other_inputs_are_read_apart(sql: str) -> None:
    target = "changes" if "ups" in sql or "COUNT" in sql else "plain"
    root = plan(f"INSERT INTO {target} {sql}")
    (node,) = [node for node in n.walk(root) if isinstance(node, n.Join)]
    assert branches_of(node.inputs) is None
