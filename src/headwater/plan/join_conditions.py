"""Two relations and the conditions on their pairs → a Join: which conditions are keys, which one side decides alone,
and which are left for the operator or for a filter above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from sqlglot import exp

from headwater.plan import nodes as n
from headwater.plan.display_names import shown_text
from headwater.plan.join_errors import JoinErrors
from headwater.plan.predicates import COMPARISONS, is_true, unwrapped
from headwater.plan.relation import Locate, Relation, with_expressions
from headwater.plan.timed_joins import Interval, event_time, interval_of, versions
from headwater.sql.expressions import Scope, ScopeColumn, compile_expression, compile_predicate
from headwater.sql.functions.casts import convert
from headwater.sql.functions.comparisons import meeting_type
from headwater.sql.functions.spark_sql import Refused, combine
from headwater.sql.typed import Expr
from headwater.sql.types import BIGINT, BOOLEAN, FRACTIONS

__all__ = ["JoinBuilder", "JoinSettings"]

_FILTERED = {"left": ("inner", "right", "semi"), "right": ("inner", "left", "semi", "anti", "mark")}
"""By which kinds of join the rows of a side that fail a condition are not shown at all."""
_NULLABLE = {"left": ("right", "full"), "right": ("left", "full")}
_NULL_SAFE: dict[type[exp.Expr], bool] = {exp.NullSafeEQ: True, exp.NullSafeNEQ: False}


@dataclass
class JoinSettings:
    """`numbers` makes names of computed columns that are unique in a query."""

    locate: Locate
    without_equality: bool = False
    numbers: Iterator[int] = field(default_factory=count)

    def fresh(self) -> str:
        return f"__hw_j{next(self.numbers)}"


class JoinBuilder:
    """One join. The names of both sides' columns differ, and conditions are bound to them (`expressions.bind`)."""

    def __init__(self, left: Relation, right: Relation, kind: n.JoinKind, settings: JoinSettings) -> None:
        self.left, self.right = left, right
        self.kind = kind
        self.settings = settings
        self.scope = Scope((*left.scope.columns, *right.scope.columns))
        self._added: dict[str, dict[str, Expr]] = {"left": {}, "right": {}}
        self._keys: list[tuple[str, str]] = []
        self._conditions: list[n.Condition] = []
        self._shown: list[str] = []
        self._above: list[exp.Expr] = []
        self._errors = JoinErrors(settings.locate)

    def on(self, conditions: Sequence[exp.Expr], at: exp.Expr) -> Relation:
        """The join of pairs for which all conditions are TRUE."""
        interval = self._interval(conditions)
        for condition in conditions if interval is None else interval.rest:
            if not is_true(condition):
                self._add(condition)
        if not self._keys:
            self._allow_without_equality(at)
        if interval is not None:
            return self._interval_join(interval)
        return self._seen(n.Join(*self._parts(self._sides())))

    def as_of(self, conditions: Sequence[exp.Expr], time: exp.Expr, at: exp.Expr) -> Relation:
        """FOR SYSTEM_TIME AS OF: the right as it was at the time of each row of the left. What a condition says about
        the right is said about the version of that time; an older one does not take its place."""
        for condition in conditions:
            if is_true(condition):
                continue
            compiled = self._compiled(condition)
            # Only the left, and only of an inner join: a filter on the right would remove versions, and let an older
            # one take their place.
            if self.kind == "inner" and compiled.refs and self._side(compiled) == "left":
                self._filter("left", condition)
                continue
            pair = self._equality(condition)
            if pair is not None:
                self._keys.append(pair)
            else:
                self._conditions.append(self._needed_condition(condition))
            self._shown.append(compiled.text)
        return self._versioned(compile_expression(time, self.left.scope, self.settings.locate), at)

    @property
    def _pairs_shown(self) -> bool:
        return self.kind not in ("semi", "anti", "mark")

    def _interval(self, conditions: Sequence[exp.Expr]) -> Interval | None:
        inserts = all(side.node.mode is n.Mode.APPEND for side in (self.left, self.right))
        if not inserts or not self._pairs_shown:
            return None
        return interval_of(
            conditions,
            self.left.node,
            self.right.node,
            lambda tree: compile_expression(tree, self.scope, self.settings.locate),
        )

    def unless_false(self, keys: Sequence[exp.Expr], compared: Sequence[exp.Expr]) -> Relation:
        """NOT IN: pairs for which `keys` are TRUE and the comparisons are all TRUE or unknown."""
        for condition in keys:
            # What only the query inside says can be decided before the join: a row that fails it is not in the query at
            # all.
            if self._side(self._compiled(condition)) == "right":
                self._filter("right", condition)
                continue
            pair = self._equality(condition)
            if pair is not None:
                self._keys.append(pair)
            else:  # a row for which it is unknown is not in the query; only what is compared may be unknown
                self._conditions.append(n.Truth(self._needed_condition(condition)))
            self._shown.append(self._compiled(condition).text)
        for condition in compared:
            self._conditions.append(self._needed_condition(condition))
            self._shown.append(self._compiled(condition).text)
        return self._seen(n.Join(*self._parts(self._sides()), unknown_matches=True))

    def _add(self, tree: exp.Expr) -> None:
        compiled = self._compiled(tree)
        side = self._side(compiled)
        # Below the join it is cheaper, and exact where rows that fail it would not be shown anyhow; of a preserved
        # side they would.
        if side is not None and self.kind in _FILTERED[side]:
            self._filter(side, tree)
            return
        pair = self._equality(tree)
        if pair is not None:
            self._keys.append(pair)
        elif (condition := self._condition(tree)) is not None:
            self._conditions.append(condition)
            self._add_hash_key(tree)
        # For pairs of an inner join a filter above says the same, and Spark can compute anything. An outer join has
        # to know its matches itself.
        elif self.kind == "inner":
            self._above.append(tree)
            return
        else:
            raise self._errors.not_computable(self.kind, tree)
        self._shown.append(compiled.text)

    def _compiled(self, tree: exp.Expr) -> Expr:
        return compile_predicate(tree, self.scope, self.settings.locate)

    def _side(self, compiled: Expr) -> str | None:
        """The only side it reads; without any column it is the right."""
        of_left = compiled.refs & {c.column for c in self.left.scope.columns}
        if of_left and compiled.refs - of_left:
            return None
        return "left" if of_left else "right"

    def _filter(self, side: str, tree: exp.Expr) -> None:
        if side == "left":
            self.left = self.left.where(tree, self.settings.locate)
        else:
            self.right = self.right.where(tree, self.settings.locate)

    def _equality(self, tree: exp.Expr) -> tuple[str, str] | None:
        """The columns of both sides that are compared, if that is all the condition says."""
        if not isinstance(tree, exp.EQ):
            return None
        operands = self._operands(tree, "=")
        # Nested values have no hash that is equal wherever SQL says that they are equal: they cannot be a key of the
        # shuffle.
        if operands is None or next(iter(operands.values())).type.is_nested:
            return None
        return self._column("left", operands["left"]), self._column("right", operands["right"])

    def _add_hash_key(self, tree: exp.Expr) -> None:
        """Values that are not distinct, NULL included, have the same hash: rows meet by it, and the condition decides.
        Not so of fractions, which have two zeros."""
        tree = unwrapped(tree)
        operands = self._operands(tree, "=") if isinstance(tree, exp.NullSafeEQ) else None
        if operands is None or operands["left"].type.is_nested or operands["left"].type.name in FRACTIONS:
            return
        left, right = (self._column(side, _hash(operands[side])) for side in ("left", "right"))
        self._keys.append((left, right))

    def _operands(self, tree: exp.Binary, sign: str) -> dict[str, Expr] | None:
        """The operand of each side, in one type; None if an operand is not of one side alone."""
        first, second = (compile_expression(part, self.scope, self.settings.locate) for part in (tree.left, tree.right))
        sides = (self._side(first), self._side(second))
        if None in sides or sides[0] == sides[1] or not first.refs or not second.refs:
            return None
        try:
            kind = meeting_type([first, second], sign)
        except Refused:
            return None
        return {str(side): convert(value, kind) for side, value in zip(sides, (first, second), strict=True)}

    def _column(self, side: str, value: Expr) -> str:
        """The column of a side that holds the value: its own, or one that is computed before the join."""
        if value.column is not None:
            return value.column
        added = self._added[side]
        # An expression that both a key and a condition use is computed once; a non-deterministic one would give two
        # values.
        known = next((name for name, e in added.items() if e.sql == value.sql and e.deterministic), None)
        name = known or self.settings.fresh()
        added[name] = value
        return name

    def _condition(self, tree: exp.Expr) -> n.Condition | None:
        """What the operator can ask of a pair; None if it would have to compute from columns of both sides."""
        tree = unwrapped(tree)
        compiled = self._compiled(tree)
        side = self._side(compiled)
        if side is not None:
            return n.Flag(self._column(side, compiled))
        if isinstance(tree, exp.And | exp.Or):
            parts = [self._condition(part) for part in (tree.left, tree.right)]
            known = tuple(part for part in parts if part is not None)
            return n.Logic("AND" if isinstance(tree, exp.And) else "OR", known) if len(known) == len(parts) else None
        if isinstance(tree, exp.Not):
            operand = self._condition(tree.this)
            return n.Negation(operand) if operand is not None else None
        if isinstance(tree, exp.Between) and not tree.args.get("symmetric"):
            # BETWEEN as its two comparisons: each of them may be about columns of both sides, which the operator can
            # compare, but not compute.
            low = exp.GTE(this=tree.this.copy(), expression=tree.args["low"].copy())
            high = exp.LTE(this=tree.this.copy(), expression=tree.args["high"].copy())
            return self._condition(exp.And(this=low, expression=high))
        return self._comparison(tree)

    def _comparison(self, tree: exp.Expr) -> n.Condition | None:
        sign = COMPARISONS.get(type(tree)) or ("=" if type(tree) in _NULL_SAFE else None)
        if sign is None or not isinstance(tree, exp.Binary):
            return None
        operands = self._operands(tree, sign)
        if operands is None or operands["left"].type.is_nested:
            return None
        flipped = self._side(compile_expression(tree.left, self.scope, self.settings.locate)) == "right"
        columns = [self._column(side, operands[side]) for side in ("left", "right")]
        first, second = reversed(columns) if flipped else columns
        if type(tree) in _NULL_SAFE:
            same = n.Comparison("IS NOT DISTINCT FROM", first, second)
            return same if _NULL_SAFE[type(tree)] else n.Negation(same)
        return n.Comparison(sign, first, second)

    def _needed_condition(self, tree: exp.Expr) -> n.Condition:
        condition = self._condition(tree)
        if condition is None:
            raise self._errors.not_computable(self.kind, tree)
        return condition

    def _interval_join(self, interval: Interval) -> Relation:
        times = (interval.left_time, interval.right_time, interval.low, interval.high)
        return self._seen(n.IntervalJoin(*self._parts(self._sides()), *times))

    def _sides(self) -> tuple[n.Node, n.Node]:
        """Both sides, with the columns that are computed for the join."""
        left = with_expressions(self.left.node, self._added["left"])
        return left, with_expressions(self.right.node, self._added["right"])

    def _parts(
        self, sides: tuple[n.Node, n.Node]
    ) -> tuple[tuple[n.Column, ...], n.Node, n.Node, n.JoinKind, n.Key, n.Key, n.Condition | None, str]:
        """Columns, inputs, kind, keys, condition and text of the node."""
        shown = sides if self._pairs_shown else sides[:1]
        columns = tuple(
            replace(c, type=c.type.as_nullable()) if self.kind in _NULLABLE[side] else c
            for side, node in zip(("left", "right"), shown, strict=False)
            for c in node.columns
        )
        if self.kind == "mark":
            columns = (*columns, n.Column(self.settings.fresh(), BOOLEAN.not_null()))
        condition = n.Logic("AND", tuple(self._conditions)) if len(self._conditions) > 1 else None
        left_keys, right_keys = (tuple(pair[place] for pair in self._keys) for place in (0, 1))
        names = {**sides[0].display_names, **sides[1].display_names}
        single = self._conditions[0] if self._conditions else None
        text = shown_text(" AND ".join(self._shown), names)
        return columns, *sides, self.kind, left_keys, right_keys, condition or single, text

    def _seen(self, node: n.Node) -> Relation:
        types = {c.name: c.type for c in node.columns}
        visible = (*self.left.scope.columns, *(self.right.scope.columns if self._pairs_shown else ()))
        if self.kind == "mark":  # nobody can name it, nor does a star show it
            name = node.columns[-1].name
            visible = (*visible, ScopeColumn("", name, name, types[name], merged=True))
        joined = Relation(node, Scope(tuple(replace(c, type=types[c.column]) for c in visible)))
        for tree in self._above:
            joined = joined.where(tree, self.settings.locate)
        return joined

    def _versioned(self, time: Expr, at: exp.Expr) -> Relation:
        """The join with versions: they are kept by a key of the right; other equalities are conditions."""
        right_keys = [right for _, right in self._keys]
        key = next((key for key in self.right.node.keys if key and set(key) <= set(right_keys)), None)
        if key is None:
            raise self._errors.no_version_key(self.right.node.keys, at)
        # Versions are kept by a key of the right. What else is compared belongs to one version and not to the history
        # of a key.
        keys: dict[str, str] = {}  # a column that is compared twice is a key once
        for left, right in self._keys:
            if right in key and right not in keys:
                keys[right] = left
            else:
                self._conditions.append(n.Comparison("=", left, right))
        self._keys = [(left, right) for right, left in keys.items()]
        if self._is_processing_time(time):
            return self._seen(n.LookupJoin(*self._parts(self._sides())))
        sides = self._sides()
        parts = self._parts((sides[0], versions(sides[1])))
        valid_from = event_time(versions(self.right.node))
        if self.left.node.times.get(time.column or "") is not n.TimeKind.EVENT or valid_from is None:
            raise self._errors.no_time(time.text, valid_from, at)
        assert time.column is not None
        types = time.type, next(c.type for c in self.right.node.columns if c.name == valid_from)
        if types[0].name != types[1].name:
            raise self._errors.other_time_type(time.text, types, at)
        return self._seen(n.TemporalJoin(*parts, time.column, valid_from))

    def _is_processing_time(self, time: Expr) -> bool:
        kind = self.left.node.times.get(time.column or "")
        return kind is n.TimeKind.PROCESSING or time.text.upper() == "PROCTIME()"

    def _allow_without_equality(self, at: exp.Expr) -> None:
        """All rows are then in one state partition. Where one side has at most one row, there is no other way; and
        whether a query has any row at all is known without looking at pairs."""
        single = any(() in side.node.keys for side in (self.left, self.right))
        any_row = not self._pairs_shown and not self._conditions
        if single or any_row or self.settings.without_equality:
            return
        raise self._errors.no_equality(at)


def _hash(value: Expr) -> Expr:
    return combine([value], f"xxhash64({value.sql})", BIGINT.not_null(), f"HASH({value.text})")
