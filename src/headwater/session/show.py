"""What SHOW, DESCRIBE and EXPLAIN answer, as tables of text. Secrets are masked in all of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from headwater.catalog.catalog import Catalog
from headwater.catalog.describe import DescribeRow, describe_table, describe_view, show_create
from headwater.catalog.tables import Table, View
from headwater.errors import ValidationError
from headwater.plan.validation import column_types, view_columns
from headwater.sql import statements as s
from headwater.sql.expressions.calls import AGGREGATES, NAMED_AGGREGATES
from headwater.sql.functions import REGISTRY
from headwater.sql.paths import DEFAULT_CATALOG, split

__all__ = ["Shown", "explain_notes", "plans_shown", "shown"]


@dataclass(frozen=True)
class Shown:
    """A table of text."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


_NO_DETAIL = {
    "ESTIMATED_COST": "a stream has no size to estimate a cost from.",
    "JSON_EXECUTION_PLAN": "plans are shown as text.",
    "PLAN_ADVICE": "what a plan keeps as state is shown with every operator.",
}


def explain_notes(statement: s.Explain) -> tuple[str, ...]:
    """CHANGELOG_MODE is always shown; the other details of EXPLAIN add nothing."""
    return tuple(f"{detail} adds nothing: {_NO_DETAIL[detail]}" for detail in statement.details if detail in _NO_DETAIL)


def plans_shown(plans: Iterable[str]) -> Shown:
    return Shown(("plan",), tuple((line,) for line in "\n\n".join(plans).splitlines()))


def shown(catalog: Catalog, statement: s.Show | s.Describe) -> Shown:
    if isinstance(statement, s.Describe):
        return _described(catalog, statement)
    if statement.kind == "COLUMNS":
        described = _described(catalog, statement)  # without the comments, as in Flink
        return Shown(described.header[:-1], tuple(row[:-1] for row in described.rows))
    if statement.kind in ("CREATE TABLE", "CREATE VIEW"):
        return Shown(("create statement",), ((show_create(_created(catalog, statement)),),))
    header, names = _LISTS[statement.kind]
    return Shown((header,), tuple((name,) for name in _matching(names(catalog, statement), statement)))


def _created(catalog: Catalog, statement: s.Show) -> Table | View:
    found = catalog.get(statement.name, statement.place)
    kind = "VIEW" if isinstance(found, View) else "TABLE"
    if statement.kind != f"CREATE {kind}":
        hint = f"Write SHOW CREATE {kind} {statement.name}."
        raise ValidationError(f"'{statement.name}' is a {kind.lower()}.", hint=hint)
    return found


def _described(catalog: Catalog, statement: s.Show | s.Describe) -> Shown:
    found = catalog.get(statement.name, statement.place)
    if isinstance(found, View):
        rows = describe_view({c.name: c.type for c in view_columns(found, catalog)})
    else:
        rows = describe_table(found, column_types(found))
    if isinstance(statement, s.Show):
        names = set(_matching([row.name for row in rows], statement))
        rows = [row for row in rows if row.name in names]
    header = ("name", "type", "null", "key", "extras", "watermark", "comment")
    return Shown(header, tuple(_cells(row) for row in rows))


def _cells(row: DescribeRow) -> tuple[str, ...]:
    return row.name, row.type, str(row.null).lower(), row.key, row.extras, row.watermark, row.comment


def _matching(names: Iterable[str], statement: s.Show) -> list[str]:
    """Those that LIKE and NOT LIKE leave."""
    like, unlike = (_pattern(p) if p is not None else None for p in (statement.like, statement.unlike))
    return [n for n in names if (like is None or like.fullmatch(n)) and (unlike is None or not unlike.fullmatch(n))]


def _pattern(like: s.LikePattern) -> re.Pattern[str]:
    signs = {"%": ".*", "_": "."}
    return re.compile(
        "".join(signs.get(c, re.escape(c)) for c in like.text), re.DOTALL | (re.IGNORECASE if like.ignore_case else 0)
    )


def _tables(catalog: Catalog, statement: s.Show) -> list[str]:
    return [*_names(catalog, statement, catalog.tables()), *_views(catalog, statement)]


def _views(catalog: Catalog, statement: s.Show) -> list[str]:
    return _names(catalog, statement, catalog.views())


def _names(catalog: Catalog, statement: s.Show, relations: Iterable[Table | View]) -> list[str]:
    database = statement.name or catalog.databases.current
    # An unknown database would otherwise look like one without tables.
    catalog.databases.check(database, statement.place)
    inside = set(catalog.names(database))
    return [split(relation.name)[-1] for relation in relations if relation.name in inside]


def _functions(catalog: Catalog, _: s.Show) -> list[str]:
    built_in = {*REGISTRY.functions, *(aggregate.key.upper() for aggregate in AGGREGATES), *NAMED_AGGREGATES}
    return sorted({*built_in, *catalog.functions.names()})


_LISTS: Mapping[str, tuple[str, Callable[[Catalog, s.Show], Iterable[str]]]] = {
    "TABLES": ("table name", _tables),
    "VIEWS": ("view name", _views),
    "DATABASES": ("database name", lambda catalog, _: catalog.databases),
    "CATALOGS": ("catalog name", lambda *_: (DEFAULT_CATALOG,)),
    "CURRENT CATALOG": ("current catalog name", lambda *_: (DEFAULT_CATALOG,)),
    "CURRENT DATABASE": ("current database name", lambda catalog, _: (catalog.databases.current,)),
    "FUNCTIONS": ("function name", _functions),
    "USER FUNCTIONS": ("function name", lambda catalog, _: catalog.functions.names()),
    "MODULES": ("module name", lambda *_: ("core",)),
    "FULL MODULES": ("module name", lambda *_: ("core",)),
    "JARS": ("jars", lambda *_: ()),
    "JOBS": ("job name", lambda *_: ()),
}
