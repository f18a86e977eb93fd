"""A SELECT at work: a job whose rows are read from here."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.changelog.kinds import INSERT, KIND, SHORT_NAMES
from headwater.dates import FarTime, check_for_pandas, dated_values
from headwater.errors import JobError
from headwater.results.materialized import HeldRows, final, kinds_of
from headwater.results.values import python_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd
    import pyarrow as pa

    from headwater.connectors.result import Channel
    from headwater.execution.job import Job, Progress
    from headwater.plan.nodes import Column
    from headwater.plan.query import PlannedQuery

__all__ = ["Change", "QueryResult", "Row"]

Row = tuple[Any, ...]

_ValuesOf = Callable[["pa.Array", "Column"], list[Any]]

_POLL = 0.05
# A query that does not end counts as caught up if nothing has come for so long.
_IDLE = 2.0
_SHOWN_ROWS = 100


class Change(NamedTuple):
    """`kind` is +I, -U, +U or -D."""

    kind: str
    row: Row


class QueryResult:
    """The rows of a SELECT, read while its job runs: either as changes, one by one, or as the table that the changes
    make up, of which at most `limit` rows are held. A job whose rows nobody reads waits."""

    def __init__(self, query: PlannedQuery, job: Job, channel: Channel, limit: int) -> None:
        self.query = query
        self.job = job
        self.newest: int | None = None  # of a query that only inserts, hold no more than its last rows
        self.changes_read = 0
        self._channel = channel
        self._limit = limit
        self._held: HeldRows | None = None
        self._turn = threading.Lock()  # the table is read while it changes
        self._iterated = self._stopped = False
        self._filling: threading.Thread | None = None
        self._error: Exception | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.query.columns

    @property
    def bounded(self) -> bool:
        """Whether the query ends by itself."""
        return self.query.bounded or self.query.limit is not None

    @property
    def updating(self) -> bool:
        """Whether rows are updated or deleted, not only inserted."""
        return self.query.updating

    @property
    def running(self) -> bool:
        return self.job.running

    def __repr__(self) -> str:
        names = ", ".join(f"{column.name} {column.type.as_nullable()}" for column in self.columns)
        return f"<QueryResult ({names}): {'running' if self.running else 'ended'}>"

    def _repr_html_(self) -> str:
        from headwater.results.html import RUNNING, html_table

        rows, count = self.snapshot(_SHOWN_ROWS)
        return html_table(self.columns, rows[:_SHOWN_ROWS], count, RUNNING if self.running else "")

    def _ipython_display_(self) -> None:
        from headwater.results.notebook import display

        display(self, self)

    def changes(self) -> Iterator[Change]:
        """Every change as it comes; those of a query that only inserts are all +I. With ORDER BY or LIMIT, a query that
        ends has its rows as +I, in order, when it has ended. They can be read once."""
        return self._changes_once(_python_row_values)

    def shown_changes(self) -> Iterator[Change]:
        """The `changes`, with a FarTime where Python does not know a year."""
        return self._changes_once(_shown_values)

    def rows(self) -> list[Row]:
        """The rows of the result. Of a query that ends, when it has ended; else those as of now."""
        return _rows_of(self._table(), self.columns, _python_row_values)

    def shown_rows(self) -> list[Row]:
        """The `rows`, with a FarTime where Python does not know a year."""
        return _rows_of(self._table(), self.columns, _shown_values)

    def to_arrow(self) -> pa.Table:
        """The rows as a table of Arrow."""
        import pyarrow as pa

        table = self._table()
        for place, column in enumerate(self.columns):
            if column.type.name == "TIME":  # which is milliseconds of the day until here
                table = table.set_column(place, column.name, table.column(place).cast(pa.time32("ms")))
        return table

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame of pandas."""
        table = self.to_arrow()
        for column in self.columns:
            for chunk in table.column(column.name).chunks:
                check_for_pandas(chunk, partial(_refuse, column.name))
        return table.to_pandas()

    def show(self, rows: int = _SHOWN_ROWS) -> None:
        """Print the table, at most so many rows of it."""
        from headwater.results.text import print_table

        print_table(self.columns, self.shown_rows(), rows)

    def wait(self, timeout: float | None = None) -> bool:
        """True when the query has ended; raises its error if it failed."""
        thread = self._fill()
        thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not thread.is_alive()

    def snapshot(self, first: int | None = None) -> tuple[list[Row], int]:
        """The `shown_rows` as of now, at least the first so many of them, and how many there are."""
        self._fill()
        with self._turn:
            if self._held is None:
                return [], 0
            cut = self.query.cut_at_end
            count, table = self._held.count, self._held.table(None if cut else first)
        rows = _rows_of(final(table, self.query), self.columns, _shown_values)
        return rows, len(rows) if cut else count

    def stop(self) -> None:
        """End the query now. What has been read stays."""
        self._stopped = True
        self._channel.close()
        self.job.request_stop()
        if self.job.running:
            self.job.spark.sparkContext.cancelJobsWithTag(self._channel.tag)
            self.job.stop()
        shutil.rmtree(self.job.location, ignore_errors=True)

    def _table(self) -> pa.Table:
        if self.bounded:
            self.wait()
        else:
            self._await_first_rows()
        with self._turn:
            # of a query that goes on, nothing may have come yet
            held = self._held or self._empty(self._channel.schema or self._unknown_types())
            return final(held.table(), self.query)

    def _await_first_rows(self) -> None:
        """Until a first batch has been read, or there is none to read."""
        idle = time.monotonic() + _IDLE
        while not self.wait(_POLL):
            progress = self.job.progress()
            if progress.status == "starting" or (progress.lag and not progress.batches):
                idle = time.monotonic() + _IDLE
            elif (progress.batches and self._has_taken(progress)) or time.monotonic() > idle:
                return

    def _has_taken(self, progress: Progress) -> bool:
        """What a batch has brought is in the table: a chunk that is not in the channel may still be on its way."""
        return not self._channel.waiting and (self._held is not None or not progress.rows_out)

    def _fill(self) -> threading.Thread:
        """The thread that takes changes into the table."""
        if self._filling is None:
            if self._iterated:
                raise JobError("This query is read change by change: it has no table.", hint="Run the query again.")
            self._filling = threading.Thread(target=self._take, name=f"{self.job.name}-rows", daemon=True)
            self._filling.start()
        return self._filling

    def _take(self) -> None:
        try:
            for batch in self._batches():
                with self._turn:
                    self._held = self._held or self._empty(batch.schema)
                    self._held.apply(batch)
            with self._turn:
                self._held = self._held or self._empty(self._channel.schema or self._unknown_types())
        except Exception as error:  # noqa: BLE001 - raised again where rows are asked for
            self._error = error

    def _empty(self, schema: pa.Schema) -> HeldRows:
        """Batches do not agree with the plan about what may be NULL."""
        import pyarrow as pa

        fields = [field.with_nullable(True) for field in schema if field.name != KIND]
        return HeldRows(self.query, pa.schema(fields), self._limit, self.newest)

    def _unknown_types(self) -> pa.Schema:
        """The query was stopped before its plan was made."""
        import pyarrow as pa

        return pa.schema([(column.name, pa.null()) for column in self.query.plan.columns])

    def _changes_once(self, values_of: _ValuesOf) -> Iterator[Change]:
        # There is one channel: changes that somebody has taken are gone, and half of them would be a wrong result.
        if self._iterated or self._filling is not None:
            raise JobError("The changes of this query have been read.", hint="Run the query again.")
        self._iterated = True
        cut_at_end = self.query.bounded and self.query.cut_at_end
        return self._final_changes(values_of) if cut_at_end else self._changes(values_of)

    def _changes(self, values_of: _ValuesOf) -> Iterator[Change]:
        for batch in self._batches():
            values = [values_of(batch.column(column.name), column) for column in self.columns]
            for kind, *row in zip(kinds_of(batch), *values, strict=True):
                yield Change(SHORT_NAMES[kind], tuple(row))

    def _final_changes(self, values_of: _ValuesOf) -> Iterator[Change]:
        """Which rows are the first is known only when the last change has been read."""
        self._take()
        if self._error is not None:
            raise self._error
        if self._held is not None:
            for row in _rows_of(final(self._held.table(), self.query), self.columns, values_of):
                yield Change(SHORT_NAMES[INSERT], row)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """All batches up to the end of the job, or up to LIMIT where any rows will do."""
        cuts = self.query.any_rows
        skipped, left = (self.query.offset, self.query.limit) if cuts else (0, None)
        try:
            while (left is None or left > 0) and (batch := self._next()) is not None:
                self.changes_read += batch.num_rows
                rows = batch.slice(skipped, left)
                skipped -= min(skipped, batch.num_rows)
                left = None if left is None else left - rows.num_rows
                yield rows
            if not self._stopped and left != 0:
                self.job.wait()
        finally:
            self.stop()

    def _next(self) -> pa.RecordBatch | None:
        import pyarrow as pa

        while (chunk := self._channel.take(_POLL)) is None:
            if self._stopped or not self.job.running:
                chunk = self._channel.take(0)
                break
        return None if chunk is None else pa.ipc.open_stream(chunk).read_next_batch()


def _rows_of(table: pa.Table, columns: Sequence[Column], values_of: _ValuesOf) -> list[Row]:
    return list(zip(*(values_of(table.column(column.name), column) for column in columns), strict=True))


def _shown_values(values: pa.Array, column: Column) -> list[Any]:
    return python_values(dated_values(values), column.type)


def _python_row_values(values: pa.Array, column: Column) -> list[Any]:
    return python_values(dated_values(values, partial(_refuse, column.name)), column.type)


def _refuse(column: str, value: FarTime) -> None:
    raise JobError(
        f"Column '{column}' has {value}, which Python cannot hold.",
        detail="Python's dates and timestamps are of the years 1 to 9999.",
        hint="In the query, CAST(… AS STRING) makes text of it. to_arrow() has it as it is.",
    )
