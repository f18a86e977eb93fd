"""Functions that users write in Python and call in SQL.

types      Python annotations, type strings and PyFlink's DataTypes → SQL types
declare    `udf`, `udtf`, `udaf`: a function with its types and properties; without Spark
pyflink    what PyFlink's decorators make, understood without PyFlink
load       'module.attribute' → a declared function
values     Arrow columns ↔ Python values, in the workers
run        what the workers call; `aggregates`: aggregate functions, `accumulators`: how theirs are stored

Nothing here knows a catalog or a plan.
"""

from __future__ import annotations

from headwater.python_functions.declare import PythonFunction, declared, udaf, udf, udtf
from headwater.python_functions.load import load_function

__all__ = ["PythonFunction", "declared", "load_function", "udaf", "udf", "udtf"]
