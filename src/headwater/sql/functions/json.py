"""The SQL/JSON functions. Their clauses arrive as `Clauses`; everything else about them is here.

A document is read with get_json_object, which is quick; only where its answer is ambiguous (a string that looks like an
object) the document is parsed as a VARIANT. As in Flink, a path without a mode is strict; where nothing is found, or
not the right kind of value, or the document is none, ON ERROR says what happens in strict mode and ON EMPTY in lax.
Differences from Flink: a value that is not of the type after RETURNING is treated in the same way (Flink fails), and a
number like 1e3 is written 1000.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from json import dumps

from headwater.sql.functions.casts import cast
from headwater.sql.functions.json_path import JsonPath, parse_path
from headwater.sql.functions.json_values import json_value
from headwater.sql.functions.spark_sql import Refused, combine, evaluated_once
from headwater.sql.functions.type_rules import common_type
from headwater.sql.spark_text import string_literal
from headwater.sql.typed import Expr
from headwater.sql.types import BOOLEAN, STRING, Field, SqlType

__all__ = ["JSON_FUNCTIONS", "JSON_MAKERS", "Clauses", "aggregated_array", "aggregated_object", "is_json"]

_RETURNING = ("STRING", "BOOLEAN", "INT", "BIGINT", "DOUBLE")
_ERROR = "raise_error('the JSON value is missing or not of the expected kind')"


@dataclass(frozen=True)
class Clauses:
    """RETURNING, WRAPPER, and what happens ON_EMPTY, ON_ERROR and ON_NULL: a word, or the expression of DEFAULT.

    `raw` are the arguments that are JSON already, because JSON_OBJECT or JSON_ARRAY made them.
    """

    returning: SqlType | None = None
    words: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Expr] = field(default_factory=dict)
    raw: frozenset[int] = frozenset()

    def text(self) -> str:
        parts = [f" RETURNING {self.returning.as_nullable()}"] if self.returning else []
        parts += [f" {word} {clause.replace('_', ' ')}" for clause, word in self.words.items()]
        parts += [f" DEFAULT {value.text} {clause.replace('_', ' ')}" for clause, value in self.defaults.items()]
        return "".join(parts)


@dataclass(frozen=True)
class _Read:
    """A document and a path in it."""

    document: str
    path: JsonPath

    @property
    def found(self) -> str:
        # The quick way: it streams. What it finds is text, so a string that looks like an object cannot be
        # distinguished from one; only then the document is parsed as a VARIANT.
        return f"get_json_object({self.document}, {string_literal(self.path.spark)})"

    @property
    def variant(self) -> str:
        return f"try_variant_get(try_parse_json({self.document}), {string_literal(self.path.spark)}, 'variant')"

    @property
    def looks_nested(self) -> str:
        return f"({self.found} LIKE '{{%' OR {self.found} LIKE '[%')"

    @property
    def is_text(self) -> str:
        return f"schema_of_variant({self.variant}) = 'STRING'"

    @property
    def scalar(self) -> str:
        """The value as a string if it is a number, a string or a boolean, else NULL."""
        return f"CASE WHEN {self.looks_nested} AND NOT {self.is_text} THEN NULL ELSE {self.found} END"

    @property
    def nested(self) -> str:
        """The value as a string if it is an object or an array, else NULL."""
        return f"CASE WHEN {self.looks_nested} AND NOT {self.is_text} THEN {self.found} END"


def _read(name: str, arguments: Sequence[Expr]) -> _Read:
    document, path = arguments
    if not document.type.is_string and document.type.name != "NULL":
        fact = f"Argument 1 of {name} must be STRING, not {document.type.as_nullable()}"
        raise Refused(fact, argument=0)
    if not isinstance(path.literal, str):
        raise Refused(f"The path of {name} must be a literal", argument=1)
    return _Read(document.sql, parse_path(path.literal))


def _or_default(value: str, read: _Read, instead: Callable[[str], str]) -> str:
    """`value`, or where there is none what ON EMPTY (in lax mode) or ON ERROR says. A NULL document stays NULL."""
    other = instead("ON_EMPTY" if read.path.lax else "ON_ERROR")
    # The usual case needs no second mention of the document.
    if other == "NULL":
        return value
    # A NULL document is neither empty nor an error in SQL: neither clause applies.
    return f"CASE WHEN {read.document} IS NULL THEN NULL ELSE coalesce({value}, {other}) END"


def _value(arguments: Sequence[Expr], clauses: Clauses) -> Expr:
    target = (clauses.returning or STRING).as_nullable()
    if target.name not in _RETURNING:
        raise Refused(f"JSON_VALUE cannot return {target}", hint=f"It returns {', '.join(_RETURNING)}.")
    for clause, default in clauses.defaults.items():
        if target.name != "STRING" and common_type(default.type, target) != target:
            raise Refused(f"The DEFAULT of {clause.replace('_', ' ')} must be {target}, not {default.type}")

    def instead(clause: str) -> str:
        if clause in clauses.defaults:
            return cast(clauses.defaults[clause], target).sql
        return _ERROR if clauses.words.get(clause) == "ERROR" else "NULL"

    def body(parts: Sequence[Expr]) -> str:
        read = _read("JSON_VALUE", parts)
        value = read.scalar if target.is_string else f"TRY_CAST({read.scalar} AS {target.spark()})"
        return _or_default(value, read, instead)

    sql = evaluated_once(arguments, body)
    return combine([*arguments, *clauses.defaults.values()], sql, target, _text("JSON_VALUE", arguments, clauses))


def _query(arguments: Sequence[Expr], clauses: Clauses) -> Expr:
    target = (clauses.returning or STRING).as_nullable()
    if not target.is_string and target.spark() != "ARRAY<STRING>":
        raise Refused(f"JSON_QUERY cannot return {target}", hint="It returns STRING or ARRAY<STRING>.")
    empties = {"EMPTY ARRAY": "'[]'", "EMPTY OBJECT": "'{}'", "ERROR": _ERROR}

    def body(parts: Sequence[Expr]) -> str:
        read = _read("JSON_QUERY", parts)
        wrapped = _wrapped(read, clauses.words.get("WRAPPER", "WITHOUT"))
        sql = _or_default(wrapped, read, lambda clause: empties.get(clauses.words.get(clause, ""), "NULL"))
        return sql if target.is_string else f"from_json({sql}, 'ARRAY<STRING>')"

    return combine(arguments, evaluated_once(arguments, body), target, _text("JSON_QUERY", arguments, clauses))


def _wrapped(read: _Read, wrapper: str) -> str:
    if wrapper == "WITHOUT":
        return read.nested
    raw = f"CASE WHEN {read.is_text} THEN to_json({read.variant}) ELSE {read.found} END"
    if wrapper == "UNCONDITIONAL":
        return f"concat('[', {raw}, ']')"
    return f"CASE WHEN {read.nested} LIKE '[%' THEN {read.found} ELSE concat('[', {raw}, ']') END"


def _exists(arguments: Sequence[Expr], clauses: Clauses) -> Expr:
    words = {"TRUE": "true", "FALSE": "false", "UNKNOWN": "NULL", "ERROR": _ERROR}
    on_error = words[clauses.words.get("ON_ERROR", "FALSE")]

    def body(parts: Sequence[Expr]) -> str:
        read = _read("JSON_EXISTS", parts)
        missing = "false" if read.path.lax else on_error
        return f"CASE WHEN {read.found} IS NOT NULL THEN true WHEN {read.document} IS NOT NULL THEN {missing} END"

    return combine(arguments, evaluated_once(arguments, body), BOOLEAN, _text("JSON_EXISTS", arguments, clauses))


def _text(name: str, arguments: Sequence[Expr], clauses: Clauses) -> str:
    return f"{name}({', '.join(a.text for a in arguments)}{clauses.text()})"


def _make_object(arguments: Sequence[Expr], clauses: Clauses) -> Expr:
    on_null = clauses.words.get("ON_NULL", "NULL")
    for index in range(0, len(arguments), 2):
        if not isinstance(arguments[index].literal, str):
            raise Refused("A key of JSON_OBJECT must be a literal string", argument=index)

    def body(parts: Sequence[Expr]) -> str:
        values = [_piece(parts, index, clauses, on_null) for index in range(1, len(parts), 2)]
        keys = [string_literal(_json_key(str(part.literal))) for part in parts[::2]]
        return _joined("{}", [f"concat({key}, {value})" for key, value in zip(keys, values, strict=True)])

    return _made("JSON_OBJECT", body, arguments, clauses)


def _make_array(arguments: Sequence[Expr], clauses: Clauses) -> Expr:
    on_null = clauses.words.get("ON_NULL", "ABSENT")

    def body(parts: Sequence[Expr]) -> str:
        return _joined("[]", [_piece(parts, index, clauses, on_null) for index in range(len(parts))])

    return _made("JSON_ARRAY", body, arguments, clauses)


def aggregated_array(value: Expr, clauses: Clauses) -> Expr:
    """An element of JSON_ARRAYAGG as JSON; NULL if it is left out."""
    on_null = clauses.words.get("ON_NULL", "ABSENT")
    sql = evaluated_once([value], lambda parts: _piece(parts, 0, clauses, on_null))
    return combine([value], sql, STRING, f"{value.text}{clauses.text()}")


def aggregated_object(key: Expr, value: Expr, clauses: Clauses) -> Expr:
    """A member of JSON_OBJECTAGG: its key, and its value as JSON; NULL if it is left out."""
    on_null = clauses.words.get("ON_NULL", "NULL")

    def body(parts: Sequence[Expr]) -> str:
        no_key = "raise_error('a key of JSON_OBJECTAGG is NULL')"
        piece = _piece(parts, 1, clauses, on_null)
        pair = f"named_struct('k', coalesce({parts[0].sql}, {no_key}), 'v', {piece})"
        return f"CASE WHEN {parts[1].sql} IS NOT NULL THEN {pair} END" if on_null == "ABSENT" else pair

    if not key.type.is_string:
        raise Refused(f"A key of JSON_OBJECTAGG must be a string, not {key.type.as_nullable()}", argument=0)
    fields = (Field("k", STRING), Field("v", STRING))
    text = f"KEY {key.text} VALUE {value.text}{clauses.text()}"
    return combine([key, value], evaluated_once([key, value], body), SqlType("ROW", fields=fields), text)


def _piece(parts: Sequence[Expr], index: int, clauses: Clauses, on_null: str) -> str:
    """One value as JSON; NULL, which is then left out, or 'null'."""
    value = parts[index].sql if index in clauses.raw else json_value(parts[index], index)
    return value if on_null == "ABSENT" else f"coalesce({value}, 'null')"


def _joined(brackets: str, pieces: list[str]) -> str:
    inside = f"concat_ws(',', {', '.join(pieces)})" if pieces else "''"
    return f"concat('{brackets[0]}', {inside}, '{brackets[1]}')"


def _made(name: str, body: Callable[[Sequence[Expr]], str], arguments: Sequence[Expr], clauses: Clauses) -> Expr:
    sql = evaluated_once(arguments, body)
    return combine(arguments, sql, STRING.not_null(), _text(name, arguments, clauses))


def _json_key(key: str) -> str:
    return dumps(key, ensure_ascii=False) + ":"


def is_json(value: Expr, kind: str) -> Expr:
    """`value IS JSON [VALUE|OBJECT|ARRAY|SCALAR]`."""
    start = {"OBJECT": "LIKE '{%'", "ARRAY": "LIKE '[%'", "SCALAR": "NOT RLIKE '^[{\\\\[]'"}.get(kind)

    def body(parts: Sequence[Expr]) -> str:
        document = parts[0].sql
        valid = f"get_json_object({document}, '$') IS NOT NULL"
        return f"({valid})" if start is None else f"coalesce({valid} AND ltrim({document}) {start}, false)"

    sql = evaluated_once([value], body)
    suffix = "" if kind == "VALUE" else f" {kind}"
    return combine([value], sql, BOOLEAN.not_null(), f"{value.text} IS JSON{suffix}")


JSON_FUNCTIONS: dict[str, Callable[[Sequence[Expr], Clauses], Expr]] = {
    "JSON_VALUE": _value,
    "JSON_QUERY": _query,
    "JSON_EXISTS": _exists,
    "JSON_OBJECT": _make_object,
    "JSON_ARRAY": _make_array,
}
JSON_MAKERS = frozenset({"JSON_OBJECT", "JSON_ARRAY"})
