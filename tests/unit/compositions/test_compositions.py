"""Queries of up to four operators over histories of inserts, updates, deletes and tombstones, cut into batches and
restarted at random: after every batch the result is what DuckDB computes from the rows that are there.

The plan is the real one, lowered by the real code to the real operators (see `played_job`); Spark, Kafka and files are
left out. `HEADWATER_COMPOSITIONS=5000` plays so many histories in a long run, and `HEADWATER_SEED=17` one alone.
"""

from __future__ import annotations

import os
from collections import Counter
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from histories import COMPUTED_EVENTS, EVENTS, KAFKA, SCHEMAS, SCRIPT, UPDATED_EVENTS, UPSERT, Tables
from played_job import CONNECTION, Job
from query_parts import Query
from random_queries import Generator

from headwater.changelog.kinds import DELETE, INSERT, KIND, UPDATE_AFTER
from headwater.plan import nodes as n
from headwater.session import Session

BATCHES = 4
USUAL = 40
Row = tuple[Any, ...]


class Sink:
    """A reader of the result. With a key: of the last change per key."""

    def __init__(self, key: tuple[str, ...], plan: n.Write) -> None:
        self.key = key
        self.stateless = not any(node.stateful for node in n.walk(plan))
        self.rows: Counter[Row] = Counter()
        self.by_key: dict[Row, Row] = {}

    def apply(self, changes: pa.Table) -> None:
        kinds = changes.column(KIND).to_pylist() if KIND in changes.column_names else [INSERT] * changes.num_rows
        names = [name for name in changes.column_names if name != KIND]
        rows = [tuple(map(_plain, row.values())) for row in changes.select(names).to_pylist()]
        if self.key:
            self._upsert(kinds, rows, [names.index(column) for column in self.key])
            return
        for kind, row in zip(kinds, rows, strict=True):
            self.rows[row] += 1 if kind in (INSERT, UPDATE_AFTER) else -1
        gone = [row for row, count in self.rows.items() if count < 0]
        assert not gone, f"retracted, but not there: {gone}"

    def _upsert(self, kinds: list[int], rows: list[Row], places: list[int]) -> None:
        keys = [tuple(row[place] for place in places) for row in rows]
        twice = [key for key, count in Counter(keys).items() if count > 1]
        # Of rows that are only inserted the last one of a key counts.
        assert set(kinds) <= {INSERT} or not twice, f"more than one change of a key in a batch: {twice}"
        for kind, key, row in zip(kinds, keys, rows, strict=True):
            if kind in (INSERT, UPDATE_AFTER):
                self.by_key[key] = row
            else:
                assert kind == DELETE
                # Without state nobody knows that a key which comes and goes within a batch was not there before.
                assert key in self.by_key or self.stateless, f"a tombstone for {key}, which is not there"
                self.by_key.pop(key, None)

    def check(self, expected: Counter[Row], names: list[str]) -> None:
        if not self.key:
            assert +self.rows == expected
            return
        by_key: dict[Row, list[Row]] = {}
        for row in expected:
            by_key.setdefault(tuple(row[names.index(column)] for column in self.key), []).append(row)
        assert set(self.by_key) == set(by_key)
        wrong = {key: (row, by_key[key]) for key, row in self.by_key.items() if row not in by_key[key]}
        assert not wrong, f"not rows of the result: {wrong}"


class Retracting(Sink):
    """With a key, and every change of its rows. The order between keys, and so between tasks, does not count."""

    def _upsert(self, kinds: list[int], rows: list[Row], places: list[int]) -> None:
        counts = Counter(self.by_key.values())
        for kind, row in zip(kinds, rows, strict=True):
            counts[row] += 1 if kind in (INSERT, UPDATE_AFTER) else -1
        if set(kinds) <= {INSERT}:  # of rows that are only inserted the last one of a key counts
            self.by_key |= {tuple(row[place] for place in places): row for row in rows}
            return
        wrong = {row: count for row, count in counts.items() if count not in (0, 1)}
        assert not wrong, f"retracted, but not there, or there twice: {wrong}"
        alive = [row for row, count in counts.items() if count]
        self.by_key = {tuple(row[place] for place in places): row for row in alive}
        assert len(self.by_key) == len(alive), "several rows of a key"


class Composition:
    """One seed: a query, a sink, and a history."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.query: Query = Generator(self.random).query()
        while not self.query.comparable:
            self.query = Generator(self.random).query()
        self.key: tuple[str, ...] = ()
        if self.random.random() < 0.4:
            some = self.random.sample(self.query.comparable, min(len(self.query.comparable), self.random.randint(1, 3)))
            self.key = tuple(some)
        self.changelog = ", 'sink.changelog' = 'retract'" if self.key and self.random.random() < 0.2 else ""
        self.flink, self.duck = self._texts()
        self.log: list[str] = []

    def _texts(self) -> tuple[str, str]:
        if not self.key:
            return self.query.flink, self.query.duck
        present = " AND ".join(f"{column} IS NOT NULL" for column in self.key)
        flink, duck = (f"SELECT * FROM ({text}) AS q WHERE {present}" for text in (self.query.flink, self.query.duck))
        return flink, duck

    @property
    def insert(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.query.columns.items())
        with_ = f"'connector' = 'kafka', {KAFKA}, 'format' = 'json', 'topic' = 'out', 'sink.changelog' = 'retract'"
        if self.key:
            columns += f", PRIMARY KEY ({', '.join(self.key)}) NOT ENFORCED"
            with_ = f"{UPSERT}, 'topic' = 'out'{self.changelog}"
        return f"CREATE TABLE out_ ({columns}) WITH ({with_});\nINSERT INTO out_ {self.flink};"

    def plan(self, session: Session) -> n.Write:
        (plan,) = session.check(self.insert)
        return plan

    def play(self, plan: n.Write) -> None:
        spread = self.random.choice([1 << 31, 1 << 31, 3])
        job = Job(plan, SCHEMAS, self.random, spread)
        tables, sink = Tables(self.random), (Retracting if self.changelog else Sink)(self.key, plan)
        for number in range(BATCHES):
            changes = tables.batch()
            self.log.append(f"batch {number}:\n{_shown(changes)}")
            emitted = job.batch(changes)
            self.log.append(f"emitted:\n{_shown({'out_': emitted})}")
            sink.apply(emitted)
            if not self.query.timed:
                sink.check(self._expected(tables), list(self.query.columns))
            if self.random.random() < 0.3:
                job.restart()
                self.log.append("restart")
        if self.query.timed:
            sink.apply(job.last())
            sink.check(self._expected(tables), list(self.query.columns))

    def _expected(self, tables: Tables) -> Counter[Row]:
        for name, rows in tables.rows().items():
            CONNECTION.register(name, rows)
        found = CONNECTION.execute(self.duck).fetchall()
        return Counter(tuple(map(_plain, row)) for row in found)


def _plain(value: Any) -> Any:
    return tuple(map(_plain, value)) if isinstance(value, list) else value


def _shown(tables: dict[str, pa.Table]) -> str:
    return "\n".join(f"  {name}: {row}" for name, rows in tables.items() for row in rows.to_pylist())


EARLY_AND_LATE = """
SET 'table.exec.emit.early-fire.enabled' = 'true';
SET 'table.exec.emit.late-fire.enabled' = 'true';
SET 'table.exec.emit.allow-lateness' = '5 min';
"""
SESSIONS = (Session(), Session(), Session())
for _session, _script in zip(SESSIONS, (EVENTS, COMPUTED_EVENTS, EVENTS + EARLY_AND_LATE), strict=True):
    _session.sql(SCRIPT + UPDATED_EVENTS + _script)


def played(seed: int) -> str:
    """The operators that were played. A failure has all that is needed to understand it."""
    composition = Composition(seed)
    try:
        composition.play(composition.plan(composition.random.choice(SESSIONS)))
    except Exception as error:
        said = [
            f"{error}\n\nHEADWATER_SEED={seed}",
            composition.insert,
            f"DuckDB: {composition.duck}",
            *composition.log,
        ]
        raise AssertionError("\n".join(said)) from error
    return ", ".join(composition.query.operators)


def _seeds() -> list[Any]:
    if "HEADWATER_SEED" in os.environ:
        return [int(os.environ["HEADWATER_SEED"])]
    count = int(os.environ.get("HEADWATER_COMPOSITIONS", "600"))
    return [*range(USUAL), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(USUAL, count))]


@pytest.mark.parametrize("seed", _seeds())
def test_a_composition_equals_duckdb_after_every_batch(seed: int) -> None:
    played(seed)
