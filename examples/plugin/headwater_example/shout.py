"""`SHOUT(text)`: a function of SQL."""

from __future__ import annotations

from headwater.sql.functions.registry import fn

__all__ = ["FUNCTIONS"]

FUNCTIONS = (fn("SHOUT(STRING) -> STRING", "concat(upper({0}), '!')", "The text in capitals, with emphasis"),)
