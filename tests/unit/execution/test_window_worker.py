"""Rows that are added up by window where they are read, compared with a plain loop over all rows: whatever is refused
by column readers, late, cut into chunks and batches, or without a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple
from unittest import mock

import pyarrow as pa
import pytest

from headwater.changelog.conditions import ColumnRef, Compare, Literal
from headwater.changelog.local_windows import END, START, LocalWindows
from headwater.changelog.operator import OWN_WATERMARK
from headwater.changelog.preaggregate import PartialAggregate, PreAggregation
from headwater.connectors.runtime import PLACE, ReadColumns
from headwater.execution import packed_rows
from headwater.execution.packed_rows import PACKED, PackedRead, PackedRows
from headwater.execution.window_worker import WindowBranch, WindowTask, branch_column
from headwater.execution.worker import INPUT, ReadTask, TaskBatch, input_column

MILLI = 1000
DELAY = 2 * MILLI
TIME = pa.timestamp("us")
READ = pa.schema([("__who", pa.string()), ("__n", pa.int64()), ("__ts", TIME), ("__refused", pa.bool_())])
ROWS = pa.schema([("who", pa.string()), ("n", pa.int64()), ("ts", TIME)])


class Row(NamedTuple):
    partition: int
    who: str
    n: int
    ts: int | None
    refused: bool


class Kind(NamedTuple):
    """Lengths of time in milliseconds."""

    slide: int
    span: int
    size: int
    paned: bool
    lateness: int = 0

    @property
    def windows(self) -> LocalWindows:
        own = ((OWN_WATERMARK, OWN_WATERMARK),) if self.paned else ()
        parts = (PartialAggregate("rows", "rows"), PartialAggregate("total", "sum", "n"))
        groups = PreAggregation((("who", "who"), (START, START), *own), parts)
        lengths = (self.slide, self.span, self.size)
        slide, span, size = (length * MILLI for length in lengths)
        where = Compare(">", ColumnRef("n"), Literal(0, pa.int64()))
        return LocalWindows(
            "ts", ("ts", -DELAY), slide, span, size, 3 * MILLI, self.paned, self.lateness * MILLI, groups, where
        )


KINDS = {
    "tumble": Kind(10, 10, 10, paned=False),
    "tumble, late by 4": Kind(10, 10, 10, paned=False, lateness=4),
    "hop": Kind(5, 5, 15, paned=True),
    "cumulate": Kind(5, 20, 20, paned=True),
}


class Batch:
    """What tasks know of their batch."""

    def __init__(self, rows: list[Row], watermarks: dict[str, int]) -> None:
        self.rows, self.known = rows, watermarks
        self.splits, self.attempt = [[["all"]]], "1"

    def watermarks_of(self, source: int, prefix: str) -> dict[str, int]:
        return {place.removeprefix(prefix): watermark for place, watermark in self.known.items()}


class Reports(dict[tuple[str, ...], int]):
    def add(self, report: dict[tuple[str, ...], int]) -> None:
        self.update(report)


def _rows(random: Random) -> list[Row]:
    """Time goes on, and single rows come late."""
    clock, found = [0, 0, 0], []
    odd = random.choice([0, 0.03, 0.5])
    for _ in range(random.randrange(60)):
        partition = random.randrange(3)
        clock[partition] += random.randrange(4) * MILLI
        ts = None if random.random() < 0.05 else clock[partition] - random.choice([0, 0, 0, 2, 9, 30]) * MILLI
        found.append(Row(partition, random.choice("ab"), random.randrange(-1, 5), ts, random.random() < odd))
    # A task reads one partition after the other.
    return sorted(found, key=lambda row: row.partition)


def _expected(kind: Kind, rows: list[Row], marks: dict[int, int]) -> tuple[Counter[Any], Counter[Any], int]:
    counts, totals, late = Counter[Any](), Counter[Any](), 0
    for row in rows:
        if row.ts is None:
            continue
        own = marks.get(row.partition)
        start = (row.ts - 3 * MILLI) // (kind.slide * MILLI) * kind.slide * MILLI + 3 * MILLI
        end = (row.ts - 3 * MILLI) // (kind.span * MILLI) * kind.span * MILLI + (3 + kind.size) * MILLI
        allowed = (kind.lateness - 1) * MILLI
        if row.n > 0 and own is not None and end + allowed <= own:
            late += 1
        elif row.n > 0:
            partly = kind.paned and own is not None and start + kind.slide * MILLI + allowed <= own
            counts[row.who, start, end, own if partly else None] += 1
            totals[row.who, start, end, own if partly else None] += row.n
        marks[row.partition] = max(marks.get(row.partition, row.ts - DELAY), row.ts - DELAY)
    return counts, totals, late


def _played(kind: Kind, batch: Batch, random: Random, reports: Reports) -> pa.Table:
    """What one task does, with what Spark does between its reader and the rest."""
    own = [pa.field(OWN_WATERMARK, TIME)] if kind.paned else []
    groups = [ROWS.field("who"), (START, TIME), *own, ("rows", pa.int64()), ("total", pa.int64()), (END, TIME)]
    given = pa.schema([*ROWS, *READ, ("partition", pa.int64())])
    names = {"who": "__who", "n": "__n", "ts": "__ts"}
    packed = PackedRows.of(ReadColumns(names, "__refused", ("partition",), lambda frame, _: frame), given)

    def reader(splits: Any) -> Iterator[pa.RecordBatch]:
        size = random.choice([1, 4, 100])
        for start in range(0, len(batch.rows), size):
            yield _given(batch.rows[start : start + size], given)

    read = PackedRead(ReadTask(0, reader), packed, "__refused", given.append(pa.field(PACKED, pa.binary())))
    # The same windows once, or as one of two branches.
    branches = random.choice([1, 2])
    names = [(number, name) for number in range(branches) for name in kind.windows.columns]
    columns = packed.computing({branch_column(number, name): ColumnRef(name) for number, name in names})
    branch = WindowBranch(kind.windows, "op", pa.schema(groups))
    task = WindowTask(0, "t:", columns, (branch,) * branches, reports)  # type: ignore[arg-type]
    with mock.patch.object(TaskBatch, "current", staticmethod(lambda: batch)):
        rows = pa.Table.from_batches(list(read([pa.RecordBatch.from_pydict({"id": [0]})])), read.output)
        named = [PLACE if name == "partition" else name for name in rows.column_names]
        decoded = rows.rename_columns(named).drop_columns(READ.names)
        batches = decoded.to_batches(max_chunksize=random.choice([1, 5, 1000]))
        found = list(task(batches))
    if branches == 1:
        return pa.Table.from_batches(found, branch.output)
    parts = [
        [pa.RecordBatch.from_struct_array(b.column(input_column(i))) for b in found if b.column(INPUT)[0].as_py() == i]
        for i in range(2)
    ]
    assert parts[0] == parts[1]
    return pa.Table.from_batches(parts[1], branch.output)


def _given(rows: list[Row], schema: pa.Schema) -> pa.RecordBatch:
    whole = [[row.who for row in rows], [row.n for row in rows], [row.ts for row in rows]]
    read = [[None if row.refused else v for row, v in zip(rows, column, strict=True)] for column in whole]
    columns = [*whole, *read, [row.refused or None for row in rows], [row.partition for row in rows]]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
    )


@pytest.fixture(autouse=True)
def _few_bytes_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are far beyond a few rows are near."""
    monkeypatch.setattr(packed_rows, "_VALUE_BYTES", 200)
    monkeypatch.setattr(packed_rows, "_BYTES_AT_ONCE", 1500)
    monkeypatch.setattr(packed_rows, "ARROW_ROWS", 5)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_groups_and_late_rows_do_not_depend_on_what_is_refused_or_where_batches_end(kind: Kind) -> None:
    for seed in range(30):
        random = Random(seed)
        marks: dict[int, int] = {}
        known: dict[str, int] = {}
        for _ in range(3):
            rows, reports = _rows(random), Reports()
            made = _played(kind, Batch(rows, known), random, reports)
            counts, totals, late = _expected(kind, rows, marks)
            found, summed = Counter[Any](), Counter[Any]()
            for group in made.cast(
                pa.schema([f.with_type(pa.int64()) if f.type == TIME else f for f in made.schema])
            ).to_pylist():
                key = (group["who"], group[START], group[END], group.get(OWN_WATERMARK))
                found[key] += group["rows"]
                summed[key] += group["total"]
            known |= {where[-1]: mark for where, mark in reports.items() if where[1] == "watermark"}
            assert (found, summed) == (counts, totals), f"seed {seed}"
            assert sum(mark for where, mark in reports.items() if where[1] == "late") == late, f"seed {seed}"
            assert known == {f"t:{place}": mark // MILLI for place, mark in marks.items()}, f"seed {seed}"


def test_instants_of_rows_that_spark_has_decoded_are_those_of_packed_rows() -> None:
    """Spark gives them in the session's time zone, and rows of both kinds are added up together."""
    utc, local = pa.timestamp("us", "UTC"), pa.timestamp("us", "Europe/Berlin")
    read = pa.schema([("__at", utc), ("partition", pa.int64())])
    packed = PackedRows.of(ReadColumns({"at": "__at"}, "__refused", ("partition",), lambda frame, _: frame), read)
    value = packed.packed(pa.RecordBatch.from_arrays([pa.array([1], utc), pa.array([0])], schema=read)).to_pybytes()
    columns = [pa.array([None, 2], local), pa.array([None, 0]), pa.array([value, None], pa.binary())]
    given = pa.RecordBatch.from_arrays(columns, names=["at", PLACE, PACKED])
    rows = pa.concat_tables([pa.Table.from_batches([batch]) for batch in packed.unpacked([given])])
    assert rows.column("at").combine_chunks().equals(pa.chunked_array([pa.array([1, 2], utc)]).combine_chunks())
