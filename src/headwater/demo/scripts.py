"""The two scripts, as they lie in the package, and the topics they name."""

from __future__ import annotations

from importlib.resources import files

__all__ = ["COPY", "COUNT", "INPUT", "OUTPUTS", "query_of", "script"]

INPUT = "pageviews"
COUNT = "pageviews_per_region"
COPY = "pageviews_per_region_db"
OUTPUTS = (COUNT, COPY)  # each is a script, the table it fills, and the variable and name of that table's topic


def script(name: str) -> str:
    return files("headwater.demo").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def query_of(name: str) -> str:
    """The INSERT of a script: its last statement."""
    text = script(name)
    return text[text.index("INSERT") :].strip()
