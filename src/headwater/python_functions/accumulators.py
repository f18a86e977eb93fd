"""Accumulators of aggregate functions in the form in which a group's state has them: a byte with the version of the
form, then a pickle. A value comes back as it was, which no column type could promise: tuples stay tuples, and whole
numbers whole."""

from __future__ import annotations

import io
import pickle
import sys
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType
from typing import Any

from headwater.errors import JobError
from headwater.sql.typed import ACCUMULATOR_FORM

__all__ = ["StoredAccumulator", "decoded", "encoded", "is_empty", "is_storable"]

_PROTOCOL = 5
_HINT = (
    "Accumulate plain values: numbers, strings, dates, lists, dicts, sets, or objects of a class that is in a module "
    "of yours and can be pickled."
)


@dataclass(frozen=True)
class StoredAccumulator:
    """An accumulator with the number of `rows` in it and the sum of their `digests`. Retractions in `waiting` came
    before their row."""

    accumulator: Any
    rows: int = 0
    digests: int = 0
    waiting: tuple[tuple[Any, ...], ...] = ()


def is_empty(rows: int, digests: int) -> bool:
    """Whether those rows have gone that had come. As many that are not the same have another sum of digests."""
    return not rows and not digests


def encoded(stored: StoredAccumulator, function: str) -> bytes:
    """Raises a JobError about the `function` if it accumulates what cannot be stored."""
    content = stored.accumulator, stored.rows, stored.digests, stored.waiting
    try:
        return bytes([ACCUMULATOR_FORM]) + _pickled(content)
    except Exception as error:
        raise JobError(
            f"The accumulator of function '{function}' cannot be stored.",
            detail=f"{type(error).__name__}: {error}",
            hint=_HINT,
        ) from error


def decoded(content: bytes, function: str) -> StoredAccumulator:
    if content[0] != ACCUMULATOR_FORM:
        raise JobError(
            f"The accumulator of function '{function}' was stored by another release of Headwater.",
            detail=f"It has version {content[0]}; this release knows {ACCUMULATOR_FORM}.",
        )
    try:
        return StoredAccumulator(*_Unpickler(io.BytesIO(content[1:])).load())
    except Exception as error:
        raise JobError(
            f"The stored accumulator of function '{function}' cannot be read.",
            detail=f"{type(error).__name__}: {error}",
            hint="A class that it holds must be where it was when the accumulator was stored, under the same name.",
        ) from error


def is_storable(target: Any) -> bool:
    """Whether an empty accumulator of this function can be stored in a worker, and read in another one."""
    try:
        _pickled(target.create_accumulator())
    except Exception:  # noqa: BLE001 - whatever a user's function raises: all values are kept then
        return False
    return True


# A pickle may call whatever it names. What is in a checkpoint therefore names classes of values, and no functions: not
# what opens files or starts processes.
_CLASSES = {
    "builtins": {"bytearray", "complex", "frozenset", "range", "set", "slice"},
    "collections": {"Counter", "OrderedDict", "defaultdict", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "random": {"Random"},
    "uuid": {"UUID"},
    "headwater.python_functions.values": {"Row"},
}
_BUILTIN_FACTORIES = {"bool", "bytes", "dict", "float", "int", "list", "str", "tuple"}
"""Classes that make an empty value: defaultdict(int)."""
_OF_NUMPY = {"_frombuffer", "_reconstruct", "dtype", "ndarray", "scalar"}
_MAKERS = {"numpy": _OF_NUMPY, "pyflink": {"_create_row"}}
"""Functions by which packages make their values again, and nothing else."""
_NOT_OF_USERS = {*sys.stdlib_module_names, "__main__", "headwater", "pyspark", "py4j"}


def _is_known(module: str, name: str) -> bool:
    """Whether accumulators may name it: values of Python and NumPy, and classes of modules that are not Python's own.
    Those of the script that is running are known to this process only."""
    if module in _CLASSES:
        return name in _CLASSES[module] or (module == "builtins" and name in _BUILTIN_FACTORIES)
    package = module.partition(".")[0]
    return name in _OF_NUMPY if package == "numpy" else package not in _NOT_OF_USERS


def _pickled(value: Any) -> bytes:
    content = io.BytesIO()
    _Pickler(content, _PROTOCOL).dump(value)
    return content.getvalue()


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | FunctionType | BuiltinFunctionType):
            _checked(value, str(value.__module__), value.__qualname__)
        return NotImplemented


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if not _is_known(module, name):  # before it is imported
            raise pickle.UnpicklingError(f"{module}.{name} may not be in an accumulator")
        return _checked(super().find_class(module, name), module, name)


def _checked(found: Any, module: str, name: str) -> Any:
    makes_values = isinstance(found, type) or name in _MAKERS.get(module.partition(".")[0], ())
    if not makes_values or not _is_known(module, name):
        raise pickle.PicklingError(f"{module}.{name} may not be in an accumulator")
    return found
