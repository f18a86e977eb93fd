"""Aggregates with OVER in a SELECT: windows with one partition and order are one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from sqlglot import exp

from headwater.plan import nodes as n
from headwater.plan.over_clause import OverClauses, sort_column
from headwater.plan.relation import Relation
from headwater.sql.expressions import Scope, ScopeColumn, bound_column, compile_aggregate, compile_expression
from headwater.sql.expressions.calls import AGGREGATES, called_name
from headwater.sql.typed import Expr

if TYPE_CHECKING:
    from headwater.plan.build import Builder

__all__ = ["Overs"]

_NAMED = ("FIRST_VALUE", "LAST_VALUE", "LAG", "LEAD")
_WITHOUT = "Aggregate in a query with GROUP BY, and join it; 'headwater docs limits' lists what queries can do."
_TIMES = ("TIMESTAMP", "TIMESTAMP_LTZ")

Definition = tuple[n.Key, tuple[n.SortColumn, ...]]


class Overs(OverClauses):
    """Those of one SELECT. `relation` has the rows, with a column for every result."""

    def __init__(self, builder: Builder, relation: Relation, named_windows: Sequence[exp.Window]) -> None:
        super().__init__(builder, relation, named_windows)
        self._calls: dict[str, tuple[Definition, n.Column, n.OverCall]] = {}

    def replace(self, trees: Sequence[exp.Expr]) -> list[exp.Expr]:
        """The trees with every such call replaced by its column."""
        for tree in trees:
            for window in _windows(tree):
                # Written twice, in SELECT and in an expression say, it is computed once.
                if repr(window) not in self._calls:
                    self._calls[repr(window)] = self._call(window)
        if not self._calls:
            return list(trees)
        self._build()
        return [self._replaced(tree) for tree in trees]

    def _replaced(self, tree: exp.Expr) -> exp.Expr:
        if isinstance(tree, exp.Window) and repr(tree) in self._calls:
            _, column, _ = self._calls[repr(tree)]
            return bound_column(ScopeColumn("", column.name, column.name, column.type), tree)
        if not _windows(tree):
            return tree
        copy = tree.copy()
        for child in list(copy.iter_expressions()):
            child.replace(self._replaced(child))
        return copy

    def _build(self) -> None:
        """One node for each partition and order, one upon the other."""
        grouped: dict[Definition, list[tuple[n.Column, n.OverCall]]] = {}
        for definition, column, call in self._calls.values():
            grouped.setdefault(definition, []).append((column, call))
        node, scope = self.relation.node, list(self.relation.scope.columns)
        for (partition, order), found in grouped.items():
            columns, calls = tuple(c for c, _ in found), tuple(call for _, call in found)
            kind = n.OverTime if _is_by_time(node, order, calls) else n.Over
            node = kind((*node.columns, *columns), node, partition, order, calls)
            scope += [ScopeColumn("", c.name, c.name, c.type) for c in columns]
        self.relation = Relation(node, Scope(tuple(scope)))

    def _call(self, window: exp.Window) -> tuple[Definition, n.Column, n.OverCall]:
        definition = self.definition(window)
        partition = tuple(dict.fromkeys(self.column(tree) for tree in definition.args.get("partition_by") or ()))
        items = definition.args["order"].expressions if definition.args.get("order") is not None else []
        order = tuple(sort_column(self.column(item.this), item) for item in items)
        frame = self._frame(window, definition.args.get("spec"), order)
        over = self._shown(partition, order, definition.args.get("spec"))
        call = self._compiled(window, frame, over)
        if not order and (call.function in {"LAG", "LEAD"} or frame.kind == "rows"):
            raise self.error(window, f"{call.function} over rows needs an ORDER BY in its OVER clause.")
        return (partition, order), n.Column(self._builder.join_settings.fresh(), call.type), call

    def _compiled(self, window: exp.Window, frame: n.OverFrame, over: str) -> n.OverCall:
        call = window.this
        if isinstance(call, exp.Anonymous) and called_name(call) in {"LAG", "LEAD"}:
            return self._shifted(call, over)
        compiled = compile_aggregate(call, self.relation.scope, self._locate)
        if compiled.distinct or compiled.filter is not None:
            raise self.error(window, "DISTINCT and FILTER with OVER are not supported.", hint=_WITHOUT)
        argument = self.column_of(compiled.argument) if compiled.argument is not None else ""
        return n.OverCall(compiled.function, argument, frame, compiled.type, f"{compiled.text} {over}")

    def _shifted(self, call: exp.Anonymous, over: str) -> n.OverCall:
        name, arguments = called_name(call), call.expressions
        if not 1 <= len(arguments) <= 3:
            raise self.error(call, f"{name} takes a value, and perhaps a number of rows and a default.")
        value, *others = (compile_expression(tree, self.relation.scope, self._locate) for tree in arguments)
        offset = others[0].literal if others else 1
        if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
            raise self.error(call, f"The number of rows of {name} must be a literal of 0 or more.")
        default = self.column_of(others[1]) if len(others) > 1 else ""
        text = f"{name}({', '.join(e.text for e in (value, *others))}) {over}"
        kind = value.type.as_nullable()
        return n.OverCall(name, self.column_of(value), n.OverFrame(), kind, text, offset, default)

    def _frame(self, window: exp.Window, spec: exp.Expr | None, order: tuple[n.SortColumn, ...]) -> n.OverFrame:
        if spec is None:
            # As standard SQL: without an order all rows of the partition are peers.
            return n.OverFrame() if order else n.OverFrame(following=None)
        kind: Literal["rows", "range"] = "rows" if str(spec.args["kind"]).upper() == "ROWS" else "range"
        ends = [self._end(window, spec.args[f"{end}"], spec.args.get(f"{end}_side"), kind, order) for end in _ENDS]
        # `_end` counts towards what follows; a frame has its two ends as distances.
        preceding, following = ends[0], ends[1]
        backwards = preceding is not None and following is not None and preceding > following
        if backwards or (spec.args.get("start_side"), preceding) == ("FOLLOWING", None):
            raise self.error(window, "The frame of an OVER clause must not end before it begins.")
        if (spec.args.get("end_side"), following) == ("PRECEDING", None):
            raise self.error(window, "The frame of an OVER clause must not end before it begins.")
        return n.OverFrame(kind, None if preceding is None else -preceding, following)

    def _end(
        self, window: exp.Window, bound: object, side: str | None, kind: str, order: tuple[n.SortColumn, ...]
    ) -> int | None:
        """How far an end is behind the current row; None if it is unbounded."""
        if bound == "CURRENT ROW":
            return 0
        if bound == "UNBOUNDED":
            return None
        assert isinstance(bound, exp.Expr)
        compiled = compile_expression(bound, self.relation.scope, self._locate)
        if not isinstance(compiled.literal, int) or isinstance(compiled.literal, bool):
            raise self.error(window, "The bounds of ROWS and RANGE must be literals.")
        if kind == "range":
            self._check_range(window, compiled, order)
        return -compiled.literal if side == "PRECEDING" else compiled.literal

    def _check_range(self, window: exp.Window, bound: Expr, order: tuple[n.SortColumn, ...]) -> None:
        types = {c.name: c.type for c in self.relation.node.columns}
        kind = types[order[0].name] if len(order) == 1 else None
        of_time = kind is not None and kind.name in _TIMES and bound.type.name == "INTERVAL DAY"
        of_number = kind is not None and kind.is_integer and bound.type.is_integer
        if not of_time and not of_number:
            hint = "Order by one TIMESTAMP and write RANGE BETWEEN INTERVAL '1' HOUR PRECEDING AND CURRENT ROW."
            raise self.error(window, "The bounds of RANGE do not fit its ORDER BY.", hint)

    def _shown(self, partition: n.Key, order: tuple[n.SortColumn, ...], spec: exp.Expr | None) -> str:
        clauses = [f"PARTITION BY {', '.join(partition)}"] if partition else []
        clauses += [f"ORDER BY {', '.join(map(str, order))}"] if order else []
        if spec is not None:
            ends = " AND ".join(_end_text(spec.args[end], spec.args.get(f"{end}_side")) for end in _ENDS)
            clauses.append(f"{str(spec.args['kind']).upper()} BETWEEN {ends}")
        return f"OVER ({' '.join(clauses)})"


_ENDS = ("start", "end")


def _windows(tree: exp.Expr) -> list[exp.Window]:
    """Calls with OVER, but for those that number rows."""
    if isinstance(tree, exp.Query):
        return []
    if isinstance(tree, exp.Window) and _is_aggregate(tree.this):
        return [tree]
    return [window for child in tree.iter_expressions() for window in _windows(child)]


def _is_aggregate(call: exp.Expr) -> bool:
    while isinstance(call, exp.Filter | exp.IgnoreNulls):
        call = call.this
    return isinstance(call, AGGREGATES) or (isinstance(call, exp.Anonymous) and called_name(call) in _NAMED)


def _is_by_time(node: n.Node, order: tuple[n.SortColumn, ...], calls: Sequence[n.OverCall]) -> bool:
    """Whether results are final as soon as the time of a row has passed."""
    if len(order) != 1 or order[0].descending or node.mode is not n.Mode.APPEND:
        return False
    return order[0].name in node.times and not any(call.looks_ahead for call in calls)


def _end_text(bound: object, side: str | None) -> str:
    if isinstance(bound, exp.Interval):
        words = " TO ".join(part.name for part in bound.args["unit"].find_all(exp.Var))
        return f"INTERVAL '{bound.this.name}' {words} {side}"
    text = bound.name if isinstance(bound, exp.Expr) else str(bound)
    return f"{text} {side}" if side else text
