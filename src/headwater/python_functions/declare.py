"""`udf`, `udtf` and `udaf`: a Python function with what SQL has to know about it.

@headwater.udf                                              types from annotations
def area(width: float, height: float) -> float: ...

@headwater.udf(result_type="DECIMAL(10, 2)", input_types=["DECIMAL(10, 2)", "STRING"])
def price(amount, country): ...

@headwater.udtf(result_type="ROW<word STRING, length INT>")
def words(text: str): ...                                   yields rows

@headwater.udaf(result_type="DOUBLE")
class WeightedAverage: ...                                  create_accumulator, accumulate, retract, merge, get_value
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from headwater.errors import ValidationError
from headwater.python_functions.accumulators import is_storable
from headwater.python_functions.pyflink import is_of_pyflink, kind_of
from headwater.python_functions.types import (
    ANYTHING,
    FunctionParameter,
    declared_type,
    parameter_of,
    type_of,
    unwrapped,
)
from headwater.sql.types import Field, SqlType

__all__ = ["STYLES", "PythonFunction", "declared", "udaf", "udf", "udtf"]

STYLES = ("row", "pandas", "arrow")
"""A function is called with the values of one row, with a pandas.Series per argument, or a pyarrow.Array."""

_ROWS = (list, Iterable, Iterator, typing.Generator, Sequence)


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """`target` is a function, or an object with `eval` or the methods of an aggregate. `parameters` are those of the
    call, the last of which `repeats`. `version` is part of a checkpoint: a new one says that results have changed."""

    kind: str  # scalar, table or aggregate
    target: Any
    result: SqlType
    parameters: tuple[FunctionParameter, ...] = ()
    least: int = 0
    repeats: bool = False
    style: str = "row"
    deterministic: bool = True
    version: str = ""

    @cached_property
    def can(self) -> frozenset[str]:
        """What an aggregate function can do: `accumulate`, if what it accumulates can be stored; `retract` and `merge`,
        if its user has written them."""
        if self.kind != "aggregate" or self.style != "row":
            return frozenset()
        owners = {name: _owner(type(self.target), name) for name in ("retract", "merge")}
        # PyFlink's base class has both, and raises in them.
        written = {name for name, owner in owners.items() if owner is not None and not is_of_pyflink(owner)}
        return frozenset(written | {"accumulate"} if is_storable(self.target) else written)

    def __call__(self, *arguments: Any) -> Any:
        """As it is in Python, for tests of it."""
        return _callable(self.target)(*arguments)


def udf(
    function: Any = None,
    *,
    result_type: Any = None,
    input_types: Any = None,
    deterministic: bool | None = None,
    func_type: str = "general",
    version: str = "",
) -> Any:
    """A scalar function: one value per row. `func_type` is 'general', 'pandas' or 'arrow'."""
    options = _Options(result_type, input_types, deterministic, func_type, version)
    return _decorator("scalar", function, options)


def udtf(
    function: Any = None,
    *,
    result_type: Any = None,
    input_types: Any = None,
    deterministic: bool | None = None,
    version: str = "",
) -> Any:
    """A table function: any number of rows per row, each of them a tuple, or one value for one column."""
    return _decorator("table", function, _Options(result_type, input_types, deterministic, "general", version))


def udaf(
    function: Any = None,
    *,
    result_type: Any = None,
    input_types: Any = None,
    deterministic: bool | None = None,
    func_type: str = "general",
    version: str = "",
) -> Any:
    """An aggregate function: a class, or an instance of one, with `create_accumulator`, `accumulate` and `get_value`;
    or with `func_type="pandas"` a function of a pandas.Series per argument."""
    return _decorator("aggregate", function, _Options(result_type, input_types, deterministic, func_type, version))


@dataclass(frozen=True)
class _Options:
    result_type: Any = None
    input_types: Any = None
    deterministic: bool | None = None
    func_type: str = "general"
    version: str = ""


def _decorator(kind: str, function: Any, options: _Options) -> Any:
    if function is None:
        return lambda found: _make(kind, found, options)
    return _make(kind, function, options)


def declared(candidate: Any) -> PythonFunction:
    """What was declared with a decorator of ours or of PyFlink, or a plain function whose annotations say it all."""
    if isinstance(candidate, PythonFunction):
        return candidate
    kind = kind_of(candidate)
    if kind:
        return _from_pyflink(kind, candidate)
    if inspect.isclass(candidate) or not callable(_callable(candidate, None)):
        raise ValidationError(
            f"{candidate!r} is not a function.",
            hint="Register a Python function, or the result of @headwater.udf, @headwater.udtf or @headwater.udaf.",
        )
    return _make("scalar", candidate, _Options())


def _from_pyflink(kind: str, wrapper: Any) -> PythonFunction:
    result = wrapper._result_types if kind == "table" else wrapper._result_type
    style = str(getattr(wrapper, "_func_type", "general"))
    options = _Options(result, wrapper._input_types or None, wrapper._deterministic, style)
    return _make(kind, wrapper._func, options)


def _make(kind: str, target: Any, options: _Options) -> PythonFunction:
    target = target() if inspect.isclass(target) else target
    accumulates = kind == "aggregate" and (options.func_type == "general" or hasattr(target, "accumulate"))
    if accumulates:
        _check_aggregate(target)
    called = target.accumulate if accumulates else _callable(target, None)
    if not callable(called):
        raise ValidationError(f"{_name(target)} cannot be called: it needs a method eval.")
    hints = _hints(called)
    result = _result(kind, target, hints, options)
    parameters, least, repeats = _parameters(called, hints, options.input_types, 1 if accumulates else 0)
    function = PythonFunction(kind, target, result, parameters, least, repeats, _style(options.func_type))
    return replace(function, deterministic=_deterministic(target, options), version=options.version)


def _callable(target: Any, otherwise: Any = ...) -> Any:
    """The function itself, or the `eval` of an object."""
    evaluate = getattr(target, "eval", None)
    if callable(evaluate):
        return evaluate
    return target if callable(target) or otherwise is ... else otherwise


def _owner(kind: type, name: str) -> type | None:
    """The class that defines an attribute."""
    return next((base for base in kind.__mro__ if name in vars(base)), None)


def _check_aggregate(target: Any) -> None:
    missing = [name for name in ("create_accumulator", "accumulate", "get_value") if not hasattr(target, name)]
    if missing:
        raise ValidationError(
            f"The aggregate function {_name(target)} has no {' and no '.join(missing)}.",
            hint="It needs create_accumulator(), accumulate(accumulator, …) and get_value(accumulator).",
        )


def _hints(called: Callable[..., Any]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(called)
    except (NameError, TypeError):  # a name that exists for type checkers only; builtins have none
        return {}


def _deterministic(target: Any, options: _Options) -> bool:
    if options.deterministic is not None:
        return options.deterministic
    asked = getattr(target, "is_deterministic", None)
    return bool(asked()) if callable(asked) else True


def _style(func_type: str) -> str:
    style = {"general": "row"}.get(func_type, func_type)
    if style not in STYLES:
        raise ValidationError(f"'{func_type}' is not a func_type.", hint="It is 'general', 'pandas' or 'arrow'.")
    return style


def _result(kind: str, target: Any, hints: dict[str, Any], options: _Options) -> SqlType:
    if options.result_type is not None:
        found = _declared_result(options.result_type)
    elif kind == "aggregate" and hasattr(target, "get_value"):
        found = _aggregate_result(target)
    elif "return" not in hints or options.func_type != "general":
        raise _no_result(target)
    else:
        found = type_of(_row_annotation(hints["return"]) if kind == "table" else hints["return"])
    if kind != "table" or found.name == "ROW":
        return found
    return SqlType("ROW", fields=(Field("f0", found),))


def _declared_result(result_type: Any) -> SqlType:
    """A list of types is that of a table function's columns, as PyFlink writes them."""
    if isinstance(result_type, list | tuple):
        kinds = [declared_type(kind) for kind in result_type]
        if len(kinds) == 1:
            return kinds[0]
        return SqlType("ROW", fields=tuple(Field(f"f{i}", kind) for i, kind in enumerate(kinds)))
    return declared_type(result_type)


def _aggregate_result(target: Any) -> SqlType:
    asked = getattr(target, "get_result_type", None)
    if callable(asked):
        return declared_type(asked())
    hints = _hints(target.get_value)
    if "return" not in hints:
        raise _no_result(target)
    return type_of(hints["return"])


def _row_annotation(annotation: Any) -> Any:
    """Iterator[Row] is of rows; anything else is the one row that is returned."""
    annotation = unwrapped(annotation)
    origin = typing.get_origin(annotation)
    collections = {typing.get_origin(kind) or kind for kind in (*_ROWS, typing.Generator[int, None, None])}
    return typing.get_args(annotation)[0] if origin in collections else annotation


def _no_result(target: Any) -> ValidationError:
    return ValidationError(
        f"What {_name(target)} returns has no type.",
        hint="Annotate it (-> int), or declare it: @headwater.udf(result_type='BIGINT').",
    )


def _parameters(
    called: Callable[..., Any], hints: dict[str, Any], input_types: Any, skipped: int
) -> tuple[tuple[FunctionParameter, ...], int, bool]:
    """What it takes, how many at least, and whether the last one repeats. The first `skipped` are no arguments of SQL:
    the accumulator."""
    if input_types is not None:
        kinds = input_types if isinstance(input_types, list | tuple) else [input_types]
        return tuple(FunctionParameter(declared_type(kind)) for kind in kinds), len(kinds), False
    try:
        found = list(inspect.signature(called).parameters.values())[skipped:]
    except ValueError:  # a builtin that does not tell
        return (ANYTHING,), 0, True
    places = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD, p.VAR_POSITIONAL)]
    parameters = tuple(parameter_of(hints.get(p.name, Any)) if _is_value(hints, p) else ANYTHING for p in places)
    required = [p for p in places if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return parameters, len(required), any(p.kind is p.VAR_POSITIONAL for p in places)


def _is_value(hints: dict[str, Any], parameter: inspect.Parameter) -> bool:
    """Vectorised functions are annotated with what holds many values: that says nothing of their type."""
    # By the module's name: neither pandas nor pyarrow need be installed, or loaded, to see it.
    module = getattr(hints.get(parameter.name), "__module__", "") or ""
    return not module.startswith(("pandas", "pyarrow", "numpy"))


def _name(target: Any) -> str:
    return f"'{getattr(target, '__name__', type(target).__name__)}'"
