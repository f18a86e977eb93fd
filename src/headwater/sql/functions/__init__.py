"""Every scalar function: `REGISTRY`, filled from one module per family. Nothing in here knows a parser or Spark itself.

registry, signatures, kinds         how a function is declared, and how a call finds it
type_rules, casts, cast_to_string   what types become when they meet; CAST
time_arithmetic, time_units         times, free of the session's time zone where the type is
strings … spark_more                the families
json, json_values                   the SQL/JSON functions, whose clauses are words; values as JSON
"""

from __future__ import annotations

from headwater.plugins import added
from headwater.sql.functions.collections import COLLECTIONS
from headwater.sql.functions.conditionals import CONDITIONALS
from headwater.sql.functions.encodings import CODINGS
from headwater.sql.functions.json_values import JSON_VALUES
from headwater.sql.functions.numbers import NUMBERS
from headwater.sql.functions.patterns import PATTERNS
from headwater.sql.functions.registry import FunctionRegistry
from headwater.sql.functions.spark_functions import SPARK_MORE
from headwater.sql.functions.strings import STRINGS
from headwater.sql.functions.times import TIMES

__all__ = ["FUNCTIONS_VERSION", "REGISTRY"]

FUNCTIONS_VERSION = 1
"""Part of what a checkpoint stands for. Count one up when a function gives another result for the same arguments: state
that was computed with the old result then is not continued."""

REGISTRY = FunctionRegistry()
REGISTRY.add("Strings", STRINGS)
REGISTRY.add("Patterns", PATTERNS)
REGISTRY.add("Encodings, hashes and URLs", CODINGS)
REGISTRY.add("Numbers", NUMBERS)
REGISTRY.add("Dates and times", TIMES)
REGISTRY.add("Conditions", CONDITIONALS)
REGISTRY.add("Arrays and maps", COLLECTIONS)
REGISTRY.add("JSON", JSON_VALUES)
REGISTRY.add("More from Spark", SPARK_MORE)
for family, functions in added("headwater.functions"):  # each a list of what `registry.fn` makes
    REGISTRY.add(family, functions)
