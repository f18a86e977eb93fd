"""What Spark's Python workers call: a function over whole columns, whatever it is written for. An error names the
function and the row it was given. Aggregate functions: `aggregates`."""

from __future__ import annotations

import asyncio
import inspect
import pickle
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from headwater.dates import FarTime, check_for_pandas
from headwater.errors import JobError
from headwater.python_functions.load import add_paths, load_function
from headwater.python_functions.values import arrow_type, python_values, to_arrow
from headwater.sql.types import SqlType

__all__ = ["FunctionContext", "FunctionSource", "MetricGroup", "Step", "TableStep", "ValueStep", "opened"]

_LONGEST = 200
_AT_ONCE = 100
_NO_VALUE = (TypeError, ValueError, ArithmeticError, AttributeError, pa.ArrowException)
"""What converting a value raises that is not of the type."""


class FunctionContext:
    """What `open` of a function is given: PyFlink's interface."""

    def get_job_parameter(self, key: str, default_value: str) -> str:
        del key
        return default_value

    def get_metric_group(self) -> MetricGroup:
        return MetricGroup()


class FunctionMetric:
    """A counter, meter or distribution: it counts, for the function itself. Nobody else sees it."""

    def __init__(self) -> None:
        self._count = 0

    def inc(self, n: int = 1) -> None:
        self._count += n

    def dec(self, n: int = 1) -> None:
        self._count -= n

    def mark_event(self, value: int = 1) -> None:
        self._count += value

    def update(self, value: int) -> None:
        del value

    def get_count(self) -> int:
        return self._count


class MetricGroup:
    """PyFlink's interface, so that a function with metrics runs. They are not published."""

    def add_group(self, name: str, extra: str | None = None) -> MetricGroup:
        del name, extra
        return self

    def counter(self, name: str) -> FunctionMetric:
        del name
        return FunctionMetric()

    def meter(self, name: str, time_span_in_seconds: int = 60) -> FunctionMetric:
        del name, time_span_in_seconds
        return FunctionMetric()

    def distribution(self, name: str) -> FunctionMetric:
        del name
        return FunctionMetric()

    def gauge(self, name: str, obj: Callable[[], int]) -> None:
        del name, obj


@dataclass(frozen=True)
class FunctionSource:
    """Where a worker finds the function: by the name of its module, else pickled. `directories` are where it, and what
    it imports, may be."""

    path: str = ""
    directories: tuple[str, ...] = ()
    pickled: bytes = field(default=b"", repr=False)

    def load(self) -> Any:
        add_paths(self.directories)
        return load_function(self.path).target if self.path else pickle.loads(self.pickled)


def opened(source: FunctionSource) -> Any:
    """Once in a worker and task."""
    target = source.load()
    start = getattr(target, "open", None)
    if callable(start):
        start(FunctionContext())
    return target


@dataclass
class Step:
    """`name` is that in SQL. Arguments and result have these types."""

    name: str
    source: FunctionSource
    arguments: tuple[SqlType, ...]
    result: SqlType
    style: str = "row"
    _target: Any = field(default=None, repr=False)

    @property
    def target(self) -> Any:
        if self._target is None:
            self._target = opened(self.source)
        return self._target

    @property
    def function(self) -> Callable[..., Any]:
        function: Callable[..., Any] = getattr(self.target, "eval", None) or self.target
        return function

    def __getstate__(self) -> dict[str, Any]:
        # What `open` has made (a connection, a model) stays in its process; each worker opens its own.
        return {**self.__dict__, "_target": None}

    def __call__(self, *columns: pa.Array) -> pa.Array:
        """A function without arguments is given a column that only says how many rows there are."""
        given = columns[: len(self.arguments)]
        return self._evaluated(given, len(columns[0]))

    def _evaluated(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        raise NotImplementedError

    def _each_row(self, columns: Sequence[pa.Array], rows: int) -> list[Any]:
        values = [python_values(c, kind, self._refuse) for c, kind in zip(columns, self.arguments, strict=True)]
        function = self.function
        given = list(zip(*values, strict=True)) if values else [()] * rows
        # One event loop per chunk of rows: Spark calls this from a plain thread, again and again.
        if inspect.iscoroutinefunction(function):
            return asyncio.run(self._each_row_at_once(function, given))
        results = []
        for row in given:
            try:
                results.append(self._complete(function(*row)))
            except Exception as error:
                raise self._failed(row, error) from error
        return results

    async def _each_row_at_once(self, function: Callable[..., Any], rows: list[tuple[Any, ...]]) -> list[Any]:
        """Of an `async def`, so many calls are under way at a time. Results are in the order of the rows."""
        slots = asyncio.Semaphore(_AT_ONCE)

        async def one(row: tuple[Any, ...]) -> Any:
            async with slots:
                try:
                    return self._complete(await function(*row))
                except Exception as error:
                    raise self._failed(row, error) from error

        return list(await asyncio.gather(*map(one, rows)))

    def _complete(self, result: Any) -> Any:
        return result

    def _refuse(self, value: FarTime) -> Any:
        raise JobError(
            f"Function '{self.name}' cannot be given {value}.",
            detail="Python's dates and timestamps are of the years 1 to 9999.",
            hint=f"{self.name}(CASE WHEN YEAR(x) BETWEEN 1 AND 9999 THEN x END) gives it NULL; CAST(x AS STRING) "
            "is text of any year.",
        )

    def _failed(self, row: Sequence[Any], error: Exception, where: str = "") -> JobError:
        """`where` is the method, where it is not the one that everybody expects."""
        shown = ", ".join(repr(value) for value in row)
        shown = shown if len(shown) <= _LONGEST else f"{shown[:_LONGEST]}…"
        inside = f" in {where}" if where else ""
        return JobError(f"Function '{self.name}' failed{inside} for ({shown}): {type(error).__name__}: {error}")

    def _converted(self, results: list[Any], kind: SqlType, columns: Sequence[pa.Array]) -> pa.Array:
        def row_of(index: int) -> list[Any]:
            return [
                python_values(c.slice(index, 1), k, self._refuse)[0]
                for c, k in zip(columns, self.arguments, strict=True)
            ]

        return self._results_of(results, kind, row_of)

    def _results_of(self, results: list[Any], kind: SqlType, row_of: Callable[[int], Sequence[Any]]) -> pa.Array:
        """The results as a column, or a JobError about the first that cannot be of the type. `row_of` is what a result
        was computed from."""
        try:
            return to_arrow(results, kind)
        except _NO_VALUE as error:
            # Converted once more, one by one, only after a failure: Arrow does not say which value it could not take.
            for index, result in enumerate(results):
                try:
                    to_arrow([result], kind)
                except _NO_VALUE as one:
                    wrong = TypeError(f"{_shown(result)} is not of type {self.result}: {one}")
                    raise self._failed(row_of(index), wrong) from error
            raise self._failed([], error) from error


class ValueStep(Step):
    """A scalar function."""

    def _evaluated(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        if self.style == "row":
            return self._converted(self._each_row(columns, rows), self.result, columns)
        result = self._vectorised(columns)
        # A vectorised function that filters or aggregates would shift all values behind it to other rows.
        if len(result) != rows:
            raise JobError(f"Function '{self.name}' returned {len(result)} values for {rows} rows.")
        return result

    def _vectorised(self, columns: Sequence[pa.Array]) -> pa.Array:
        """Types that Python and Arrow have both are handed over as they are."""
        given = columns
        if self.style == "pandas":
            for column in columns:
                check_for_pandas(column, self._refuse)
            given = [column.to_pandas() for column in columns]
        try:
            result = self.function(*given)
            kind = arrow_type(self.result)
            if self.style == "pandas":
                return pa.Array.from_pandas(result, type=kind)
            whole = result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result
            return whole.cast(kind)
        except Exception as error:
            raise self._failed([f"{len(columns[0]) if columns else 0} rows"], error) from error


class TableStep(Step):
    """A table function: a list of rows for every row."""

    def _evaluated(self, columns: Sequence[pa.Array], rows: int) -> pa.Array:
        kind = SqlType("ARRAY", element=self.result)
        return self._converted(self._each_row(columns, rows), kind, columns)

    def _complete(self, result: Any) -> list[Any]:
        """Generators, lists of rows, nothing, or one row."""
        if result is None:
            return []
        if isinstance(result, Iterable) and not isinstance(result, str | bytes | tuple | dict):
            return [row if isinstance(row, tuple | list | dict) or _is_row(row) else (row,) for row in result]
        return [result if isinstance(result, tuple | dict) or _is_row(result) else (result,)]


def _is_row(value: Any) -> bool:
    return hasattr(value, "_values") or hasattr(value, "__dataclass_fields__")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
