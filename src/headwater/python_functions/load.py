"""'module.attribute' → a declared function. Importing a module executes it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from headwater.errors import ValidationError
from headwater.python_functions.declare import PythonFunction, declared

__all__ = ["add_paths", "load_attribute", "load_function", "root_of"]


def load_function(path: str, directories: Sequence[str] = ()) -> PythonFunction:
    """The function behind 'module.attribute'; `directories` are searched behind those of Python itself."""
    found = load_attribute(path, directories)
    try:
        return declared(found)
    except ValidationError as error:
        raise ValidationError(f"'{path}': {error.fact}", detail=error.detail, hint=error.hint) from error


def load_attribute(path: str, directories: Sequence[str] = ()) -> Any:
    add_paths(directories)
    module, dot, attribute = path.rpartition(".")
    if not dot:
        raise ValidationError(
            f"'{path}' does not name a function.", hint="Write 'module.function' or 'package.module.function'."
        )
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _not_found(module, error, directories) from error
    except Exception as error:
        raise ValidationError(
            f"The module '{module}' cannot be imported.", detail=f"{type(error).__name__}: {error}"
        ) from error
    try:
        return getattr(imported, attribute)
    except AttributeError:
        raise ValidationError(f"The module '{module}' has no '{attribute}'.") from None


def _not_found(module: str, error: ModuleNotFoundError, directories: Sequence[str]) -> ValidationError:
    # Python reports a missing import of the module in the same way as a missing module.
    detail = "" if error.name == module else f"It imports '{error.name}', which is not there."
    searched = f" Searched besides Python's own path: {', '.join(directories)}." if directories else ""
    return ValidationError(
        f"There is no Python module '{module}'." if not detail else f"The module '{module}' cannot be imported.",
        detail=detail,
        hint=f"Put it beside the script, install it, or SET 'python.files' = '/path/to/it'.{searched}",
    )


def root_of(target: Any) -> tuple[str, ...]:
    """The directory from which the module of a function is imported; none for the main program's."""
    module = sys.modules.get(getattr(target, "__module__", None) or type(target).__module__)
    name, file = getattr(module, "__name__", "__main__"), getattr(module, "__file__", None)
    if name == "__main__" or file is None:
        return ()
    path = Path(file).resolve()
    up = name.count(".") + (1 if path.name == "__init__.py" else 0)
    return (str(path.parents[up]),)


def add_paths(directories: Sequence[str]) -> None:
    """Directories and archives as they are; of a file the directory it is in. Behind what is there: a module beside a
    script cannot take the place of an installed one."""
    for given in directories:
        path = Path(given)
        place = str(path.parent if path.suffix == ".py" else path)
        if place not in sys.path:
            sys.path.append(place)
