"""Every scalar function: `REGISTRY`, filled from one module per family. Nothing in here knows a parser or Spark itself.

registry, signatures, kinds   how a function is declared, and how a call finds it
type_rules, casts, cast_text  what types become when they meet; CAST
moments, time_units           time arithmetic, free of the session's time zone where the type is
strings … spark_more          the families
json                          the SQL/JSON functions, whose clauses are words
"""

from __future__ import annotations

from headwater.sql.functions.codings import CODINGS
from headwater.sql.functions.collections import COLLECTIONS
from headwater.sql.functions.conditionals import CONDITIONALS
from headwater.sql.functions.json_text import JSON_TEXTS
from headwater.sql.functions.numbers import NUMBERS
from headwater.sql.functions.patterns import PATTERNS
from headwater.sql.functions.registry import Registry
from headwater.sql.functions.spark_more import SPARK_MORE
from headwater.sql.functions.strings import STRINGS
from headwater.sql.functions.times import TIMES

__all__ = ["REGISTRY"]

REGISTRY = Registry()
REGISTRY.add("Texts", STRINGS)
REGISTRY.add("Patterns", PATTERNS)
REGISTRY.add("Encodings, hashes and URLs", CODINGS)
REGISTRY.add("Numbers", NUMBERS)
REGISTRY.add("Dates and times", TIMES)
REGISTRY.add("Conditions", CONDITIONALS)
REGISTRY.add("Arrays and maps", COLLECTIONS)
REGISTRY.add("JSON", JSON_TEXTS)
REGISTRY.add("More from Spark", SPARK_MORE)
