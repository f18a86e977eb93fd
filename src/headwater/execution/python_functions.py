"""The user's Python functions as functions of a Spark session, under the names that the plan's SQL calls them by.

They are Arrow UDFs: Spark hands whole columns to one Python worker per task and operator (`ArrowEvalPython`), and a
call may stand wherever an expression may. docs/decisions/0014-python-functions.md says why.

Aggregate functions are called by the operator that keeps the state of their groups.
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
from headwater.python_functions.aggregates import AccumulatorStep, AggregateStep
from headwater.python_functions.called import PythonCall
from headwater.python_functions.run import FunctionSource, TableStep, ValueStep
from headwater.sql.typed import AggregateCall
from headwater.sql.types import SqlType

__all__ = ["accumulator_step", "aggregate_step", "register_functions"]


def register_functions(spark: SparkSession, root: n.Node) -> None:
    """All that the plan calls."""
    called = {function for node in n.walk(root) for function in functions_of(node)}
    for call in sorted(called, key=lambda function: function.sql_name):
        assert isinstance(call, PythonCall), call
        if call.function.kind != "aggregate":
            _register(spark, call)


def accumulator_step(call: AggregateCall, *, retracted: bool) -> AccumulatorStep:
    """An aggregate function whose accumulators are kept."""
    made = _aggregated(call)
    result = made.function.function.result
    return AccumulatorStep(made.function.name, _source(made), made.arguments, result, retracted=retracted)


def aggregate_step(call: AggregateCall) -> AggregateStep:
    """An aggregate function that is evaluated over lists of all values."""
    assert call.argument is not None
    made = _aggregated(call)
    function, lists = made.function.function, SqlType("ARRAY", element=call.argument.type)
    arity = len(made.arguments)
    return AggregateStep(made.function.name, _source(made), (lists,), function.result, function.style, arity=arity)


def _aggregated(call: AggregateCall) -> PythonCall:
    assert call.user is not None
    (made,) = call.user.call.functions
    assert isinstance(made, PythonCall), made
    return made


def _register(spark: SparkSession, call: PythonCall) -> None:
    function = call.function.function
    result = SqlType("ARRAY", element=function.result) if function.kind == "table" else function.result
    made: Any = arrow_udf(_in_worker(_step(call)), result.spark())  # type: ignore[call-overload]  # hints say the rest
    spark.udf.register(call.sql_name, made if function.deterministic else made.asNondeterministic())


def _step(call: PythonCall) -> Callable[..., pa.Array]:
    function = call.function.function
    about = (call.function.name, _source(call), call.arguments, function.result, function.style)
    return TableStep(*about) if function.kind == "table" else ValueStep(*about)


def _source(call: PythonCall) -> FunctionSource:
    named = call.function
    if named.path:
        return FunctionSource(named.path, named.directories)
    # Without an import path the function itself travels: it was defined in a notebook or in the main module, which
    # workers cannot import.
    return FunctionSource("", named.directories, cloudpickle.dumps(named.function.target))  # type: ignore[no-untyped-call]


def _in_worker(step: Callable[..., pa.Array]) -> Callable[..., pa.Array]:
    def evaluate(*columns: pa.Array) -> pa.Array:  # by these annotations Spark knows how to call it
        prepare_worker()
        return step(*columns)

    return evaluate
