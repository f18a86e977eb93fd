"""Functions that PyFlink's own decorators have made, where PyFlink is installed; `make test-flink` runs them with that
of Flink's venv. Those of the same shape, which need no PyFlink, are in test_declare.py and test_functions_in_python.py.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle

from headwater.errors import ValidationError
from headwater.python_functions.aggregates import AccumulatorStep, AggregateStep
from headwater.python_functions.declare import PythonFunction, declared
from headwater.python_functions.run import FunctionSource, TableStep, ValueStep
from headwater.python_functions.values import arrow_type
from headwater.session import Session
from headwater.sql.parser import parse_type

sys.path += filter(None, [os.environ.get("HEADWATER_PYFLINK", "")])  # at the end: the other packages are ours
pytest.importorskip("pyflink.table.udf")

from pyflink.common import Row
from pyflink.table import DataTypes, ListView, MapView
from pyflink.table import udf as pyflink
from pyflink.table.udf import AggregateFunction, ScalarFunction, TableFunction, udaf, udf, udtf

PAIR = DataTypes.ROW([DataTypes.FIELD("a", DataTypes.INT()), DataTypes.FIELD("b", DataTypes.STRING())])


class Subtract(ScalarFunction):
    def open(self, function_context: Any) -> None:
        self.by = int(function_context.get_job_parameter("by", "1"))
        self.calls = function_context.get_metric_group().add_group("mine").counter("calls")

    def eval(self, value: int) -> int:
        self.calls.inc()
        return value - self.by


class Split(TableFunction):
    def eval(self, text: str) -> Iterator[str]:
        yield from text.split()


class WeightedAverage(AggregateFunction):
    def create_accumulator(self) -> Any:
        return Row(0, 0)

    def get_value(self, accumulator: Any) -> Any:
        return accumulator[0] / accumulator[1] if accumulator[1] else None

    def accumulate(self, accumulator: Any, value: int, weight: int) -> None:
        accumulator[0] += value * weight
        accumulator[1] += weight

    def retract(self, accumulator: Any, value: int, weight: int) -> None:
        accumulator[0] -= value * weight
        accumulator[1] -= weight

    def get_result_type(self) -> Any:
        return DataTypes.BIGINT()

    def get_accumulator_type(self) -> Any:
        return DataTypes.ROW([DataTypes.FIELD("s", DataTypes.BIGINT()), DataTypes.FIELD("n", DataTypes.BIGINT())])


class Views(AggregateFunction):
    """Its accumulator has PyFlink's views of state, which are plain collections here."""

    def create_accumulator(self) -> Any:
        return [ListView(), MapView()]

    def get_value(self, accumulator: Any) -> str:
        return ",".join(accumulator[0]) + str(len(list(accumulator[1].keys())))

    def accumulate(self, accumulator: Any, text: str) -> None:
        accumulator[0].add(text)
        accumulator[1].put(text, 1)

    def get_result_type(self) -> Any:
        return "STRING"

    def get_accumulator_type(self) -> Any:
        return "ROW<l ARRAY<STRING>, m MAP<STRING, BIGINT>>"


class MaxAdd(AggregateFunction):
    def create_accumulator(self) -> list[Any]:
        return []

    def get_value(self, accumulator: list[Any]) -> Any:
        return accumulator[0]

    def accumulate(self, accumulator: list[Any], *columns: Any) -> None:
        accumulator.append(sum(column.max() for column in columns))


def rows_of(text: str) -> Iterator[Any]:
    yield Row(text, 1)


OBJECTS: dict[str, tuple[Any, list[str], list[tuple[Any, ...]], list[Any]]] = {
    "function": (udf(lambda a, b: a + b, result_type=DataTypes.BIGINT()), ["INT", "BIGINT"], [(1, 2)], [3]),
    "declared types": (
        udf(lambda a: a, input_types=["DECIMAL(10, 2)"], result_type="DOUBLE"), ["DOUBLE"], [(1.5,)], [1.5],
    ),
    "object": (udf(Subtract(), result_type=DataTypes.BIGINT()), ["BIGINT"], [(5,), (1,)], [4, 0]),
    "pandas": (
        udf(lambda a, b: a * b, result_type=DataTypes.BIGINT(), func_type="pandas"), ["BIGINT", "BIGINT"],
        [(2, 3), (4, 5)], [6, 20],
    ),
    "row by place": (udf(lambda a: Row(a, "x"), result_type=PAIR), ["INT"], [(1,)], [{"a": 1, "b": "x"}]),
    "row by name": (udf(lambda a: Row(b="x", a=a), result_type=PAIR), ["INT"], [(1,)], [{"a": 1, "b": "x"}]),
    "array": (
        udf(lambda a: a.split(), result_type=DataTypes.ARRAY(DataTypes.STRING())), ["STRING"], [("a b",)], [["a", "b"]],
    ),
    "table": (udtf(Split(), result_types=[DataTypes.STRING()]), ["STRING"], [("a b",)], [[{"f0": "a"}, {"f0": "b"}]]),
    "table of rows": (udtf(rows_of, result_types=["STRING", "INT"]), ["STRING"], [("a",)], [[{"f0": "a", "f1": 1}]]),
    "aggregate": (udaf(WeightedAverage()), ["BIGINT", "BIGINT"], [(2, 3), (8, 1)], [3]),
    "aggregate with a fraction": (udaf(WeightedAverage()), ["BIGINT", "BIGINT"], [(2, 3), (4, 1)], [2]),
    "aggregate with views": (udaf(Views()), ["STRING"], [("a",), ("b",), ("a",)], ["a,b,a2"]),
    "pandas aggregate": (
        udaf(lambda v: v.mean(), result_type=DataTypes.FLOAT(), func_type="pandas"), ["DOUBLE"], [(1.0,), (2.0,)],
        [1.5],
    ),
    "pandas aggregate object": (
        udaf(MaxAdd(), result_type=DataTypes.BIGINT(), func_type="pandas"), ["BIGINT", "BIGINT"], [(1, 2), (5, 1)], [7],
    ),
}  # fmt: skip


def evaluated(function: PythonFunction, types: list[str], rows: list[tuple[Any, ...]]) -> list[Any]:
    """What a worker makes of it: it is sent there, and is given columns."""
    source = FunctionSource(pickled=cloudpickle.dumps(function.target))  # type: ignore[no-untyped-call]
    kinds = tuple(map(parse_type, types))
    if function.kind == "aggregate":
        kind = parse_type(f"ARRAY<ROW<{', '.join(f'f{i} {name}' for i, name in enumerate(types))}>>")
        step: Callable[..., pa.Array] = AggregateStep(
            "f", source, (kind,), function.result, function.style, arity=len(types)
        )
        columns = [pa.array([[dict(zip(("f0", "f1"), row, strict=False)) for row in rows]], arrow_type(kind))]
    else:
        step = (TableStep if function.kind == "table" else ValueStep)(
            "f", source, kinds, function.result, function.style
        )
        columns = [pa.array([row[i] for row in rows], arrow_type(kind)) for i, kind in enumerate(kinds)]
    found: list[Any] = pickle.loads(pickle.dumps(step))(*columns).to_pylist()
    return found


@pytest.mark.parametrize(("made", "types", "rows", "expected"), OBJECTS.values(), ids=OBJECTS)
def test_what_pyflink_has_made_is_called(
    made: Any, types: list[str], rows: list[tuple[Any, ...]], expected: list[Any]
) -> None:
    assert evaluated(declared(made), types, rows) == expected


def test_accumulators_with_rows_and_views_of_pyflink_are_stored() -> None:
    """Two batches: the second one finds what the first has stored."""
    for made, kind, rows, expected in (
        (udaf(WeightedAverage()), ["BIGINT", "BIGINT"], [(2, 3), (8, 1)], [2, 3]),
        (udaf(Views()), ["STRING"], [("a",), ("b",)], ["a1", "a,b2"]),
    ):
        function = declared(made)
        assert "accumulate" in function.can
        source = FunctionSource(pickled=cloudpickle.dumps(function.target))  # type: ignore[no-untyped-call]
        types = tuple(map(parse_type, kind))
        stored, found = pa.nulls(1, pa.binary()), []
        for row in rows:
            step = AccumulatorStep("f", source, types, function.result)
            values = pa.array([row], pa.struct([(f"f{i}", arrow_type(t)) for i, t in enumerate(types)]))
            stored = step.accumulated(stored, values, np.zeros(1, np.int64), np.ones(1, np.int64))
            found += step.values(stored).to_pylist()
        assert found == expected


def test_pyflink_functions_retract() -> None:
    function = declared(udaf(WeightedAverage()))
    assert function.can == {"accumulate", "retract"}
    source = FunctionSource(pickled=cloudpickle.dumps(function.target))  # type: ignore[no-untyped-call]
    types = (parse_type("BIGINT"), parse_type("BIGINT"))
    step = AccumulatorStep("f", source, types, function.result, retracted=True)
    kind = pa.struct([("f0", pa.int64()), ("f1", pa.int64())])
    stored = pa.nulls(1, pa.binary())
    for values, weights in (([(2, 3), (8, 1)], [1, 1]), ([(2, 3)], [-1])):
        groups = np.zeros(len(values), np.int64)
        stored = step.accumulated(stored, pa.array(values, kind), groups, np.array(weights))
    assert step.values(stored).to_pylist() == [8]


subtract = udf(Subtract(), result_type=DataTypes.BIGINT())
pieces = udtf(Split(), result_types=[DataTypes.STRING()])
weighted = udaf(WeightedAverage())
SCRIPT = """
CREATE TABLE t (a STRING, n BIGINT) WITH ('connector' = 'datagen');
CREATE TABLE p (a STRING, n BIGINT) WITH ('connector' = 'print');
INSERT INTO p SELECT w, subtract(n) FROM t, LATERAL TABLE(pieces(a)) AS s (w);
INSERT INTO p SELECT a, weighted(n, n) FROM t GROUP BY a;
"""


def test_a_script_creates_and_calls_them() -> None:
    names = ("subtract", "pieces", "weighted")
    created = [f"CREATE FUNCTION {name} AS '{__name__}.{name}' LANGUAGE PYTHON;" for name in names]
    Session().check("".join(created) + SCRIPT)
    session = Session()
    for name in names:
        session.register(name, globals()[name])
    session.check(SCRIPT)
    note = Session().sql(created[2])[0].notes
    # merge is PyFlink's own, which only raises
    text = "A group keeps an accumulator for function 'weighted', and all values in sessions (it has no merge)."
    assert note == (text,)
    assert session.register("weighted", weighted) == (text,)


def test_an_async_function_is_awaited() -> None:
    if not hasattr(pyflink, "AsyncScalarFunction"):
        pytest.skip("PyFlink has async functions since 2.3")

    async def later(value: int) -> int:
        return value + 1

    assert evaluated(declared(udf(later, result_type="BIGINT")), ["BIGINT"], [(1,), (2,)]) == [2, 3]


def test_a_table_aggregate_function_is_refused() -> None:
    class Top2(pyflink.TableAggregateFunction):  # type: ignore[misc]
        def create_accumulator(self) -> list[Any]:
            return []

        def accumulate(self, accumulator: list[Any], value: int) -> None: ...

        def emit_value(self, accumulator: list[Any]) -> Iterator[int]:
            yield 1

    made = pyflink.udtaf(Top2(), result_type="ROW<a BIGINT>", accumulator_type="ARRAY<BIGINT>")
    with pytest.raises(ValidationError, match="Table aggregate functions"):
        declared(made)
