"""Random queries over time: windows, sessions and interval joins."""

from __future__ import annotations

from dataclasses import replace

from query_parts import NUMBER, TEXT, TIME, Parts, Query, side


def window_query(parts: Parts) -> Query:
    return _Windows(parts).query()


class _Windows:
    """Queries over windows of event time: their results come when the windows close."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.random = parts, parts.random

    def query(self) -> Query:
        rule = self.random.choice(
            [self._aggregate, self._session, self._rank, self._join, self._join_groups, self._cascade, self._interval]
        )
        return replace(rule(), timed=True)

    def _windowed(self) -> Query:
        """The rows of the table in their windows."""
        size, slide = self.random.choice([(15, 15), (10, 10), (20, 10)])
        call = f"HOP(TABLE evt, DESCRIPTOR(ts), INTERVAL '{slide}' MINUTE, INTERVAL '{size}' MINUTE)"
        if size == slide:
            call = f"TUMBLE(TABLE evt, DESCRIPTOR(ts), INTERVAL '{size}' MINUTE)"
        bucket = f"time_bucket(INTERVAL {slide} MINUTE, ts, TIMESTAMP '1970-01-01')"
        shifted = (
            f"SELECT *, {bucket} - unnest(range({size // slide})) * INTERVAL {slide} MINUTE AS window_start FROM evt"
        )
        duck = f"SELECT *, window_start + INTERVAL {size} MINUTE AS window_end FROM ({shifted})"
        columns = {"k": TEXT, "v": NUMBER, "w": NUMBER, "ts": TIME, "window_start": TIME, "window_end": TIME}
        return Query(f"SELECT {', '.join(columns)} FROM TABLE({call})", duck, columns, ("windows",))

    def _aggregate(self) -> Query:
        made = self._windowed()
        by = ["window_start", "window_end", *(["k"] if self.random.random() < 0.7 else [])]
        items = {self.parts.name("g"): (f"t.{name}", made.columns[name]) for name in by}
        plain = replace(made, columns={name: made.columns[name] for name in ("k", "v", "w")})
        for _ in range(self.random.randint(1, 3)):
            items[self.parts.name("n")] = self.parts.call(plain)
        shown = ", ".join(f"{value} AS {name}" for name, (value, _) in items.items())
        text = f"SELECT {shown} FROM {{0}} AS t GROUP BY {', '.join(f't.{name}' for name in by)}"
        return self.parts.made("window aggregate", made, text, {n: k for n, (_, k) in items.items()})

    def _session(self) -> Query:
        made = Query("SELECT * FROM evt", "SELECT * FROM evt", {"k": TEXT, "v": NUMBER, "w": NUMBER})
        gap = self.random.choice([1, 3])
        call, kind = self.parts.call(made)
        table = f"TABLE(SESSION(TABLE evt PARTITION BY k, DESCRIPTOR(ts), INTERVAL '{gap}' MINUTE)) AS t"
        items = f"t.k AS k, window_start AS a, window_end AS b, {side(call, 0)} AS n"
        flink = f"SELECT {items} FROM {table} GROUP BY t.k, window_start, window_end"
        before = "lag(ts) OVER (PARTITION BY k ORDER BY ts)"
        marked = f"SELECT *, CASE WHEN ts <= {before} + INTERVAL {gap} MINUTE THEN 0 ELSE 1 END AS fresh FROM evt"
        numbered = f"SELECT *, sum(fresh) OVER (PARTITION BY k ORDER BY ts) AS session FROM ({marked})"
        bounds = f"min(ts) AS a, max(ts) + INTERVAL {gap} MINUTE AS b"
        duck = f"SELECT t.k AS k, {bounds}, {side(call, 1)} AS n FROM ({numbered}) AS t GROUP BY t.k, session"
        return Query(flink, duck, {"k": TEXT, "a": TIME, "b": TIME, "n": kind}, ("session",))

    def _ranked(self, made: Query, start: str, end: str) -> Query:
        number = self.parts.name("rn")
        names = self.random.sample(list(made.columns), len(made.columns))
        order = self.parts.order(made, names)
        window = f"PARTITION BY t.{start}, t.{end} ORDER BY {order}"
        inner = f"SELECT t.*, ROW_NUMBER() OVER ({window}) AS {number} FROM {{0}} AS t"
        limit = self.random.randint(1, 3)
        text = f"SELECT {', '.join(made.columns)} FROM ({inner}) AS r WHERE {number} <= {limit}"
        return self.parts.made("window rank", made, text, made.columns)

    def _rank(self) -> Query:
        return self._ranked(self._windowed(), "window_start", "window_end")

    def _cascade(self) -> Query:
        made = self._aggregate()
        start, end = list(made.columns)[:2]
        return self._ranked(made, start, end)

    def _join(self) -> Query:
        made = self._windowed()
        columns = {"k1": TEXT, "v1": NUMBER, "t1": TIME, "k2": TEXT, "v2": NUMBER}
        shown = "t.k AS k1, t.v AS v1, t.window_start AS t1, s.k AS k2, s.v AS v2"
        kind = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        more = self.random.choice(["", " AND t.w <= s.w"])
        on = f"t.k = s.k AND t.window_start = s.window_start AND t.window_end = s.window_end{more}"
        text = f"SELECT {shown} FROM {{0}} AS t {kind} (SELECT * FROM {{1}} AS q WHERE q.v > 0) AS s ON {on}"
        return self.parts.made("window join", made, text, columns, made)

    def _join_groups(self) -> Query:
        """Two aggregations over one table, which is read once for both."""
        made = self._windowed()
        plain = replace(made, columns={name: made.columns[name] for name in ("k", "v", "w")})
        calls = [self.parts.call(plain) for _ in range(2)]
        groups = "t.k, t.window_start, t.window_end"
        sides = [
            f"(SELECT t.k AS k, t.window_start AS s, t.window_end AS e, {call} AS n FROM {{{place}}} AS t{where} "
            f"GROUP BY {groups})"
            for place, ((call, _), where) in enumerate(zip(calls, ("", " WHERE t.v > 0"), strict=True))
        ]
        kind = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        text = (
            f"SELECT a.k AS k1, a.s AS t1, a.n AS n1, b.k AS k2, b.n AS n2 FROM {sides[0]} AS a "
            f"{kind} {sides[1]} AS b ON a.k = b.k AND a.s = b.s AND a.e = b.e"
        )
        columns = {"k1": TEXT, "t1": TIME, "n1": calls[0][1], "k2": TEXT, "n2": calls[1][1]}
        return self.parts.made("window join of groups", made, text, columns, made)

    def _interval(self) -> Query:
        made = Query("SELECT * FROM evt", "SELECT * FROM evt", {"k": TEXT, "v": NUMBER, "ts": TIME})
        low, high = self.random.choice([(-5, 5), (0, 10), (-10, -1)])
        kind = self.random.choice(["JOIN", "LEFT JOIN", "FULL JOIN"])
        on = f"t.v = s.w AND s.ts BETWEEN t.ts + INTERVAL '{low}' MINUTE AND t.ts + INTERVAL '{high}' MINUTE"
        text = f"SELECT t.k AS k1, t.v AS v1, s.k AS k2, s.w AS w2 FROM {{0}} AS t {kind} {{1}} AS s ON {on}"
        return self.parts.made("interval join", made, text, {"k1": TEXT, "v1": NUMBER, "k2": TEXT, "w2": NUMBER}, made)
