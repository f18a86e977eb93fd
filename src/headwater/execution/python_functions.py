"""The user's Python functions as functions of a Spark session, under the names that the plan's SQL calls them by.

They are Arrow UDFs: Spark hands whole columns to one Python worker per task and operator (`ArrowEvalPython`), and a
call may stand wherever an expression may. docs/decisions/0014-python-functions.md says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.pandas.functions import arrow_udf

from headwater.connectors.workers import prepare_worker
from headwater.plan import nodes as n
from headwater.plan.expressions import functions_of
from headwater.python_functions.called import PythonCall
from headwater.python_functions.run import AggregateStep, FunctionSource, TableStep, ValueStep
from headwater.sql.types import SqlType

__all__ = ["register_functions"]


def register_functions(spark: SparkSession, root: n.Node) -> None:
    """All that the plan calls."""
    called = {function for node in n.walk(root) for function in functions_of(node)}
    for call in sorted(called, key=lambda function: function.sql_name):
        assert isinstance(call, PythonCall), call
        _register(spark, call)


def _register(spark: SparkSession, call: PythonCall) -> None:
    function = call.function.function
    result = SqlType("ARRAY", element=function.result) if function.kind == "table" else function.result
    made: Any = arrow_udf(_in_worker(_step(call)), result.spark())  # type: ignore[call-overload]  # hints say the rest
    spark.udf.register(call.sql_name, made if function.deterministic else made.asNondeterministic())


def _step(call: PythonCall) -> Callable[..., pa.Array]:
    function = call.function.function
    about = (call.function.name, _source(call), call.arguments, function.result, function.style)
    if function.kind == "table":
        return TableStep(*about)
    return AggregateStep(*about, arity=call.arity) if function.kind == "aggregate" else ValueStep(*about)


def _source(call: PythonCall) -> FunctionSource:
    named = call.function
    if named.path:
        return FunctionSource(named.path, named.directories)
    return FunctionSource("", named.directories, cloudpickle.dumps(named.function.target))  # type: ignore[no-untyped-call]


def _in_worker(step: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    def evaluate(*columns: pa.Array) -> pa.Array:  # by these annotations Spark knows how to call it
        prepare_worker()
        return step(*columns)

    return evaluate
