"""Pieces of Spark SQL text."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["bare", "field", "name", "once", "options_map", "text", "text_of"]

_ONCE = "IF(spark_partition_id() < 0, NULL, "


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


def once(expression: str) -> str:
    """The same, evaluated once per row. Spark would move a filter on the result below the projection that makes it, and
    evaluate it there again for each mention; it leaves alone what does not look deterministic."""
    return f"{_ONCE}{expression})"


def bare(expression: str) -> str:
    """What `once` was given: for where nothing is evaluated twice anyhow."""
    return expression[len(_ONCE) : -1] if expression.startswith(_ONCE) else expression


def text_of(payload: str) -> str:
    """Bytes as text, without a byte order mark. Nothing is checked or copied."""
    whole = f"CAST({payload} AS STRING)"
    return f"IF(startswith({whole}, '\\ufeff'), substring({whole}, 2), {whole})"
