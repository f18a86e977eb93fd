"""Trees back to Flink SQL, for SHOW CREATE TABLE and for plans that quote an expression.

What it writes, the parser reads back as the same tree. Only where sqlglot's own generator would say something else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect, NormalizationStrategy
from sqlglot.generator import Generator
from sqlglot.tokens import Tokenizer

__all__ = ["write_sql"]

_NO_PARENTHESES = frozenset({"CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP"})
_WORDS = {"POSITION": (" IN ", " FROM "), "OVERLAY": (" PLACING ", " FROM ", " FOR ")}


def write_sql(node: exp.Expr) -> str:
    """A query or an expression in Flink's SQL, on one line."""
    return node.sql(dialect=_Flink)


class _Quoting(Tokenizer):
    """From here the generator learns how names and strings are quoted. Nothing is tokenized with it."""

    IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ["`"]
    QUOTES: ClassVar[list[tuple[str, str] | str]] = ["'"]
    STRING_ESCAPES: ClassVar[list[str]] = ["'"]


class _Writer(Generator):
    SUPPORTS_BETWEEN_FLAGS = True
    TRANSFORMS: ClassVar[dict[type[exp.Expr], Callable[..., str]]] = {
        **Generator.TRANSFORMS,
        exp.Anonymous: lambda self, e: self.call(e),
        exp.Array: lambda self, e: f"ARRAY[{self.expressions(e, flat=True)}]",
        exp.DataType: lambda _, e: str(e.args["kind"]),
        exp.HexString: lambda _, e: f"X'{e.name}'",
        exp.Hint: lambda self, e: f" /*+ {self.expressions(e, flat=True)} */",
        exp.JSON: lambda _, e: f"JSON {e.name}",
        exp.Kwarg: lambda self, e: f"{e.this.name} => {self.argument(e.expression)}",
        exp.Lateral: lambda self, e: self.lateral(e),
        exp.Map: lambda self, e: f"MAP[{', '.join(map(self.sql, _pairs(e)))}]",
        exp.Property: lambda self, e: f"{self.sql(e, 'this')} = {self.sql(e, 'value')}",
        exp.Struct: lambda self, e: f"ROW({self.expressions(e, flat=True)})",
        exp.Table: lambda self, e: self.table(e),
        exp.Trim: lambda self, e: self.trim(e),
        exp.Version: lambda self, e: f"FOR SYSTEM_TIME AS OF {self.sql(e, 'expression')}",
        exp.WithTableHint: lambda self, e: f"/*+ OPTIONS({self.expressions(e, flat=True)}) */",
    }

    def call(self, node: exp.Anonymous) -> str:
        name = node.name
        arguments = [self.argument(a) for a in node.expressions]
        if name.upper() in _NO_PARENTHESES and not arguments:
            return name
        if name.upper() in _WORDS:
            words = _WORDS[name.upper()]
            return f"{name}({arguments[0]}{''.join(w + a for w, a in zip(words, arguments[1:], strict=False))})"
        if name.upper().startswith("JSON_"):
            return self.json_call(name, node)
        return f"{name}({', '.join(arguments)})"

    def argument(self, node: exp.Expr) -> str:
        return f"TABLE {self.sql(node)}" if isinstance(node, exp.Table) else self.sql(node)

    def json_call(self, name: str, node: exp.Anonymous) -> str:
        plain = [self.sql(a) for a in node.expressions if not isinstance(a, exp.Kwarg)]
        if name.upper().startswith("JSON_OBJECT"):
            plain = [f"KEY {k} VALUE {v}" for k, v in zip(plain[::2], plain[1::2], strict=True)]
        clauses = [self.json_clause(a) for a in node.expressions if isinstance(a, exp.Kwarg)]
        return f"{name}({', '.join(plain)}{''.join(clauses)})"

    def json_clause(self, clause: exp.Kwarg) -> str:
        name, value = clause.this.name, clause.expression
        if name == "RETURNING":
            return f" RETURNING {self.sql(value)}"
        if name == "WRAPPER":
            return " WITHOUT ARRAY WRAPPER" if value.name == "WITHOUT" else f" WITH {value.name} ARRAY WRAPPER"
        behaviour = value.name if isinstance(value, exp.Var) else f"DEFAULT {self.sql(value)}"
        return f" {behaviour} {name.replace('_', ' ')}"

    def table(self, node: exp.Table) -> str:
        name = ".".join(self.sql(part) for part in (node.args.get("db"), node.this) if part is not None)
        parts = [name, *(self.sql(hint) for hint in node.args.get("hints") or [])]
        if node.args.get("partition"):
            parts.append(f"PARTITION BY ({self.expressions(node.args['partition'], flat=True)})")
        parts += [self.sql(node, "version"), f"AS {self.sql(node, 'alias')}" if node.args.get("alias") else ""]
        joins = self.expressions(node, key="joins", sep="", flat=True)
        return " ".join(part for part in parts if part) + joins

    def lateral(self, node: exp.Lateral) -> str:
        inner = self.sql(node, "this")
        alias = f" AS {self.sql(node, 'alias')}" if node.args.get("alias") else ""
        return f"LATERAL {inner if isinstance(node.this, exp.Subquery) else f'TABLE({inner})'}{alias}"

    def trim(self, node: exp.Trim) -> str:
        characters = f"{self.sql(node, 'expression')} " if node.args.get("expression") else ""
        return f"TRIM({node.args['position']} {characters}FROM {self.sql(node, 'this')})"


class _Flink(Dialect):
    """The rules that the generator follows. It is for writing only: parsing is done by `sql.parser`."""

    NORMALIZATION_STRATEGY = NormalizationStrategy.CASE_SENSITIVE
    NULL_ORDERING = "nulls_are_small"
    TYPED_DIVISION = True
    INDEX_OFFSET = 0

    Tokenizer = _Quoting
    Generator = _Writer


def _pairs(node: exp.Map) -> list[exp.Expr]:
    keys, values = node.args["keys"].expressions, node.args["values"].expressions
    return [part for pair in zip(keys, values, strict=True) for part in pair]
