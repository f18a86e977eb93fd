"""Random queries over time: windows, sessions and interval joins."""

from __future__ import annotations

from dataclasses import replace

from query_parts import NUMBER, TEXT, TIME, Parts, Query, side

_SIZES = {
    "TUMBLE": [(10, 10), (15, 15)],
    "HOP": [(10, 20), (5, 15), (4, 10), (12, 8)],
    "CUMULATE": [(5, 15), (10, 10)],
}
"""The slide or step, and the size, in minutes: some are no multiples of the others, some have gaps between them."""


def window_query(parts: Parts) -> Query:
    return _Windows(parts).query()


class _Windows:
    """Queries over windows of event time: their results come when the windows close."""

    def __init__(self, parts: Parts) -> None:
        self.parts, self.random = parts, parts.random

    def query(self) -> Query:
        rules = [self._aggregate, self._session, self._rank, self._join, self._join_groups, self._cascade]
        rule = self.random.choice([*rules, self._interval, self._over, self._as_of])
        return replace(rule(), timed=True)

    def _windowed(self) -> Query:
        """The rows of a table in their windows."""
        table = self.random.choice(["evt", "evt", "uevt", "cevt"])
        function = self.random.choice(["TUMBLE", "HOP", "HOP", "CUMULATE"])
        slide, size = self.random.choice(_SIZES[function])
        lengths = [f"INTERVAL '{minutes}' MINUTE" for minutes in ([size] if function == "TUMBLE" else [slide, size])]
        offset = self.random.choice([0, 0, 3])
        lengths += [f"INTERVAL '{offset}' MINUTE"] if offset else []
        call = f"{function}(TABLE {table}, DESCRIPTOR(ts), {', '.join(lengths)})"
        step = size if function == "CUMULATE" else slide
        bucket = f"time_bucket(INTERVAL {step} MINUTE, ts, TIMESTAMP '1970-01-01 00:0{offset}:00')"
        numbers = f"unnest(range({-(-size // slide)}))"
        if function == "CUMULATE":
            bounds = f"{bucket} AS window_start, {bucket} + (1 + {numbers}) * INTERVAL {slide} MINUTE AS window_end"
        else:
            start = f"{bucket} - {numbers} * INTERVAL {slide} MINUTE"
            bounds = f"{start} AS window_start, {start} + INTERVAL {size} MINUTE AS window_end"
        duck = f"SELECT * FROM (SELECT *, {bounds} FROM {table}) WHERE ts >= window_start AND ts < window_end"
        columns = {"k": TEXT, "v": NUMBER, "w": NUMBER, "ts": TIME, "window_start": TIME, "window_end": TIME}
        return Query(f"SELECT {', '.join(columns)} FROM TABLE({call})", duck, columns, (function.lower(),))

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

    def _over(self) -> Query:
        """In the order of time: rows with the same time are peers."""
        calls = {}
        for _ in range(2):
            first = self.random.choice(["UNBOUNDED", "INTERVAL '5' MINUTE", "INTERVAL '20' MINUTE"])
            partition = self.random.choice(["", "PARTITION BY t.k ", "PARTITION BY t.v, t.k "])
            over = f"OVER ({partition}ORDER BY t.ts RANGE BETWEEN {first} PRECEDING AND CURRENT ROW)"
            call = f"{self.random.choice(['SUM', 'COUNT', 'MIN', 'MAX'])}(t.{self.random.choice('vw')}) {over}"
            calls[self.parts.name("o")] = f"[[{call}|CAST({call} AS BIGINT)]]"
        columns = {"k": TEXT, "v": NUMBER, "w": NUMBER, **dict.fromkeys(calls, NUMBER)}
        shown = ", ".join(f"{call} AS {name}" for name, call in calls.items())
        text = f"SELECT t.k, t.v, t.w, {shown} FROM evt AS t"
        return Query(side(text, 0), side(text, 1), columns, ("over in the order of time",))

    def _as_of(self) -> Query:
        """The version that was valid at the time of a row."""
        kind = self.random.choice(["JOIN", "LEFT JOIN"])
        where = self.random.choice(["", " WHERE t.w > 0", " WHERE s.w > 0"])
        shown = "SELECT t.k AS k1, t.v AS v1, s.k AS k2, s.v AS v2 FROM evt AS t"
        flink = f"{shown} {kind} versions FOR SYSTEM_TIME AS OF t.ts AS s ON t.v = s.id{where}"
        duck = f"{shown} ASOF {kind} versions AS s ON t.v = s.id AND t.ts >= s.ts{where}"
        return Query(flink, duck, {"k1": TEXT, "v1": NUMBER, "k2": TEXT, "v2": NUMBER}, (f"{kind.lower()} as of",))
