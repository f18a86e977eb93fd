"""Columns, fields of rows, elements of arrays and maps, and what constructs them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches

from sqlglot import exp

from headwater.sql.expressions.compiler import Compiler, Locate, Rules
from headwater.sql.expressions.scope import Scope, ScopeColumn
from headwater.sql.functions.casts import convert
from headwater.sql.functions.spark_sql import Refused, column, combine
from headwater.sql.functions.type_rules import common_type, common_type_of
from headwater.sql.spark_text import quote_name, string_literal
from headwater.sql.trees import name_path
from headwater.sql.typed import Expr
from headwater.sql.types import Field, SqlType

__all__ = ["NAMES", "bind", "bound_column", "bound_to", "name_nodes", "rebound"]

_BOUND = "bound"


def bind(tree: exp.Expr, scope: Scope, locate: Locate) -> exp.Expr:
    """A copy whose names are resolved in `scope`: it means the same wherever these columns are in scope."""
    copy = tree.copy()
    for node in name_nodes(copy):
        if _BOUND not in node.meta:
            found, fields = _resolved(node, scope, locate)
            # In the tree itself, so that it survives being moved into another query, where the names may mean something
            # else.
            node.meta[_BOUND] = (found.column, tuple(fields))
    return copy


def bound_column(found: ScopeColumn, at: exp.Expr) -> exp.Column:
    """A column that is resolved already, shown at the place of another tree."""
    node = exp.column(exp.to_identifier(found.name, quoted=True), found.qualifier or None)
    node.meta.update({k: v for k, v in at.meta.items() if k in ("start", "end")})
    node.meta[_BOUND] = (found.column, ())
    return node


def rebound(tree: exp.Expr, columns: Mapping[str, str]) -> exp.Expr:
    """The same over other columns, by the names they had."""
    copy = tree.copy()
    for node in name_nodes(copy):
        if _BOUND in node.meta:
            found, fields = node.meta[_BOUND]
            node.meta[_BOUND] = (columns[found], fields)
    return copy


def bound_to(node: exp.Expr) -> str:
    """The column that a name is resolved to; empty if it is not."""
    bound = node.meta.get(_BOUND)
    return str(bound[0]) if bound is not None else ""


def name_nodes(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The names of columns in a tree, as whole paths; not those in queries inside of it."""
    if isinstance(tree, exp.Query):
        return
    if _is_path(tree):
        yield tree
        return
    for child in tree.iter_expressions():
        yield from name_nodes(child)


def _column(compiler: Compiler, node: exp.Column | exp.Dot) -> Expr:
    if isinstance(node, exp.Dot) and not _is_path(node):
        return field_of(compiler.compile(node.this), node.expression.name)
    if isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
        raise compiler.error(node, "A star cannot be part of an expression")
    bound = node.meta.get(_BOUND)
    if bound is not None:
        found, fields = compiler.scope.at(bound[0]), bound[1]
    else:
        found, fields = _resolved(node, compiler.scope, compiler.locate)
    value = column(found.column, found.type, found.shown)
    for name in fields:
        value = field_of(value, name)
    return value


def _resolved(node: exp.Expr, scope: Scope, locate: Locate) -> tuple[ScopeColumn, Sequence[str]]:
    path = name_path(node)
    return scope.resolve_path([part.name for part in path], lambda place: locate(path[place]))


def _is_path(node: exp.Expr) -> bool:
    return isinstance(node, exp.Column) or (isinstance(node, exp.Dot) and _is_path(node.this))


def field_of(value: Expr, name: str) -> Expr:
    """`value.name` of a ROW."""
    if value.type.name != "ROW":
        raise Refused(f"'{value.text}' is {value.type.as_nullable()} and has no field '{name}'")
    for field in value.type.fields:
        if field.name == name:
            sql_type = field.type.as_nullable(nullable=field.type.nullable or value.type.nullable)
            found = combine([value], f"({value.sql}).{quote_name(name)}", sql_type, f"{value.text}.{name}")
            # Of which a scan reads only this field, if nothing else of the row is used.
            return found if value.column is None else replace(found, paths=frozenset({(value.column, name)}))
    names = [field.name for field in value.type.fields]
    close = get_close_matches(name, names, n=1)
    hint = f"Did you mean '{close[0]}'?" if close else ""
    raise Refused(f"'{value.text}' has no field '{name}'", detail=f"It has {', '.join(names)}.", hint=hint)


def _element(compiler: Compiler, node: exp.Bracket) -> Expr:
    value, index = compiler.compile_all([node.this, node.expressions[0]])
    text = f"{value.text}[{index.text}]"
    kind = value.type
    if kind.name == "ROW" and index.literal is not None:
        return _field_at(value, index)
    if kind.name == "ARRAY" and index.type.is_integer:
        return _array_element(value, index, text)
    if kind.name == "MAP" and kind.key is not None and kind.element is not None:
        key = common_type(kind.key, index.type)
        if key is not None and key.as_nullable() == kind.key.as_nullable():
            sql = f"try_element_at({value.sql}, {convert(index, kind.key).sql})"
            return combine([value, index], sql, kind.element.as_nullable(), text)
    wanted = {"ARRAY": "a whole number", "MAP": str(kind.key)}.get(kind.name)
    if wanted is None:
        raise Refused(f"'{value.text}' is {kind.as_nullable()} and has no elements")
    raise Refused(f"The index of {kind.as_nullable()} must be {wanted}, not {index.type.as_nullable()}")


def _array_element(value: Expr, index: Expr, text: str) -> Expr:
    """Positions count from 1; NULL outside."""
    assert value.type.element is not None
    if isinstance(index.literal, int) and index.literal < 1:
        raise Refused(f"Positions in an array count from 1, not {index.literal}")
    place = str(index.literal - 1) if isinstance(index.literal, int) else f"CAST({index.sql} AS INT) - 1"
    return combine([value, index], f"get({value.sql}, {place})", value.type.element.as_nullable(), text)


def _field_at(value: Expr, index: Expr) -> Expr:
    if isinstance(index.literal, str):
        return field_of(value, index.literal)
    fields = value.type.fields
    if not isinstance(index.literal, int) or not 1 <= index.literal <= len(fields):
        raise Refused(f"'{value.text}' has the fields 1 to {len(fields)}")
    return field_of(value, fields[index.literal - 1].name)


def _array(compiler: Compiler, node: exp.Array) -> Expr:
    items = compiler.compile_all(node.expressions)
    if not items:
        raise Refused("An empty ARRAY has no type", hint="Write CAST(NULL AS ARRAY<INT>) for no array at all.")
    element = _common(items, "elements of an ARRAY")
    values = ", ".join(convert(item, element).sql for item in items)
    text = f"ARRAY[{', '.join(item.text for item in items)}]"
    return combine(items, f"array({values})", SqlType("ARRAY", element=element, nullable=False), text)


def _map(compiler: Compiler, node: exp.Map) -> Expr:
    keys = compiler.compile_all(node.args["keys"].expressions)
    values = compiler.compile_all(node.args["values"].expressions)
    if not keys:
        raise Refused("An empty MAP has no type", hint="Write CAST(NULL AS MAP<STRING, INT>) for no map at all.")
    key, value = _common(keys, "keys of a MAP"), _common(values, "values of a MAP")
    pairs = [(convert(k, key), convert(v, value)) for k, v in zip(keys, values, strict=True)]
    text = f"MAP[{', '.join(f'{k.text}, {v.text}' for k, v in zip(keys, values, strict=True))}]"
    sql = f"map({', '.join(f'{k.sql}, {v.sql}' for k, v in pairs)})"
    return combine([*keys, *values], sql, SqlType("MAP", key=key, element=value, nullable=False), text)


def _common(items: list[Expr], what: str) -> SqlType:
    found = common_type_of([item.type for item in items])
    if found is None or found.name == "NULL":
        kinds = ", ".join(dict.fromkeys(str(item.type.as_nullable()) for item in items))
        raise Refused(f"The {what} have no common type: {kinds}", hint="CAST them to one type.")
    return found


def _row(compiler: Compiler, node: exp.Struct | exp.Tuple) -> Expr:
    """ROW(1, 'a') has the fields EXPR$0 and EXPR$1, as in Flink."""
    items = compiler.compile_all(node.expressions)
    if not items:
        raise Refused("A ROW needs at least one field")
    untyped = next((index for index, item in enumerate(items) if item.type.name == "NULL"), None)
    if untyped is not None:
        raise Refused("NULL in a ROW needs a type", hint="Write CAST(NULL AS INT), for example.")
    fields = tuple(Field(f"EXPR${index}", item.type) for index, item in enumerate(items))
    pairs = ", ".join(f"{string_literal(f.name)}, {item.sql}" for f, item in zip(fields, items, strict=True))
    text = f"ROW({', '.join(item.text for item in items)})"
    return combine(items, f"named_struct({pairs})", SqlType("ROW", fields=fields, nullable=False), text)


NAMES: Rules = {
    exp.Column: _column,
    exp.Dot: _column,
    exp.Bracket: _element,
    exp.Array: _array,
    exp.Map: _map,
    exp.Struct: _row,
    exp.Tuple: _row,
}
