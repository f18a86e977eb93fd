"""What Headwater uses of PySpark beyond its public interface is there, and is used in one place."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headwater
from headwater.spark_internals import activate, executed_plan, jvm, preload
from headwater.testing.spark import spark_of_tests

SOURCE = Path(headwater.__file__).parent
PRIVATE = re.compile(r"\._(?:jvm|jdf|jsc|jsparkSession|jrdd|gateway)\b|_find_spark_home|_PYSPARK_")


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return spark_of_tests()


def test_private_names_of_pyspark_are_in_one_module() -> None:
    own = re.compile(r"self\._jvm\b")  # a sink's or an admin client's attribute of that name
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if PRIVATE.search(own.sub("", path.read_text(encoding="utf-8")))
    }
    assert found == {"spark_internals.py"}


def test_the_jvm_of_spark_submit_is_one() -> None:
    """Of a program that spark-submit has started, without PySpark loaded."""
    ask = "from headwater.spark_internals import has_jvm; import sys; print(has_jvm(), 'pyspark' in sys.modules)"
    for variables, answer in (({}, "False False\n"), ({"PYSPARK_GATEWAY_PORT": "1"}, "True False\n")):
        environment = {**os.environ, **variables}
        said = subprocess.run([sys.executable, "-c", ask], env=environment, capture_output=True, text=True, check=True)
        assert said.stdout == answer


def test_classes_are_looked_up_once(spark: SparkSession) -> None:
    preload(spark, ["java.util.HashMap"])
    assert getattr(jvm(spark), "java.util.HashMap") is getattr(jvm(spark), "java.util.HashMap")


def test_the_active_session_is_the_one_that_plans(spark: SparkSession) -> None:
    other = spark.newSession()
    for session in (spark, other):
        activate(session)
        active = jvm(spark).org.apache.spark.sql.classic.SparkSession.getActiveSession().get()
        assert active.sessionUUID() == session._jsparkSession.sessionUUID()
    assert executed_plan(other.range(3)).executeCollect() is not None
