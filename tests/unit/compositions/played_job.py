"""A job without Spark, files and Kafka: the plan is lowered by `execution.lowering` itself, on `DuckFrame`s, and its
operators run on state in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from duck_frame import DuckFrame, Engine, Functions
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import DataType, StructType

from headwater.changelog import rank, sorted_groups
from headwater.changelog.columns import flat
from headwater.changelog.conditions import Condition
from headwater.changelog.kinds import KIND
from headwater.changelog.normalize import POSITION
from headwater.changelog.operator import DropsLateRows, Operator
from headwater.connectors import workers
from headwater.connectors.runtime import PLACE, LocalAggregation, ReadColumns, RowOrder
from headwater.execution.lowering import Lowering, accumulators, aggregate, base, branches, over, rows, sets, window
from headwater.execution.watermarks import END, time_of
from headwater.execution.worker import OperatorTask, TaskBatch
from headwater.plan import nodes as n
from headwater.state import compaction
from headwater.state.merge import merged
from headwater.state.runs import Run
from headwater.state.table import StateTable

CONNECTION = duckdb.connect()  # opening one takes longer than most queries
CONNECTION.execute("SET threads = 1; SET preserve_insertion_order = true; SET TimeZone = 'UTC'")

PARTITIONS = 2
"""Of a source with a watermark."""
Rows = Mapping[str, pa.Table]
"""The changes of a batch, by table: its columns, and the hidden ones of its source."""


class Job:
    """`schemas` are the columns of each table with the hidden ones that its source gives."""

    def __init__(self, plan: n.Write, schemas: Mapping[str, pa.Schema], random: Random, spread: int = 1 << 31) -> None:
        self._engine = Engine(CONNECTION, random, spread)
        self._rows: dict[str, pa.Table] = {}
        self.state: dict[tuple[str, int], dict[str, StateTable]] = {}
        self.places: dict[str, int] = {}  # of sources, by the names of their tables
        self.watermarks: dict[int, dict[str, int]] = {}  # by source and partition
        self.times: list[list[int | None]] = []
        self.number = 0
        self.attempt = ""
        self.splits = [[["all"]]] * len(schemas)
        with _without_spark(self):
            lowering = _Lowering(
                None,  # type: ignore[arg-type]  # no rule that is used here asks Spark
                plan,
                _Inputs(self, schemas),  # type: ignore[arg-type]
                (),
                random.choice([1, 2, 3]),
                "",
                self,  # type: ignore[arg-type]  # stages find the state here
            )
            frame = lowering.lower(plan.input)
        kept = [c for c in (*plan.input.names, KIND) if c in frame.columns]
        self._frame = frame.select(*(f"`{name}`" for name in kept))

    def batch(self, changes: Rows) -> pa.Table:
        """What the sink is given of a batch. The watermark of a source is the least of both its partitions after the
        batch before."""
        known = [self.watermarks.get(place, {}).values() for place in self.places.values()]
        return self._batch(changes, [min(of) if len(of) == PARTITIONS else None for of in known])

    def last(self) -> pa.Table:
        """The batch at the end of all input."""
        return self._batch({name: rows.slice(0, 0) for name, rows in self._rows.items()}, [END] * len(self.places))

    def _batch(self, changes: Rows, reached: Sequence[int | None]) -> pa.Table:
        self._rows = dict(changes)
        # Tasks that run later must not see what others report.
        self._known = {place: dict(known) for place, known in self.watermarks.items()}
        before = [now for _, now in self.times] or [None] * len(reached)
        self.times = [[*pair] for pair in zip(before, reached, strict=True)]
        self.number += 1
        with _without_spark(self):
            return self._engine.batch(self._frame)

    def add(self, report: Mapping[tuple[str, ...], int]) -> None:
        """What a task reports: the watermark of a partition, and rows that came too late: there are none."""
        late = {key for key in report if key[1] == "late"}
        assert not late, f"Readers take rows for late that are not: {report}"
        for (*_, source, place), watermark in report.items():
            self.watermarks.setdefault(int(source), {})[place] = watermark

    def watermarks_of(self, source: int, prefix: str) -> dict[str, int]:
        return self._known.get(source, {})

    def files(self, operator: str, partition: int) -> Any:
        """Whether a state partition has anything."""
        return self.state.get((operator, partition))

    def restart(self) -> None:
        """Nothing is left but what is stored, some of it compacted meanwhile."""
        self.state = {
            where: {
                name: StateTable(t.spec, [_stored(run) for run in self._compacted(t)]) for name, t in tables.items()
            }
            for where, tables in self.state.items()
        }

    def _compacted(self, table: StateTable) -> list[Run]:
        start, stop = sorted(self._engine.random.choices(range(len(table.runs) + 1), k=2))
        if stop - start < 2:
            return table.runs
        batches = merged(table.spec, table.runs[start:stop], drop_tombstones=start == 0, chunk_rows=3)
        run = Run(table.spec.run_schema, list(batches))
        return [*table.runs[:start], *([run] if run.rows else []), *table.runs[stop:]]


@dataclass(frozen=True)
class _MemoryStage(OperatorTask):
    """The operator's stage, with `reports` as the job that holds the state."""

    def __call__(self, batches: Any) -> Iterator[pa.RecordBatch]:
        job: Any = self.reports
        received = [batch for batch in batches if batch.num_rows]
        # Processing time stands still, as if the clock had been set back: results must not depend on it.
        time = time_of(job.times, self.sources, 1000, self.delay, job.number)
        for partition, inputs in self._by_partition(received, job, time):
            state = job.state.setdefault((self.name, partition), {t.name: StateTable(t) for t in self.operator.tables})
            if isinstance(self.operator, DropsLateRows):
                changes, late = self.operator.step_with_late(state, inputs, time)
                wrong = [row for rows in late for row in rows.to_pylist()]
                assert not wrong, f"{self.name} takes rows for late that are not: {wrong}"
            else:
                changes = self.operator.step(state, inputs, time)
            yield from changes.cast(self.operator.output).to_batches()


class _Lowering(Lowering):
    time_zone = "UTC"  # there is no Spark to ask

    def scanned(self, scan: Any, plan: Any) -> Any:
        self.noted(scan, plan)
        return plan.frame

    def task_numbers(self, place: int) -> Any:
        return self.inputs.numbers  # type: ignore[attr-defined]

    def _run(self, node: n.Node, frame: Any, operator: Operator, schema: StructType) -> Any:
        """Timed operators are in one task for all state partitions."""
        return super()._run(node, frame.repartition(1) if operator.timed else frame, operator, schema)


class _Inputs:
    """The sources of the job."""

    sources = ()

    def __init__(self, job: Job, schemas: Mapping[str, pa.Schema]) -> None:
        self._job, self._schemas = job, schemas

    @property
    def numbers(self) -> DuckFrame:
        """Of the only task."""
        return self._job._engine.source(pa.schema([("id", pa.int64())]), lambda: pa.table({"id": [0]}))

    def place_of(self, scan: Any) -> int:
        return self._job.places.setdefault(scan.table.name, len(self._job.places))

    def scan(
        self,
        scan: n.Scan,
        local: LocalAggregation | None = None,
        where: Condition | None = None,
        order: RowOrder = "any",
    ) -> _Plan | None:
        if local is not None:
            return None
        name, schema = scan.table.name, self._schemas[scan.table.name]
        ordered = scan.placed or order != "ignored"
        left_out = {PLACE} if ordered else {PLACE, *base.ORDERED_BY}
        kept = [f for f in schema if f.name in scan.names or (f.name.startswith("__") and f.name not in left_out)]
        kept += [schema.field(PLACE)] if scan.placed else []
        job = self._job

        def read() -> pa.Table:
            rows = job._rows[name].combine_chunks()
            if where is not None and scan.mode is n.Mode.APPEND:  # as readers do, where they can
                columns = {column: flat(rows, column) for column in where.columns}
                rows = rows.filter(where.evaluate(columns, rows.num_rows))
            return rows.select([f.name for f in kept])

        return _Plan(job, job._engine.source(pa.schema(kept), read), pa.schema(kept), read)


class _Plan:
    """How a table is read. Of rows with a PLACE some are refused by column readers, now and then."""

    bad_metric = place_prefix = ""

    def __init__(self, job: Job, frame: DuckFrame, rows: pa.Schema, read: Callable[[], pa.Table]) -> None:
        self.frame, self._job, self._rows, self._read = frame, job, rows, read

    @property
    def schema(self) -> StructType:
        return from_arrow_schema(self._columns, prefer_timestamp_ntz=True)

    @property
    def read(self) -> ReadColumns | None:
        names = {name: f"__read_{name}" for name in self._rows.names if name != PLACE}
        read = ReadColumns(names, "__refused", (PLACE,), lambda frame, kept: frame.selectExpr(*self._kept, *kept))
        # A message of changes is several rows, which readers do not make.
        return read if PLACE in self._rows.names and POSITION not in self._rows.names else None

    @property
    def _kept(self) -> list[str]:
        return [f"`{name}`" for name in self._rows.names]

    @property
    def _columns(self) -> pa.Schema:
        """All columns for whoever decodes, and those that were read."""
        read = [f.with_name(f"__read_{f.name}") for f in self._rows if f.name != PLACE]
        return pa.schema([*self._rows, *read, ("__refused", pa.bool_())])

    def reader(self, splits: Any) -> Iterator[pa.RecordBatch]:
        random, rows = self._job._engine.random, self._read().combine_chunks()
        seldom = random.choice([0, 0, 0.02, 0.3])
        for batch in rows.to_batches(max_chunksize=random.choice([1, 3, 100])):
            refused = pa.array([random.random() < seldom or None for _ in range(batch.num_rows)], pa.bool_())
            read = [
                pc.if_else(pc.is_valid(refused), pa.scalar(None, f.type), batch.column(f.name))
                for f in self._rows
                if f.name != PLACE
            ]
            yield pa.RecordBatch.from_arrays([*batch.columns, *read, refused], schema=self._columns)


@contextmanager
def _without_spark(job: Job) -> Iterator[None]:
    """What needs a JVM, in the modules that lower plans. And limits that are far beyond a few rows are near."""
    stages = {"OperatorTask": _MemoryStage, "_tasks_of_frame": lambda _: 1, "planned_once": lambda frame: frame}
    with mock.patch.multiple(base, F=Functions, **stages):
        others = [mock.patch.object(module, "F", Functions) for module in (aggregate, rows, sets, window)]
        others.append(mock.patch.object(TaskBatch, "current", staticmethod(lambda: job)))
        others += [mock.patch.object(module, "DataType", _Types) for module in (over, accumulators)]
        others += [mock.patch.object(workers, "prepare_worker", int)]
        others += [mock.patch.object(module, "divided", _divided) for module in (aggregate, branches)]
        others += [mock.patch.multiple(rank, _LEAST_FIRST=2, _FIRST_PER_RANK=1)]
        others += [mock.patch.multiple(compaction, INLINE_MERGE_ROWS=6), mock.patch.object(sorted_groups, "GROWTH", 2)]
        others.append(mock.patch.dict(base.RULES, {n.Unnest: _unnest, n.Expand: _expand, n.WindowTable: _windows}))
        for one in others:
            one.start()
        try:
            yield
        finally:
            for one in others:
                one.stop()


class _Types:
    @staticmethod
    def fromDDL(ddl: str) -> DataType:  # noqa: N802 - Spark's name
        text = CONNECTION.sql(f"SELECT CAST(NULL AS {_duck_type(ddl)}) AS x").to_arrow_table().schema
        return from_arrow_schema(text, prefer_timestamp_ntz=True).fields[0].dataType


def _duck_type(ddl: str) -> str:
    text = ddl.upper().replace("STRING", "VARCHAR").replace("TIMESTAMP_NTZ", "TIMESTAMP")
    while text.startswith("ARRAY<"):
        text = f"{text[6:-1]}[]"
    return text


def _unnest(lowering: Lowering, node: n.Unnest) -> DuckFrame:
    """Spark's generator has no translation: DuckDB's own."""
    frame: Any = lowering.lower(node.input)
    assert node.collection.type.name == "ARRAY"
    assert node.collection.type.element.name != "ROW"
    elements = frame._engine.spark_text(node.collection.sql)
    if node.outer:
        elements = f"CASE WHEN len({elements}) > 0 THEN {elements} ELSE [NULL] END"
    given = ", ".join(f'"{name}"' for name in node.input.names)
    kind = f", {KIND}" if KIND in frame.columns else ""
    place = f', CAST(generate_subscripts({elements}, 1) AS INT) AS "{node.ordinality}"' if node.ordinality else ""
    assert not (place and node.outer)
    text = f'SELECT {given}, unnest({elements}) AS "{node.elements[0].name}"{place}{kind}, __task FROM {frame.text}'
    return frame._sql(text)


def _expand(lowering: Lowering, node: n.Expand) -> DuckFrame:
    frame: Any = lowering.lower(node.input).drop(*base.ORDERED_BY)
    sets = []
    for number, kept in zip(node.numbers, node.sets, strict=True):
        pairs = zip(node.copies, node.groups, kept, strict=True)
        groups = [f"'{copy.name}': " + (f'"{group}"' if one else "NULL") for copy, group, one in pairs]
        groups.append(f"'{node.columns[-1].name}': CAST({number} AS BIGINT)")
        sets.append("{" + ", ".join(groups) + "}")
    return frame._sql(f"SELECT *, unnest([{', '.join(sets)}], recursive := true) FROM {frame.text}")


def _divided(frame: DuckFrame, parts: Sequence[tuple[str, Sequence[str]]], never_null: str = "") -> DuckFrame:
    selected = [(frame.where(test) if test else frame).selectExpr(*items).text for test, items in parts]
    return frame._sql(" UNION ALL ".join(f"FROM {text}" for text in selected))


def _windows(lowering: Lowering, node: n.WindowTable) -> DuckFrame:
    """Spark's windows are a generator, too."""
    frame: Any = lowering.lower(node.input)
    spec, time = node.spec, f'"{node.time}"'
    slide = spec.size if spec.function == "TUMBLE" else spec.slide
    step, size = _millis(slide), _millis(spec.size)
    first = f"TIMESTAMP '1970-01-01' + {_millis(spec.offset)}"
    pane, whole = (f"time_bucket({length}, {time}, {first})" for length in (step, size))
    number = "0" if node.paned else f"unnest(range({-(-spec.size // slide)}))"
    starts, ends = f"{pane} - __hw_number * {step}", f"__hw_start + {size}"
    if spec.function == "CUMULATE":
        starts = pane if node.paned else whole
        ends = f"{whole} + {size}" if node.paned else f"__hw_start + (__hw_number + 1) * {step}"
    elif spec.function == "SESSION":
        starts, number = time, "0"
    names = ", ".join(
        f'"{name}"' for name in (*node.input.names, *base.HIDDEN, "__task") if name in [*frame.columns, "__task"]
    )
    numbered = f"(SELECT *, {number} AS __hw_number FROM {frame.text} WHERE {time} IS NOT NULL)"
    started = f"(SELECT *, {starts} AS __hw_start FROM {numbered})"
    last = time if spec.function == "SESSION" else f"{ends} - INTERVAL '1 milliseconds'"
    start, end, moment = (f'"{c.name}"' for c in node.added)
    inside = "TRUE" if spec.function == "SESSION" or node.paned else f"{time} < {ends}"
    bounds = f"__hw_start AS {start}, {ends} AS {end}, {last} AS {moment}"
    return frame._sql(f"SELECT {names}, {bounds} FROM {started} WHERE {inside}")


def _millis(length: int) -> str:
    return f"INTERVAL '{length} milliseconds'"


def _stored(run: Run) -> Run:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, run.schema) as writer:
        for batch in run.batches:
            writer.write_batch(batch)
    reader = pa.ipc.open_file(sink.getvalue())
    return Run(reader.schema, [reader.get_batch(n) for n in range(reader.num_record_batches)])


__all__ = ["Job", "Rows"]
