"""Random histories of four tables: the changes of every batch as a source gives them, and the rows that are there."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

from headwater.changelog.kinds import DELETE, INSERT, KIND, KIND_TYPE, UPDATE_AFTER, UPDATE_BEFORE
from headwater.changelog.normalize import OFFSET, ORDER, PARTITION, POSITION
from headwater.connectors.runtime import PLACE

KAFKA = "'properties.bootstrap.servers' = 'localhost:9092'"
UPSERT = f"'connector' = 'upsert-kafka', {KAFKA}, 'key.format' = 'json', 'value.format' = 'json'"
SCRIPT = f"""
CREATE TABLE ups (id BIGINT, k STRING, v BIGINT, w BIGINT, arr ARRAY<BIGINT>, PRIMARY KEY (id) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'ups');
CREATE TABLE two (a STRING, b BIGINT, x BIGINT, d DECIMAL(10, 2), PRIMARY KEY (a, b) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'two');
CREATE TABLE ins (id BIGINT, k STRING, v BIGINT, w BIGINT, arr ARRAY<BIGINT>)
WITH ('connector' = 'kafka', 'topic' = 'ins', {KAFKA}, 'format' = 'json');
CREATE TABLE cdc (id BIGINT, k STRING, v BIGINT, d DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 'cdc', {KAFKA}, 'format' = 'debezium-json');
"""
_TIMED = "k STRING, v BIGINT, w BIGINT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '21' MINUTE"
UPDATED_EVENTS = f"""
CREATE TABLE uevt (id BIGINT, {_TIMED}, PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'uevt');
CREATE TABLE cevt (id BIGINT, {_TIMED}, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 'cevt', {KAFKA}, 'format' = 'debezium-json');
CREATE TABLE versions (id BIGINT, {_TIMED}, PRIMARY KEY (id) NOT ENFORCED) WITH ({UPSERT}, 'topic' = 'versions');
"""
EVENTS = f"""
CREATE TABLE evt ({_TIMED}) WITH ('connector' = 'kafka', 'topic' = 'evt', {KAFKA}, 'format' = 'json');
"""
COMPUTED_EVENTS = f"""
CREATE TABLE raw_evt (
  kind BIGINT, v BIGINT, w BIGINT, facts ROW<k STRING, ts TIMESTAMP(3)>, far TIMESTAMP(3),
  ts AS CASE WHEN kind = 0 THEN facts.ts ELSE far END, WATERMARK FOR ts AS ts - INTERVAL '21' MINUTE
) WITH ('connector' = 'kafka', 'topic' = 'evt', {KAFKA}, 'format' = 'json');
CREATE VIEW evt AS SELECT facts.k AS k, v, w, ts FROM raw_evt WHERE kind < 2;
"""
"""The same rows with an event time that is computed, among others that a view leaves out."""

_ROWS = [("id", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("w", pa.int64()), ("arr", pa.list_(pa.int64()))]
COLUMNS = {
    "ups": pa.schema(_ROWS),
    "two": pa.schema([("a", pa.string()), ("b", pa.int64()), ("x", pa.int64()), ("d", pa.decimal128(10, 2))]),
    "ins": pa.schema(_ROWS),
    "cdc": pa.schema([("id", pa.int64()), ("k", pa.string()), ("v", pa.int64()), ("d", pa.decimal128(10, 2))]),
}
COLUMNS["evt"] = pa.schema([*_ROWS[1:4], ("ts", pa.timestamp("us"))])
KEYS = {"ups": ("id",), "two": ("a", "b"), "cdc": ("id",), "uevt": ("id",)}
_ORDER = [(ORDER, pa.int64()), (PARTITION, pa.int32()), (OFFSET, pa.int64())]
COLUMNS["uevt"] = COLUMNS["cevt"] = COLUMNS["versions"] = pa.schema([_ROWS[0], *COLUMNS["evt"]])
SCHEMAS = {
    "ups": pa.schema([*COLUMNS["ups"], (KIND, KIND_TYPE), *_ORDER]),
    "two": pa.schema([*COLUMNS["two"], (KIND, KIND_TYPE), *_ORDER]),
    "ins": COLUMNS["ins"],
    "cdc": pa.schema([*COLUMNS["cdc"], (KIND, KIND_TYPE), (POSITION, pa.int32()), *_ORDER]),
    "evt": pa.schema([*COLUMNS["evt"], (PLACE, pa.int32())]),
    "uevt": pa.schema([*COLUMNS["uevt"], (KIND, KIND_TYPE), *_ORDER, (PLACE, pa.int32())]),
    "cevt": pa.schema([*COLUMNS["cevt"], (KIND, KIND_TYPE), (POSITION, pa.int32()), *_ORDER, (PLACE, pa.int32())]),
}
SCHEMAS["versions"] = SCHEMAS["uevt"]
_FACTS = pa.struct([("k", pa.string()), ("ts", pa.timestamp("us"))])
SCHEMAS["raw_evt"] = pa.schema(
    [("kind", pa.int64()), *_ROWS[2:4], ("facts", _FACTS), ("far", pa.timestamp("us")), (PLACE, pa.int32())]
)

Row = dict[str, Any]


class Tables:
    """The tables as they are now. `batch` changes them, and answers with the changes."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._offset = 0
        self._batches = 0
        self.live: dict[str, dict[Any, Row]] = {name: {} for name in COLUMNS}

    def rows(self) -> Mapping[str, pa.Table]:
        return {n: pa.Table.from_pylist(list(self.live[n].values()), schema) for n, schema in COLUMNS.items()}

    def batch(self) -> dict[str, pa.Table]:
        """Many changes or none of each table."""
        self._batches += 1
        changes: dict[str, list[Row]] = {name: [] for name in COLUMNS}
        for name in COLUMNS:
            for _ in range(self._random.choice([0, 1, 3, 8, 8, 20])):
                self._offset += 1
                changes[name] += getattr(self, f"_{name}")()
        changes["raw_evt"] = [row for event in changes["evt"] for row in self._raw(event)]
        return {name: pa.Table.from_pylist(rows, SCHEMAS[name]) for name, rows in changes.items()}

    def _ups(self) -> list[Row]:
        return self._upsert("ups", self._plain_row())

    def _two(self) -> list[Row]:
        pick = self._random.choice
        key = {"a": pick("abc"), "b": pick([0, 1, 2])}
        return self._upsert("two", {**key, "x": pick([None, 0, 1, 2, 3]), "d": self._decimal()})

    def _ins(self) -> list[Row]:
        row = self._plain_row()
        self.live["ins"][self._offset] = row
        return [row]

    def _cdc(self) -> list[Row]:
        """A message has a change with the full row before it."""
        pick = self._random.choice
        row = {"id": pick(range(6)), "k": pick(["a", "b", "c", None]), "v": self._number(), "d": self._decimal()}
        return self._changed("cdc", row)

    def _changed(self, name: str, row: Row) -> list[Row]:
        table = self.live[name]
        old = table.pop(row["id"], None)
        if old is not None and self._random.random() < 0.4:
            return [self._placed(old, DELETE, 0)]
        table[row["id"]] = row
        if old is None:
            return [self._placed(row, INSERT, 0)]
        return [self._placed(old, UPDATE_BEFORE, 0), self._placed(row, UPDATE_AFTER, 1)]

    def _evt(self) -> list[Row]:
        """Time goes on from batch to batch; no row is more than twenty minutes behind one that came before, so none has
        a time that the watermark has reached."""
        row = {"k": self._random.choice("ab"), "v": self._number(), "w": self._number(), "ts": self._time()}
        self.live["evt"][self._offset] = row
        return [{**row, PLACE: self._random.randint(0, 1)}]

    def _uevt(self) -> list[Row]:
        row = self._updated_event("uevt")
        if row is None:
            return []
        return [{**change, PLACE: row["id"] % 2} for change in self._upsert("uevt", row)]

    def _cevt(self) -> list[Row]:
        row = self._updated_event("cevt")
        if row is None:
            return []
        return [{**change, PLACE: row["id"] % 2} for change in self._changed("cevt", row)]

    def _versions(self) -> list[Row]:
        """All versions stay, by key and time: of two with the same time the last one."""
        row = {"id": self._random.randint(0, 3), "k": self._random.choice(["a", "b", None]), "v": self._number()}
        row |= {"w": self._number(), "ts": self._time()}
        self.live["versions"][row["id"], row["ts"]] = row
        return [{**self._placed(row, INSERT), PLACE: row["id"] % 2}]

    def _updated_event(self, name: str) -> Row | None:
        """An event in the place of one whose window may still be open; None if there is another one in its place."""
        key = self._random.randrange(12)
        old = self.live[name].get(key if name == "cevt" else (key,))
        if old is not None and old["ts"] < self._first_minute():
            return None
        return {"id": key, "k": self._random.choice("ab"), "v": self._number(), "w": self._number(), "ts": self._time()}

    def _first_minute(self) -> datetime:
        return datetime(2024, 1, 1) + timedelta(minutes=self._batches * 10)  # noqa: DTZ001 - TIMESTAMP has no time zone

    def _time(self) -> datetime:
        return self._first_minute() + timedelta(minutes=self._random.randint(0, 20))

    def _raw(self, event: Row) -> list[Row]:
        """The event with its time in one of two places, and now and then one that the view leaves out."""
        same = {name: event[name] for name in ("v", "w", PLACE)}
        first = {"kind": 0, "facts": {"k": event["k"], "ts": event["ts"]}, "far": None}
        second = {"kind": 1, "facts": {"k": event["k"], "ts": None}, "far": event["ts"]}
        other = {
            "kind": self._random.choice([2, None]),
            "facts": None,
            "far": self._random.choice([self._time(), None]),
        }
        rows = [{**same, **self._random.choice([first, second])}]
        return [*rows, {**same, **other}] if self._random.random() < 0.3 else rows

    def _upsert(self, name: str, row: Row) -> list[Row]:
        """The row of its key now, the same again, or a tombstone, also of a key that is not there."""
        key = tuple(row[column] for column in KEYS[name])
        if self._random.random() < 0.3:
            self.live[name].pop(key, None)
            return [self._placed({column: row[column] for column in KEYS[name]}, DELETE)]
        if self._random.random() < 0.1:
            row = self.live[name].get(key, row)
        self.live[name][key] = row
        return [self._placed(row, INSERT)]

    def _placed(self, row: Row, kind: int, position: int | None = None) -> Row:
        """All messages of a key are in one partition. Their times need not be in order with those of others."""
        partition = len(repr(row.get("id", (row.get("a"), row.get("b"))))) % 2
        placed = {**row, KIND: kind, ORDER: self._offset, PARTITION: partition, OFFSET: self._offset}
        return placed if position is None else {**placed, POSITION: position}

    def _plain_row(self) -> Row:
        pick = self._random.choice
        arrays = [None, [], [1], [0, 2], [1, 1, None]]
        row = {"id": pick(range(8)), "k": pick(["a", "b", "c", None]), "v": self._number(), "w": self._number()}
        return {**row, "arr": pick(arrays)}

    def _number(self) -> int | None:
        return self._random.choice([None, 0, 1, 1, 2, 3, -1])

    def _decimal(self) -> Decimal | None:
        return self._random.choice([None, Decimal("0.00"), Decimal("1.50"), Decimal("-2.25")])
