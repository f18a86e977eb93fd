"""Operators of random queries that hold other queries, or read one twice: subqueries, LATERAL, WITH, several tables."""

from __future__ import annotations

from query_parts import ARRAY, LITERALS, NUMBER, Parts, Query


class NestedQueries(Parts):
    """`other` is another input, `on_pairs` columns of two inputs with the same type."""

    def other(self, made: Query) -> Query:
        raise NotImplementedError

    def on_pairs(self, left: Query, right: Query) -> list[tuple[str, str]]:
        return [(a, b) for a in left.comparable for b in right.of(left.columns[a])]

    def _maybe(self, chance: float, text: str) -> str:
        return text if self.random.random() < chance else ""

    def nested(self, made: Query) -> Query | None:
        """IN and EXISTS inside of IN and EXISTS."""
        middle, inner = self.other(made), self.other(made)
        outer_pairs, inner_pairs = self.on_pairs(made, middle), self.on_pairs(middle, inner)
        if not outer_pairs or not inner_pairs:
            return None
        (a, b), (c, d) = self.random.choice(outer_pairs), self.random.choice(inner_pairs)
        first, second = (self.random.choice(["", "NOT "]) for _ in range(2))
        more = self._maybe(0.5, f" AND {self.condition(inner, 'q')}")
        second = self.random.choice(
            [
                f"s.{c} {second}IN (SELECT q.{d} FROM {{2}} AS q)",
                f"{second}EXISTS (SELECT 1 FROM {{2}} AS q WHERE q.{d} = s.{c}{more})",
            ]
        )
        condition = self.random.choice(
            [
                f"t.{a} {first}IN (SELECT s.{b} FROM {{1}} AS s WHERE {second})",
                f"{first}EXISTS (SELECT 1 FROM {{1}} AS s WHERE s.{b} = t.{a} AND {second})",
            ]
        )
        around = ["{0}", "{0}", "({0} OR {1})", "CASE WHEN {1} THEN {0} ELSE FALSE END", "({0}) IS NOT TRUE"]
        condition = self.random.choice(around).replace("{1}", self.condition(made)).replace("{0}", condition, 1)
        text = f"SELECT * FROM {{0}} AS t WHERE {condition}"
        return self.made("nested subqueries", made, text, made.columns, middle, inner)

    def rows_in(self, made: Query) -> Query | None:
        """Rows of two values in a query."""
        other = self.other(made)
        pairs = self.on_pairs(made, other)
        if len(pairs) < 2:
            return None
        (a, b), (c, d) = self.random.sample(pairs, 2)
        word = self.random.choice(["IN", "NOT IN"])
        where = self._maybe(0.5, f" WHERE {self.condition(other, 's')}")
        text = f"SELECT * FROM {{0}} AS t WHERE (t.{a}, t.{c}) {word} (SELECT s.{b}, s.{d} FROM {{1}} AS s{where})"
        return self.made(f"row {word.lower()}", made, text, made.columns, other)

    def in_having(self, made: Query) -> Query | None:
        other = self.other(made)
        if not other.of(NUMBER):
            return None
        group, number = self.random.choice(made.comparable), self.random.choice(other.of(NUMBER))
        word = self.random.choice(["", "NOT "])
        condition = self.random.choice(
            [
                f"COUNT(*) {word}IN (SELECT s.{number} FROM {{1}} AS s)",
                f"COUNT(*) >= (SELECT MAX(s.{number}) FROM {{1}} AS s)",
                f"{word}EXISTS (SELECT 1 FROM {{1}} AS s WHERE {self.condition(other, 's')})",
            ]
        )
        (call, kind), name, value = self.call(made), self.name("g"), self.name("n")
        text = f"SELECT t.{group} AS {name}, {call} AS {value} FROM {{0}} AS t GROUP BY t.{group} HAVING {condition}"
        return self.made("subquery in having", made, text, {name: made.columns[group], value: kind}, other)

    def lateral(self, made: Query) -> Query | None:
        """The first rows of another query, or an aggregate of it, for every row."""
        other = self.other(made)
        pairs = self.on_pairs(made, other)
        if not pairs or other.of(ARRAY):
            return None
        (a, b), column, name = self.random.choice(pairs), self.random.choice(other.comparable), self.name("l")
        kind = other.columns[column]
        where = f"s.{b} = t.{a}" + self._maybe(0.4, f" AND {self.condition(other, 's')}")
        if self.random.random() < 0.5:
            order = self.order(other, self.random.sample(other.comparable, len(other.comparable)), "s")
            value, more = f"s.{column}", f" ORDER BY {order} LIMIT {self.random.randint(1, 2)}"
        else:
            function, more = self.random.choice(["COUNT", "MAX", "MIN"]), ""
            value, kind = f"{function}(s.{column})", NUMBER if function == "COUNT" else kind
        query = f"SELECT {value} AS {name} FROM {{1}} AS s WHERE {where}{more}"
        join, on = self.random.choice([("CROSS JOIN", ""), ("LEFT JOIN", " ON TRUE")])
        columns = {c: made.columns[c] for c in made.comparable}
        shown = ", ".join(f"t.{c}" for c in columns)
        text = f"SELECT {shown}, l.{name} FROM {{0}} AS t {join} LATERAL ({query}) AS l{on}"
        return self.made("lateral", made, text, {**columns, name: kind}, other)

    def with_twice(self, made: Query) -> Query | None:
        """A query that is read twice, once with a condition."""
        (a, b), common = self.random.choice(self.on_pairs(made, made)), self.name("common")
        x, y = self.random.choice(made.comparable), self.random.choice(made.comparable)
        left, right = self.name("w"), self.name("w")
        kind = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        filtered = f"(SELECT * FROM {common} AS t WHERE {self.condition(made)})"
        shown = f"SELECT t.{x} AS {left}, s.{y} AS {right}"
        text = f"WITH {common} AS {{0}} {shown} FROM {common} AS t {kind} {filtered} AS s ON t.{a} = s.{b}"
        return self.made("with", made, text, {left: made.columns[x], right: made.columns[y]})

    def comma_list(self, made: Query) -> Query | None:
        """Three tables whose conditions are in WHERE."""
        second, third = self.other(made), self.other(made)
        pairs, more_pairs = self.on_pairs(made, second), self.on_pairs(second, third)
        if not pairs or not more_pairs:
            return None
        (a, b), (c, d) = self.random.choice(pairs), self.random.choice(more_pairs)
        tables = {"t": made, "s": second, "q": third}
        chosen = {self.name("k"): (alias, self.random.choice(one.comparable)) for alias, one in tables.items()}
        where = f"t.{a} = s.{b} AND s.{c} = q.{d}"
        if self.random.random() < 0.4:
            where = f"({where} AND {self.condition(made)}) OR ({where} AND {self.condition(third, 'q')})"
        elif self.random.random() < 0.4:
            where += f" AND {self.condition(second, 's')}"
        shown = ", ".join(f"{alias}.{column} AS {name}" for name, (alias, column) in chosen.items())
        columns = {name: tables[alias].columns[column] for name, (alias, column) in chosen.items()}
        text = f"SELECT {shown} FROM {{0}} AS t, {{1}} AS s, {{2}} AS q WHERE {where}"
        return self.made("comma list", made, text, columns, second, third)

    def total_join(self, made: Query) -> Query | None:
        """With the one row of an aggregate."""
        other = self.other(made)
        if not other.of(NUMBER) or not made.of(NUMBER):
            return None
        name, number = self.name("m"), self.random.choice(made.of(NUMBER))
        join = self.random.choice(["CROSS JOIN", "LEFT JOIN", "JOIN"])
        on = "" if join == "CROSS JOIN" else self.random.choice([" ON TRUE", f" ON t.{number} < s.{name}"])
        total = f"{self.random.choice(['MAX', 'COUNT', 'MIN'])}(q.{self.random.choice(other.of(NUMBER))})"
        query = f"SELECT {total} AS {name} FROM {{1}} AS q[[| HAVING COUNT(*) > 0]]"  # of no rows there is no result
        text = f"SELECT t.*, s.{name} AS {name} FROM {{0}} AS t {join} ({query}) AS s{on}"
        return self.made("join of a total", made, text, {**made.columns, name: NUMBER}, other)

    def using(self, made: Query) -> Query | None:
        other = self.other(made)
        common = [c for c in made.comparable if other.columns.get(c) == made.columns[c]]
        if not common:
            return None
        chosen = self.random.choice(common)
        left, right = ([c for c in one.comparable if c != chosen] for one in (made, other))
        if not left or not right:
            return None
        x, y = self.random.choice(left), self.random.choice(right)
        names = [self.name("u") for _ in range(3)]
        kind = self.random.choice(["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
        shown = f"SELECT {chosen} AS {names[0]}, t.{x} AS {names[1]}, s.{y} AS {names[2]}"
        text = f"{shown} FROM {{0}} AS t {kind} {{1}} AS s USING ({chosen})"
        columns = dict(zip(names, (made.columns[chosen], made.columns[x], other.columns[y]), strict=True))
        return self.made(f"{kind.lower()} using", made, text, columns, other)

    def cube(self, made: Query) -> Query | None:
        """GROUPING SETS, and their numbers."""
        groups = self.some(made.comparable, 1, 2)
        if len(groups) < 2:
            return None
        a, b = groups
        by = ["CUBE (t.{0}, t.{1})", "ROLLUP (t.{0}, t.{1})", "t.{0}, ROLLUP (t.{1})", "GROUPING SETS ((t.{0}), ())"]
        grouped = self.random.choice(by).format(a, b)
        items = {self.name("g"): (f"t.{a}", made.columns[a]), self.name("m"): (f"GROUPING(t.{a})", NUMBER)}
        if f"t.{b})" in grouped:
            items[self.name("m")] = (f"GROUPING(t.{b}) * 2 + GROUPING(t.{a})", NUMBER)
        items[self.name("n")] = self.call(made)
        literal = self.random.choice(LITERALS[made.columns[a]])
        # Of no rows at all a stream has no result.
        having = "COUNT(*) > 0" + self._maybe(0.5, f" AND (t.{a} IS NULL OR t.{a} = {literal})")
        shown = ", ".join(f"{value} AS {name}" for name, (value, _) in items.items())
        text = f"SELECT {shown} FROM {{0}} AS t GROUP BY {grouped} HAVING {having}"
        return self.made("grouping sets", made, text, {name: kind for name, (_, kind) in items.items()})
