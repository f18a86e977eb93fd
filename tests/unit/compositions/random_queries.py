"""Random queries of up to four operators, each as Flink's SQL and as DuckDB's."""

from __future__ import annotations

from collections.abc import Callable

from nested_queries import NestedQueries
from query_parts import ARRAY, BASES, DECIMAL, LITERALS, NUMBER, TEXT, Query
from window_queries import window_query

_FRAMES = [
    "",
    "LAG",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND CURRENT ROW",
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
]


class Generator(NestedQueries):
    """Whole queries: a table, and operators over it."""

    def query(self) -> Query:
        wanted = self.random.randint(1, self.most)
        made = self._base() if self.random.random() < 0.8 else window_query(self)
        while len(made.operators) < wanted:
            rules = [self._select, self._join, self._aggregate, self._rank, self._set, self._semi, self._over]
            rules += [self._unnest, self._join, self._aggregate, self._scalar, self._limit, self._overs, self._lists]
            rules += [self.nested, self.rows_in, self.in_having, self.lateral, self.with_twice, self.comma_list]
            rules += [self.total_join, self.using, self.cube]
            made = self.random.choice(rules)(made) or made
        return made

    def _base(self) -> Query:
        name = self.random.choice(list(BASES))
        return Query(f"SELECT * FROM {name}", f"SELECT * FROM {name}", BASES[name])

    def other(self, made: Query) -> Query:
        """Another input: a table, something small over one, or the very same."""
        chance = self.random.random()
        if chance < 0.2:
            return made
        other = self._base()
        if chance < 0.6:
            rule: Callable[[Query], Query | None] = self.random.choice([self._aggregate, self._select, self._rank])
            return rule(other) or other
        return other

    # operators

    def _select(self, made: Query) -> Query | None:
        items = {self.name("c"): (f"t.{n}", made.columns[n]) for n in self.some(list(made.columns))}
        if self.random.random() < 0.5:
            items[self.name("c")] = self.value(made)
        if not any(kind in LITERALS for _, kind in items.values()):
            return None
        shown = ", ".join(f"{value} AS {name}" for name, (value, _) in items.items())
        where = f" WHERE {self.condition(made)}" if made.comparable and self.random.random() < 0.7 else ""
        distinct = self.random.random() < 0.2 and all(kind != ARRAY for _, kind in items.values())
        text = f"SELECT {'DISTINCT ' if distinct else ''}{shown} FROM {{0}} AS t{where}"
        return self.made("distinct" if distinct else "select", made, text, {n: k for n, (_, k) in items.items()})

    def _equality(self, left: Query, right: Query) -> str | None:
        pairs = self.on_pairs(left, right)
        if not pairs:
            return None
        chosen = self.random.sample(pairs, min(len(pairs), self.random.choice([1, 1, 1, 2])))
        return " AND ".join(f"t.{a} = s.{b}" for a, b in chosen)

    def _on(self, left: Query, right: Query) -> str | None:
        condition = self._equality(left, right)
        if condition is None:
            return None
        pairs = self.on_pairs(left, right)
        if self.random.random() < 0.35:
            a, b = self.random.choice(pairs)
            condition += f" AND t.{a} {self.random.choice(['<', '<=', '<>', '>'])} s.{b}"
        if self.random.random() < 0.15:
            condition += f" AND {self.condition(left, 't')}"
        if self.random.random() < 0.15:
            condition += f" AND {self.condition(right, 's')}"
        return condition

    def _join(self, made: Query) -> Query | None:
        other = self.other(made)
        if self.random.random() < 0.3:
            made, other = other, made
        on = self._on(made, other)
        if on is None:
            return None
        items: dict[str, str] = {}
        shown = []
        for alias, side in (("t", made), ("s", other)):
            for column in self.some(side.comparable, 1, 4) + side.of(ARRAY)[:1]:
                name = self.name("j")
                items[name] = side.columns[column]
                shown.append(f"{alias}.{column} AS {name}")
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        where = ""
        if self.random.random() < 0.3:
            alias, side = self.random.choice([("t", made), ("s", other)])
            where = f" WHERE {self.condition(side, alias)}"
        text = f"SELECT {', '.join(shown)} FROM {{0}} AS t {kind} {{1}} AS s ON {on}{where}"
        return self.made(kind.lower(), made, text, items, other)

    def _semi(self, made: Query) -> Query | None:
        other = self.other(made)
        pairs = self.on_pairs(made, other)
        if not pairs:
            return None
        a, b = self.random.choice(pairs)
        negated = self.random.choice(["", "NOT "])
        if self.random.random() < 0.5:
            inner = f"SELECT s.{b} FROM {{1}} AS s"
            if self.random.random() < 0.4:
                inner += f" WHERE {self.condition(other, 's')}"
            condition = f"t.{a} {negated}IN ({inner})"
        else:
            condition = f"{negated}EXISTS (SELECT 1 FROM {{1}} AS s WHERE {self._on(made, other)})"
        name = f"{negated}{'in' if ' IN ' in condition else 'exists'}".lower()
        if self.random.random() < 0.2:
            shown = self.name("c")
            text = (
                f"SELECT t.*, CASE WHEN {condition} THEN 1 WHEN NOT ({condition}) THEN 0 END AS {shown} FROM {{0}} AS t"
            )
            return self.made(f"{name} as a value", made, text, {**made.columns, shown: NUMBER}, other)
        if self.random.random() < 0.3:
            condition = self.random.choice([f"{condition} OR {self.condition(made)}", f"NOT ({condition})"])
            name = f"{name} in a condition"
        text = f"SELECT * FROM {{0}} AS t WHERE {condition}"
        return self.made(name, made, text, made.columns, other)

    def _scalar(self, made: Query) -> Query | None:
        """A scalar subquery in a condition, correlated or not."""
        other = self.other(made)
        numbers, others = made.of(NUMBER), other.of(NUMBER)
        if not numbers or not others:
            return None
        function = self.random.choice(["MAX", "MIN", "SUM", "COUNT"])
        best = f"SELECT {function}(s.{self.random.choice(others)}) FROM {{1}} AS s"
        pairs = self.on_pairs(made, other)
        if pairs and self.random.random() < 0.5:
            a, b = self.random.choice(pairs)
            best += f" WHERE s.{b} = t.{a}"
        if self.random.random() < 0.4:
            name = self.name("q")
            text = f"SELECT t.*, [[({best})|CAST(({best}) AS BIGINT)]] AS {name} FROM {{0}} AS t"
            return self.made("scalar subquery", made, text, {**made.columns, name: NUMBER}, other)
        operator = self.random.choice(["=", "<", ">="])
        text = f"SELECT * FROM {{0}} AS t WHERE t.{self.random.choice(numbers)} {operator} ({best})"
        return self.made("scalar subquery", made, text, made.columns, other)

    def _aggregate(self, made: Query) -> Query | None:
        groups = self.some(made.comparable, 0 if self.random.random() < 0.1 else 1, 2)
        items = {self.name("g"): (f"t.{g}", made.columns[g]) for g in groups}
        for _ in range(self.random.randint(0 if groups else 1, 3)):
            call, kind = self.call(made)
            items[self.name("n")] = (call, kind)
        shown = ", ".join(f"{value} AS {name}" for name, (value, _) in items.items())
        having = f"COUNT(*) {self.random.choice(['>', '<='])} 1" if self.random.random() < 0.2 else ""
        by = f" GROUP BY {self._grouped(groups)}" if groups else ""
        if not groups:  # of no rows at all a stream has no result
            by = f"[[| HAVING COUNT(*) > 0{f' AND {having}' if having else ''}]]"
            by = by.replace("[[|", f"[[{f' HAVING {having}' if having else ''}|")
        elif having:
            by += f" HAVING {having}"
        text = f"SELECT {shown} FROM {{0}} AS t{by}"
        return self.made("aggregate", made, text, {n: k for n, (_, k) in items.items()})

    def _grouped(self, groups: list[str]) -> str:
        names = ", ".join(f"t.{g}" for g in groups)
        if len(groups) == 1 or self.random.random() < 0.7:
            return names
        return self.random.choice(
            [f"GROUPING SETS (({names}), (t.{groups[0]}))", f"GROUPING SETS ((t.{groups[0]}), (t.{groups[1]}))"]
        )

    def _window(self, made: Query, *, total: bool) -> str | None:
        """With a `total` order only rows that are the same in all columns come in any order."""
        if total and made.of(ARRAY):
            return None
        by = self.some(made.comparable, 0, 1)
        names = self.random.sample(made.comparable, len(made.comparable) if total else 1)
        partition = f"PARTITION BY {', '.join(f't.{b}' for b in by)} " if by else ""
        return f"{partition}ORDER BY {self.order(made, names)}"

    def _rank(self, made: Query) -> Query | None:
        function = self.random.choice(["ROW_NUMBER", "ROW_NUMBER", "RANK", "DENSE_RANK"])
        window = self._window(made, total=function == "ROW_NUMBER")
        if window is None:
            return None
        number = self.name("rn")
        limit = self.random.choice(["= 1", "<= 1", "<= 2", "<= 3", "BETWEEN 2 AND 3"])
        names = list(made.columns)
        columns = dict(made.columns)
        if self.random.random() < 0.5:
            names.append(number)
            columns[number] = NUMBER
        inner = f"SELECT t.*, {function}() OVER ({window}) AS {number} FROM {{0}} AS t"
        text = f"SELECT {', '.join(names)} FROM ({inner}) AS r WHERE {number} {limit}"
        return self.made(f"{function.lower()} {limit}", made, text, columns)

    def _limit(self, made: Query) -> Query | None:
        if made.of(ARRAY):
            return None
        order = self.order(made, self.random.sample(made.comparable, len(made.comparable)))
        offset = self.random.choice(["", "", " OFFSET 1"])
        text = f"SELECT * FROM {{0}} AS t ORDER BY {order} LIMIT {self.random.randint(1, 4)}{offset}"
        return self.made("limit", made, text, made.columns)

    def _over(self, made: Query) -> Query | None:
        window = self._window(made, total=True)
        if window is None or not made.of(NUMBER):
            return None
        column = f"t.{self.random.choice(made.of(NUMBER))}"
        function = self.random.choice(["SUM", "COUNT", "MIN", "MAX", "LAG", "LEAD", "FIRST_VALUE", "LAST_VALUE"])
        first = self.random.choice(["", "UNBOUNDED", "1"])
        frame = f" ROWS BETWEEN {first} PRECEDING AND CURRENT ROW" if first and function not in ("LAG", "LEAD") else ""
        over = f" OVER ({window}{frame})"
        nulls = " IGNORE NULLS" if "_VALUE" in function else ""  # as Flink's always do
        call = f"[[{function}({column}){over}|CAST({function}({column}{nulls}){over} AS BIGINT)]]"
        name = self.name("o")
        text = f"SELECT t.*, {call} AS {name} FROM {{0}} AS t"
        return self.made(f"{function.lower()} over{frame.lower()}", made, text, {**made.columns, name: NUMBER})

    def _overs(self, made: Query) -> Query | None:
        """Several calls over different rows of different windows."""
        windows = [self._window(made, total=True) for _ in range(2)]
        if None in windows or not made.of(NUMBER):
            return None
        items = {self.name("o"): self._over_call(made, str(window)) for window in windows}
        shown = ", ".join(f"{call} AS {name}" for name, call in items.items())
        text = f"SELECT t.*, {shown} FROM {{0}} AS t"
        return self.made("several overs", made, text, {**made.columns, **dict.fromkeys(items, NUMBER)})

    def _over_call(self, made: Query, window: str) -> str:
        column, other = (f"t.{self.random.choice(made.of(NUMBER))}" for _ in range(2))
        partition = f"PARTITION BY t.{self.random.choice(made.comparable)}"
        function = self.random.choice(["SUM", "COUNT", "MIN", "MAX"])
        frame = self.random.choice(_FRAMES)
        if frame == "LAG":
            call = (
                f"{self.random.choice(['LAG', 'LEAD'])}({column}, {self.random.choice(['2', '1, 7'])}) OVER ({window})"
            )
            return f"[[{call}|CAST({call} AS BIGINT)]]"
        if frame.startswith("RANGE BETWEEN 1"):
            descending = self.random.choice(["", " DESC"])
            # Flink has NULL in front, or in this order behind.
            nulls = " NULLS LAST" if descending else " NULLS FIRST"
            order = f"{partition} ORDER BY {other}{descending}"
            return (
                f"[[{function}({column}) OVER ({order} {frame})"
                f"|CAST({function}({column}) OVER ({order}{nulls} {frame}) AS BIGINT)]]"
            )
        call = f"{function}({column}) OVER ({f'{window} {frame}' if frame else partition})"
        return f"[[{call}|CAST({call} AS BIGINT)]]"

    def _lists(self, made: Query) -> Query | None:
        """All values of a group, in order."""
        if not made.of(NUMBER):
            return None
        group, number = self.random.choice(made.comparable), self.random.choice(made.of(NUMBER))
        names = [self.name("g"), self.name("a"), self.name("a")]
        only = f" FILTER (WHERE {self.condition(made)})" if self.random.random() < 0.3 else ""
        call = f"array_agg({self.random.choice(['', 'DISTINCT '])}t.{number}){only}"
        size = f"[[CARDINALITY({call})|len({call})]] AS {names[1]}"
        ordered = f"[[ARRAY_SORT({call})|list_sort({call}, 'ASC', 'NULLS FIRST')]] AS {names[2]}"
        text = f"SELECT t.{group} AS {names[0]}, {size}, {ordered} FROM {{0}} AS t GROUP BY t.{group}"
        return self.made("lists", made, text, dict(zip(names, (made.columns[group], NUMBER, ARRAY), strict=True)))

    def _set(self, made: Query) -> Query | None:
        other = self.other(made)
        names: list[tuple[str, str]] = []
        for kind in (NUMBER, TEXT, DECIMAL):
            names += list(zip(made.of(kind), other.of(kind), strict=False))[: self.random.randint(0, 2)]
        if not names:
            return None
        columns = {self.name("u"): made.columns[a] for a, _ in names}
        left = ", ".join(f"t.{a} AS {name}" for (a, _), name in zip(names, columns, strict=True))
        right = ", ".join(f"s.{b}" for _, b in names)
        function = self.random.choice(["UNION ALL", "UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"])
        text = f"SELECT {left} FROM {{0}} AS t {function} SELECT {right} FROM {{1}} AS s"
        return self.made(function.lower(), made, text, columns, other)

    def _unnest(self, made: Query) -> Query | None:
        arrays = made.of(ARRAY)
        if not arrays:
            return None
        name = self.name("e")
        array = arrays[0]
        kept = made.comparable
        shown = ", ".join(f"t.{n}" for n in kept)
        columns = {**{n: made.columns[n] for n in kept}, name: NUMBER}
        lateral = f"[[UNNEST(t.{array})|LATERAL (SELECT unnest(t.{array}))]] AS u ({name})"
        join, on = self.random.choice([("CROSS", ""), ("LEFT", " ON TRUE")])
        text = f"SELECT {shown}, u.{name} FROM {{0}} AS t {join} JOIN {lateral}{on}"
        return self.made(f"{join.lower()} join unnest", made, text, columns)
