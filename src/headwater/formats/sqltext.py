"""Pieces of Spark SQL text."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["field", "name", "options_map", "text", "wrapped"]


def text(value: str) -> str:
    """A string literal. `$` is spelled out, or Spark would replace `${…}` before it parses the statement."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    for raw, shown in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\0", "\\0")):
        escaped = escaped.replace(raw, shown)
    return f"'{escaped}'"


def name(identifier: str) -> str:
    return "`" + identifier.replace("`", "``") + "`"


def field(struct: str, identifier: str) -> str:
    return f"{struct}.{name(identifier)}"


def options_map(options: Mapping[str, str]) -> str:
    return f"map({', '.join(f'{text(k)}, {text(v)}' for k, v in options.items())})"


def wrapped(expression: str) -> str:
    """In parentheses unless it is a plain name, so that `.field` and operators can follow it."""
    return expression if expression.replace("_", "").replace(".", "").replace("`", "").isalnum() else f"({expression})"
