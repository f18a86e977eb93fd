"""SQL text for Spark: the one way to quote a name and to write a literal."""

from __future__ import annotations

import re
from collections.abc import Mapping

__all__ = ["bare", "field_of", "once", "quote_name", "renamed", "string_literal", "string_map"]

_TOKENS = re.compile(r"'(?:[^'\\]|\\.)*'|\.?`(?:[^`]|``)+`")
"""String literals, and names with the dot before them: those are fields of rows."""

_ONCE = "IF(spark_partition_id() < 0, NULL, "
# NUL is not `\\0`: followed by two digits, that would be an octal escape.
_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"})


def quote_name(identifier: str) -> str:
    """A column, field or alias, whatever characters it has."""
    return "`" + identifier.replace("`", "``") + "`"


def field_of(struct: str, identifier: str) -> str:
    """A field of a struct that SQL text names."""
    return f"{struct}.{quote_name(identifier)}"


def string_literal(value: str) -> str:
    """`${` is broken up because Spark would replace it by one of its settings before it parses the statement."""
    return "'" + value.translate(_ESCAPES).replace("${", "\\u0024{") + "'"


def string_map(entries: Mapping[str, str]) -> str:
    return f"map({', '.join(f'{string_literal(k)}, {string_literal(v)}' for k, v in entries.items())})"


def renamed(sql: str, names: Mapping[str, str]) -> str:
    """The same over columns with other names."""
    quoted = {quote_name(old): quote_name(new) for old, new in names.items()}
    # By tokens of SQL: a name inside of a string literal must stay as it is.
    return _TOKENS.sub(lambda found: quoted.get(found[0], found[0]), sql)


def once(expression: str) -> str:
    """The same, evaluated once per row. Spark would move a filter on the result below the projection that makes it, and
    evaluate it there again for each mention; it leaves alone what does not look deterministic."""
    return f"{_ONCE}{expression})"


def bare(expression: str) -> str:
    """What `once` was given: for where nothing is evaluated twice anyhow."""
    return expression[len(_ONCE) : -1] if expression.startswith(_ONCE) else expression
