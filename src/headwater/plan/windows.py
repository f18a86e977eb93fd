"""Windows of time in SQL: the table functions TUMBLE, HOP, CUMULATE and SESSION, and the older GROUP BY TUMBLE(…).

Both become a `WindowTable`: the input with the columns window_start, window_end and window_time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from sqlglot import exp

from headwater.errors import SqlError, ValidationError
from headwater.options.closest import did_you_mean
from headwater.options.session import SessionOptions
from headwater.plan import nodes as n
from headwater.sql.expressions import Scope, ScopeColumn, compile_expression
from headwater.sql.expressions.calls import is_unknown
from headwater.sql.expressions.compiler import Locate
from headwater.sql.types import SqlType, timestamp

__all__ = [
    "WINDOW_FUNCTIONS",
    "EmitRules",
    "GroupWindow",
    "check_session",
    "function_name",
    "no_table_function",
    "window_table",
]


WINDOW_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("DATA", "TIMECOL", "SIZE", "OFFSET"),
    "HOP": ("DATA", "TIMECOL", "SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("DATA", "TIMECOL", "STEP", "SIZE", "OFFSET"),
    "SESSION": ("DATA", "TIMECOL", "GAP"),
}
"""The arguments of each table function; OFFSET may be left out."""

GROUP_FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "TUMBLE": ("TIMECOL", "SIZE"),
    "HOP": ("TIMECOL", "SLIDE", "SIZE"),
    "SESSION": ("TIMECOL", "GAP"),
}

_TIME_ATTRIBUTE = (
    "A time attribute is the column of a table's WATERMARK, or a computed column AS PROCTIME(), as it is: a CAST, or "
    "another computation, turns it into a plain value."
)
_BEHIND_A_RANK = (
    "Rows that others may replace have none. Keep the first of each key to come: ROW_NUMBER() OVER (PARTITION BY … "
    "ORDER BY p) = 1, where p is a column AS PROCTIME()."
)
_OF_FLINK = frozenset({"FROM_CHANGELOG", "TO_CHANGELOG", "ML_PREDICT", "ML_EVALUATE", "VECTOR_SEARCH", "SNAPSHOT"})
_TABLE_COLUMNS = ("window_start", "window_end", "window_time")
_GROUP_COLUMNS = ("__hw_w_start", "__hw_w_end", "__hw_w_time")
_BOUND = timestamp(3).not_null()
_LONGEST = 1 << 53
Arguments = Mapping[str, exp.Expr]


def function_name(tree: exp.Expr) -> str:
    """Of a call that has no class of its own."""
    if not isinstance(tree, exp.Anonymous):
        return ""
    return str(tree.this.name if isinstance(tree.this, exp.Identifier) else tree.this).upper()


def no_table_function(call: exp.Expr, locate: Locate) -> SqlError:
    """For a call in FROM that is none of those above, and none of the user's."""
    name = function_name(call)
    if name in _OF_FLINK:
        hint = "'headwater docs limits' lists what queries can do."
        return SqlError(f"The table function {name} is not supported.", position=locate(call), hint=hint)
    hint = did_you_mean(name, WINDOW_FUNCTIONS)
    if not is_unknown(name):
        hint = f"{name} gives a value for each row: it stands in SELECT."
    how = f"CREATE FUNCTION {name.lower()} AS 'module.function' LANGUAGE PYTHON: see 'headwater docs functions-python'."
    return SqlError(f"There is no table function {name}.", position=locate(call), hint=hint or how)


def window_table(
    call: exp.Expr, planned: Callable[[exp.Table | exp.Subquery], n.Node], locate: Locate
) -> n.WindowTable:
    """What a window function in FROM gives; `planned` is the table, or the query, that it is given."""
    name = function_name(call)
    arguments = _named(name, call, WINDOW_FUNCTIONS[name], locate)
    data = arguments["DATA"]
    if not isinstance(data, exp.Table | exp.Subquery):
        fact = f"The first argument of {name} is a table, TABLE t, or a query in parentheses."
        raise SqlError(fact, position=locate(data))
    partition = data.args.get("partition")
    plain = data.copy()
    plain.set("partition", None)
    node = planned(plain)
    time = _described_column(arguments["TIMECOL"], name, locate)
    scope = Scope(tuple(ScopeColumn(data.name, c.name, c.name, c.type) for c in node.columns))
    by = _partition(name, partition, scope, locate) if partition is not None else ()
    spec = _spec(name, arguments, locate)
    return _window_table(node, _time_column(time, name, node, scope, locate), replace(spec, by=by), call, locate)


@dataclass(frozen=True)
class EmitRules:
    """What `table.exec.emit.*` says: whether results of open windows are emitted, and for how many milliseconds those
    of closed windows are updated."""

    early: bool = False
    lateness: int = 0

    @staticmethod
    def of(settings: SessionOptions) -> EmitRules:
        late, lateness = settings["table.exec.emit.late-fire.enabled"], settings["table.exec.emit.allow-lateness"]
        if late and not lateness:
            raise ValidationError(
                "'table.exec.emit.late-fire.enabled' requires 'table.exec.emit.allow-lateness'.",
                hint="Set it to how long windows are kept after their end, for example '1 min'.",
            )
        early = settings["table.exec.emit.early-fire.enabled"]
        return EmitRules(early, lateness // timedelta(milliseconds=1) if late else 0)


@dataclass(frozen=True)
class GroupWindow:
    """TUMBLE, HOP or SESSION in GROUP BY: the node below the aggregation, and what stands for the functions."""

    node: n.WindowTable
    call: exp.Expr

    @staticmethod
    def find(groups: Sequence[exp.Expr], node: n.Node, scope: Scope, locate: Locate) -> GroupWindow | None:
        found = [tree for tree in groups if function_name(tree) in GROUP_FUNCTIONS]
        if not found:
            return None
        if len(found) > 1:
            raise SqlError("GROUP BY takes one window function.", position=locate(found[1]))
        (call,) = found
        name = function_name(call)
        arguments = _named(name, call, GROUP_FUNCTIONS[name], locate)
        spec = replace(_spec(name, arguments, locate), by=None)
        time = _time_column(arguments["TIMECOL"], name, node, scope, locate)
        return GroupWindow(_window_table(node, time, spec, call, locate, _GROUP_COLUMNS), call)

    def scope(self, scope: Scope) -> Scope:
        return Scope((*scope.columns, *(ScopeColumn("", c.name, c.name, c.type) for c in self.node.added)))

    def groups(self, trees: Sequence[exp.Expr]) -> list[exp.Expr]:
        """The groups with the columns of the window in the place of its function."""
        parts = [[_column(c.name, tree) for c in self.node.added] if tree is self.call else [tree] for tree in trees]
        return [tree for part in parts for tree in part]

    def replaced(self, tree: exp.Expr) -> exp.Expr:
        """The tree with columns in the place of TUMBLE_START(…) and its kin."""
        name, start, end, time = function_name(self.call), *(c.name for c in self.node.added)
        columns = {"START": start, "END": end, "ROWTIME": time, "PROCTIME": time}
        of = [repr(argument) for argument in self.call.expressions]

        def column_of(node: exp.Expr) -> exp.Expr:
            window, _, part = function_name(node).rpartition("_")
            # TUMBLE_START belongs to a window of the same arguments, as written; another one would be another
            # grouping.
            same = window == name and part in columns and [repr(a) for a in node.expressions] == of
            return _column(columns[part], node) if same else node

        return tree.copy().transform(column_of)


def check_session(node: n.Node, groups: Sequence[str]) -> None:
    """Raises unless the sessions of a table function are those of the groups."""
    session = node.window.session if node.window is not None else None
    if session is None or session.by is None or set(session.by) == set(groups):
        return
    by, grouped = (", ".join(names) or "nothing" for names in (session.by, groups))
    raise ValidationError(
        "Sessions must be grouped by what they are partitioned by.",
        detail=f"SESSION has PARTITION BY {by}; GROUP BY has {grouped} beside the window.",
        hint="Use the same columns in both.",
    )


def _column(name: str, at: exp.Expr) -> exp.Expr:
    column = exp.column(exp.to_identifier(name, quoted=True))
    column.meta.update(at.meta)
    return column


def _named(name: str, call: exp.Expr, expected: Sequence[str], locate: Locate) -> Arguments:
    """The arguments by their names, whether they are given by place or by name."""
    given = call.expressions
    named = [argument for argument in given if isinstance(argument, exp.Kwarg)]
    if named and len(named) < len(given):
        raise SqlError(f"The arguments of {name} are all named, or none is.", position=locate(call))
    if named:
        found = {str(argument.this.name).upper(): argument.expression for argument in named}
        unknown = next((key for key in found if key not in expected), None)
        if unknown is not None:
            hint = did_you_mean(unknown, expected) or f"It has {', '.join(expected)}."
            raise SqlError(f"{name} has no argument {unknown}.", position=locate(call), hint=hint)
    else:
        found = dict(zip(expected, given, strict=False))
    missing = [key for key in expected if key not in found and key != "OFFSET"]
    if missing or len(given) > len(expected):
        usage = f"{name}({', '.join(expected)})"
        raise SqlError(f"{name} takes other arguments: {usage}.", position=locate(call))
    return found


def _described_column(tree: exp.Expr, name: str, locate: Locate) -> exp.Expr:
    """The column in DESCRIPTOR(…)."""
    if function_name(tree) != "DESCRIPTOR" or len(tree.expressions) != 1:
        raise SqlError(f"{name} takes its time column as DESCRIPTOR(column).", position=locate(tree))
    column: exp.Expr = tree.expressions[0]
    return column


def _time_column(tree: exp.Expr, name: str, node: n.Node, scope: Scope, locate: Locate) -> str:
    compiled = compile_expression(tree, scope, locate)
    if compiled.column is None or compiled.column not in node.times:
        raise SqlError(
            f"The window function {name} requires a time attribute, but {compiled.text} is "
            f"{compiled.type.as_nullable()}.",
            position=locate(tree),
            hint=_BEHIND_A_RANK if _loses_its_time(node) else _TIME_ATTRIBUTE,
        )
    return compiled.column


def _loses_its_time(node: n.Node) -> bool:
    return any(isinstance(below, n.Rank) and below.closes is None and below.input.times for below in n.walk(node))


def _partition(name: str, partition: exp.Expr, scope: Scope, locate: Locate) -> tuple[str, ...]:
    if name != "SESSION":
        raise SqlError(f"{name} takes no PARTITION BY.", position=locate(partition), hint="GROUP BY the columns.")
    found = [compile_expression(tree, scope, locate) for tree in partition.expressions]
    for expression, tree in zip(found, partition.expressions, strict=True):
        if expression.column is None:
            raise SqlError("PARTITION BY of SESSION takes columns.", position=locate(tree))
    return tuple(e.column for e in found if e.column is not None)


def _spec(name: str, arguments: Arguments, locate: Locate) -> n.WindowSpec:
    sizes = {key: _millis(tree, name, locate) for key, tree in arguments.items() if key not in {"DATA", "TIMECOL"}}
    for key, size in sizes.items():
        if key != "OFFSET" and not 0 < size < _LONGEST:
            raise SqlError(f"The {key} of {name} must be longer than zero.", position=locate(arguments[key]))
    size = sizes.get("SIZE", sizes.get("GAP", 0))
    slide = sizes.get("SLIDE", sizes.get("STEP", size))
    if name == "CUMULATE" and size % slide:
        raise SqlError(
            f"CUMULATE requires that its size is an integral multiple of its step, but they are {size} ms and "
            f"{slide} ms.",
            position=locate(arguments["SIZE"]),
        )
    # An offset shifts the grid of windows, so whole units of it change nothing; a negative one becomes positive.
    unit = slide if name == "HOP" else size
    return n.WindowSpec(name, size, slide, sizes.get("OFFSET", 0) % unit)


def _millis(tree: exp.Expr, name: str, locate: Locate) -> int:
    compiled = compile_expression(tree, Scope(()), locate)
    micros = compiled.literal
    if compiled.type.name != "INTERVAL DAY" or not isinstance(micros, int) or micros % 1000:
        raise SqlError(
            f"The sizes of {name} are intervals of days to milliseconds: this is {compiled.text}.",
            position=locate(tree),
            hint="For example: INTERVAL '10' MINUTE.",
        )
    return micros // 1000


def _window_table(
    node: n.Node, time: str, spec: n.WindowSpec, call: exp.Expr, locate: Locate, names: Sequence[str] = _TABLE_COLUMNS
) -> n.WindowTable:
    kind = next(c.type for c in node.columns if c.name == time)
    taken = next((name for name in names if name in node.names), None)
    if taken is not None:
        raise SqlError(
            f"The input of {spec.function} has a column '{taken}' already.",
            position=locate(call),
            hint=f"Give it another name in a query around it: SELECT {taken} AS ….",
        )
    types = (_BOUND, _BOUND, SqlType(kind.name, precision=3, nullable=False))
    added = tuple(n.Column(name, kind) for name, kind in zip(names, types, strict=True))
    return n.WindowTable((*node.columns, *added), node, time, spec, node.times[time])
