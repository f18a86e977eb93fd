"""The OVER clause of a call: its window, by name or in place, and the columns that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from headwater.errors import SqlError
from headwater.plan import nodes as n
from headwater.plan.relation import Relation, with_expressions
from headwater.sql.expressions import compile_expression
from headwater.sql.typed import Expr

if TYPE_CHECKING:
    from headwater.plan.build import Builder

__all__ = ["OverClauses", "sort_column"]


class OverClauses:
    """Those of one SELECT. `relation` has the rows, with a column for everything that was computed for a window."""

    def __init__(self, builder: Builder, relation: Relation, named_windows: Sequence[exp.Window]) -> None:
        self.relation = relation
        self._builder = builder
        self._locate = builder.locate
        self._windows = {window.name: window for window in named_windows}

    def definition(self, window: exp.Window) -> exp.Window:
        name = window.args.get("alias")
        if name is None:
            return window
        found = self._windows.get(name.name)
        if found is None:
            raise self.error(window, f"There is no window '{name.name}'.", "Declare it: WINDOW w AS (…).")
        return found

    def column(self, tree: exp.Expr) -> str:
        return self.column_of(compile_expression(tree, self.relation.scope, self._locate))

    def column_of(self, expression: Expr) -> str:
        """The column that holds a value: its own, or one that is computed first."""
        if expression.column is not None:
            return expression.column
        name = self._builder.join_settings.fresh()
        self.relation = Relation(with_expressions(self.relation.node, {name: expression}), self.relation.scope)
        return name

    def error(self, at: exp.Expr, fact: str, hint: str = "") -> SqlError:
        return SqlError(fact, position=self._locate(at), hint=hint)


def sort_column(name: str, item: exp.Expr) -> n.SortColumn:
    """The parser has decided where NULL comes, also where the query does not say it."""
    return n.SortColumn(name, bool(item.args.get("desc")), bool(item.args.get("nulls_first")))
