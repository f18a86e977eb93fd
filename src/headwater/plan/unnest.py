"""UNNEST in FROM: the elements of a collection that a row of what stands before it has."""

from __future__ import annotations

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.relation import Locate, Relation, free_name
from headwater.sql.expressions import Scope, ScopeColumn, compile_expression
from headwater.sql.types import INT, SqlType
from headwater.sql.user_calls import ScalarCall, function_of

__all__ = ["unnested"]


def unnested(left: Relation, tree: exp.Unnest, taken: set[str], locate: Locate, *, outer: bool) -> Relation:
    """Each row of `left` with each of the elements; with `outer` also without any."""
    if len(tree.expressions) != 1:
        raise SqlError("UNNEST takes one array, map or multiset.", position=locate(tree))
    collection = compile_expression(tree.expressions[0], left.scope, locate)
    found = _elements(collection.type)
    if not found:
        raise SqlError(
            f"UNNEST takes an array, a map or a multiset, not {collection.type.as_nullable()}.",
            position=locate(tree.expressions[0]),
        )
    elements = [(name, kind.as_nullable() if outer else kind) for name, kind in found]
    ordinality = [("ORDINALITY", INT.as_nullable(nullable=outer))] if tree.args.get("offset") else []
    shown = _named(elements, ordinality, tree, locate)
    columns = [n.Column(free_name(name, taken), kind) for name, kind in shown]
    taken.update(c.name for c in columns)
    node = n.Unnest(
        (*left.node.columns, *columns),
        left.node,
        collection,
        tuple(columns[: len(elements)]),
        columns[-1].name if ordinality else "",
        outer,
    )
    own = (ScopeColumn(tree.alias, name, c.name, c.type) for (name, _), c in zip(shown, columns, strict=True))
    return Relation(node, Scope((*left.scope.columns, *own)))


def _elements(kind: SqlType) -> list[tuple[str, SqlType]]:
    """The columns of an element, which are those of a row if it is one."""
    element = kind.element
    if kind.name == "MAP" and kind.key is not None and element is not None:
        return [("KEY", kind.key), ("VALUE", element)]
    if kind.name not in {"ARRAY", "MULTISET"} or element is None:
        return []
    if element.name == "ROW":
        return [(f.name, f.type.as_nullable(nullable=f.type.nullable or element.nullable)) for f in element.fields]
    return [("EXPR$0", element)]


def _named(
    elements: list[tuple[str, SqlType]], ordinality: list[tuple[str, SqlType]], tree: exp.Unnest, locate: Locate
) -> list[tuple[str, SqlType]]:
    columns = [*elements, *ordinality]
    alias = tree.args.get("alias")
    names = [c.name for c in (alias.args.get("columns") or [])] if alias is not None else []
    if not names:
        # The only column of UNNEST(…) AS t is called t, too, as in Flink; that of a table function keeps its name.
        renamed = tree.alias and len(elements) == 1 and not _is_table_function(tree.expressions[0])
        return [(tree.alias, elements[0][1]), *ordinality] if renamed else columns
    if len(names) != len(columns):
        raise SqlError(f"{len(names)} column names are given for {len(columns)} columns.", position=locate(tree))
    return [(name, kind) for name, (_, kind) in zip(names, columns, strict=True)]


def _is_table_function(tree: exp.Expr) -> bool:
    return isinstance(tree, ScalarCall) and function_of(tree).kind == "table"
