"""What random queries are made of: columns, conditions, values and calls, each as Flink's SQL and as DuckDB's."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

NUMBER, TEXT, DECIMAL, ARRAY, TIME = "BIGINT", "STRING", "DECIMAL(10, 2)", "ARRAY<BIGINT>", "TIMESTAMP(3)"

_ROW = {"id": NUMBER, "k": TEXT, "v": NUMBER, "w": NUMBER, "arr": ARRAY}
BASES = {
    "ups": _ROW,
    "two": {"a": TEXT, "b": NUMBER, "x": NUMBER, "d": DECIMAL},
    "ins": _ROW,
    "cdc": {"id": NUMBER, "k": TEXT, "v": NUMBER, "d": DECIMAL},
}
LITERALS = {
    NUMBER: ["0", "1", "2"],
    TEXT: ["'a'", "'b'"],
    DECIMAL: ["1.50", "0.00"],
    TIME: ["TIMESTAMP '2024-01-01 00:30:00'"],
}


@dataclass(frozen=True)
class Query:
    """`columns` have names and types. Both texts can stand in parentheses behind FROM."""

    flink: str
    duck: str
    columns: dict[str, str]
    operators: tuple[str, ...] = ()
    timed: bool = False

    def of(self, *types: str) -> list[str]:
        return [name for name, kind in self.columns.items() if kind in types]

    @property
    def comparable(self) -> list[str]:
        return self.of(NUMBER, TEXT, DECIMAL, TIME)


@dataclass
class Parts:
    """Chooses parts of queries. `most` is how many operators a query has at most."""

    random: Random
    most: int = 4
    _numbers: int = field(default=0)

    def name(self, stem: str) -> str:
        self._numbers += 1
        return f"{stem}{self._numbers}"

    def made(self, name: str, made: Query, text: str, columns: dict[str, str], *others: Query) -> Query:
        """`text` has {0}, {1} for the inputs; [[flink|duck]] where the two differ."""
        inputs = (made, *others)
        operators = (*(o for one in inputs for o in one.operators), name)
        flink = side(text, 0).format(*(f"({one.flink})" for one in inputs))
        duck = side(text, 1).format(*(f"({one.duck})" for one in inputs))
        return Query(flink, duck, columns, operators, any(one.timed for one in inputs))

    def some(self, names: list[str], least: int = 1, most: int = 9) -> list[str]:
        count = self.random.randint(least, min(most, len(names)))
        chosen = self.random.sample(names, count)
        return [name for name in names if name in chosen]

    def condition(self, made: Query, alias: str = "t") -> str:
        if self.random.random() < 0.3:
            return self._other_condition(made, alias)
        name = self.random.choice(made.comparable)
        one = f"{alias}.{name}"
        kind = made.columns[name]
        literal = self.random.choice(LITERALS[kind])
        same = [f"{alias}.{other}" for other in made.of(kind) if other != name]
        operator = self.random.choice(["=", "<>", "<", "<=", ">", ">="])
        choices = [f"{one} {operator} {literal}", f"{one} {operator} {literal}", f"{one} IS NOT NULL", f"{one} IS NULL"]
        choices += [f"{one} {operator} {other}" for other in same]
        choices.append(f"NOT ({one} {operator} {literal})")
        simple = self.random.choice(choices)
        if self.random.random() < 0.25:
            return f"({simple} {self.random.choice(['AND', 'OR'])} {self.condition(made, alias)})"
        return simple

    def _other_condition(self, made: Query, alias: str) -> str:
        """One of those that may be unknown in other ways than a comparison."""
        name = self.random.choice(made.comparable)
        one, kind = f"{alias}.{name}", made.columns[name]
        values = LITERALS[kind] + [f"{alias}.{other}" for other in made.of(kind)]
        a, b, c = (self.random.choice(values) for _ in range(3))
        no, true = self.random.choice(["", "NOT "]), self.random.choice(["TRUE", "FALSE"])
        choices = [
            f"{one} {no}BETWEEN {a} AND {b}",
            f"{one} {no}IN ({a}, {b}, {c})",
            f"{one} IS {no}DISTINCT FROM {a}",
            f"({one} < {a}) IS {no}{true}",
            f"CASE {one} WHEN {a} THEN {true} WHEN {b} THEN FALSE ELSE TRUE END",
            f"COALESCE({one} = {a}, {true})",
            f"NULLIF({one}, {a}) = {b}",
            f"NOT ({one} = {a} AND {self.condition(made, alias)})",
            f"({one} = {a} OR {one} = {b}) AND ({one} = {a} OR {self.condition(made, alias)})",
        ]
        if kind == TEXT:
            choices += [f"{one} {no}LIKE '{self.random.choice(['a%', '%b', '_'])}'", f"UPPER({one}) = 'A'"]
        if kind == NUMBER:
            choices += [f"{one} + 1 > {a}", f"-{one} < {a}", f"MOD({one}, 2) = 1", f"CAST({one} AS STRING) = '1'"]
        return f"({self.random.choice(choices)})"

    def value(self, made: Query) -> tuple[str, str]:
        """An expression over `t` and its type."""
        name = self.random.choice(list(made.columns))
        kind, one = made.columns[name], f"t.{name}"
        choices = [one]
        if kind == NUMBER:
            choices += [f"{one} * 2", f"COALESCE({one}, 0)", f"CASE WHEN {self.condition(made)} THEN {one} END"]
            choices += [f"{one} + t.{other}" for other in made.of(NUMBER)]
        if kind == TEXT:
            choices += [f"COALESCE({one}, 'z')", f"{one} || '!'"]
            choices.append(f"CASE WHEN {self.condition(made)} THEN {one} ELSE 'n' END")
        return self.random.choice(choices), kind

    def call(self, made: Query) -> tuple[str, str]:
        only = f" FILTER (WHERE {self.condition(made)})" if self.random.random() < 0.2 else ""
        column = self.random.choice(made.comparable)
        one, kind = f"t.{column}", made.columns[column]
        calls = [("COUNT(*)", NUMBER), (f"COUNT({one})", NUMBER), (f"COUNT(DISTINCT {one})", NUMBER)]
        # Values that several filters count are counted before the shuffle.
        filtered = f"COUNT(DISTINCT {one}) FILTER (WHERE {self.condition(made)})"
        calls.append((f"{filtered} * 100 + COUNT(DISTINCT {one})", NUMBER))
        calls += [(f"MIN({one})", kind), (f"MAX({one})", kind)] * 2
        calls += [(f"COUNT(DISTINCT t.{array})", NUMBER) for array in made.of(ARRAY)]
        if kind == NUMBER:
            calls += [(f"SUM({one})", kind), (f"SUM(DISTINCT {one})", kind), (f"AVG({one})", kind)]
        call, kind = self.random.choice(calls)
        if "AVG" in call:  # of whole numbers it is a whole number
            return f"[[{call}{only}|CAST(trunc({call}{only}) AS BIGINT)]]", kind
        # DuckDB's sum of BIGINT is wider.
        return (f"{call}{only}" if "SUM" not in call else f"[[{call}{only}|CAST({call}{only} AS BIGINT)]]"), kind

    def order(self, made: Query, names: list[str], alias: str = "t") -> str:
        parts = []
        for name in names:
            how = self.random.choice(["", " DESC"])
            nulls = self.random.choice([" NULLS FIRST", " NULLS LAST"])
            parts.append(f"{alias}.{name}{how}{nulls}")
        return ", ".join(parts)


def side(text: str, number: int) -> str:
    """Of [[a|b]] the one or the other; also where one stands in the other's place of an earlier choice."""
    while "[[" in text:
        start = text.rindex("[[")
        end = text.index("]]", start)
        text = text[:start] + text[start + 2 : end].split("|", 1)[number] + text[end + 2 :]
    return text
