"""`cached_property` for values that several threads ask: without the lock that `functools` has before Python 3.12.

That lock is one for all instances of a class, held while the value is computed. A property of a plan node asks its
inputs for theirs: two threads that begin at nodes of different classes (a job that starts, and the next statement that
is planned) would wait for each other for good. Without it a value may be computed twice, which is the same value.
"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING or sys.version_info >= (3, 12):
    from functools import cached_property
else:
    _MISSING = object()

    class cached_property(functools.cached_property):  # noqa: N801 - it takes the place of the library's
        def __get__(self, instance: Any, owner: Any = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__.get(self.attrname, _MISSING)
            if value is _MISSING:
                value = instance.__dict__[self.attrname] = self.func(instance)
            return value
