"""What the statements of a script gave."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headwater.errors import ValidationError
from headwater.sql.types import STRING

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from headwater.execution.job import Job
    from headwater.plan.nodes import Column
    from headwater.results.query import Change, QueryResult, Row
    from headwater.sql.statements import Statement

__all__ = ["Result", "Results"]

_TEXTS = (("plan",), ("create statement",))
"""Headers of what is text with a layout, and no table."""


@dataclass(frozen=True)
class Result:
    """What one statement gave: rows of text (SHOW, DESCRIBE, EXPLAIN), the query of a SELECT, jobs that were started,
    notes (an option that has no effect) and warnings."""

    statement: Statement
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    jobs: tuple[Job, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    query: QueryResult | None = None


class Results(list[Result]):
    """One result per statement. What is asked of all together is answered by the last one that has rows."""

    def rows(self) -> list[Row]:
        """Of a SELECT that ends, when it has ended; of one that does not, as of now."""
        shown = self._shown()
        return list(shown.rows) if shown.query is None else shown.query.rows()

    def changes(self) -> Iterator[Change]:
        """Every change of the last SELECT, as it comes."""
        return self._query().changes()

    def to_arrow(self) -> pa.Table:
        import pyarrow as pa

        shown = self._shown()
        if shown.query is not None:
            return shown.query.to_arrow()
        columns = zip(*shown.rows, strict=True) if shown.rows else ((),) * len(shown.header)
        return pa.table([pa.array(column, pa.string()) for column in columns], names=list(shown.header))

    def to_pandas(self) -> pd.DataFrame:
        shown = self._shown()
        return self.to_arrow().to_pandas() if shown.query is None else shown.query.to_pandas()

    def show(self, rows: int = 100) -> None:
        """Print the table, at most so many rows of it."""
        from headwater.results.text import print_table

        shown = self._shown()
        if shown.query is not None:
            shown.query.show(rows)
        elif shown.header in _TEXTS:
            sys.stdout.write("\n".join([*(row[0] for row in shown.rows), ""]))
        else:
            print_table(_text_columns(shown.header), shown.rows, rows)

    def stop(self) -> None:
        """End the queries, not the jobs of INSERTs."""
        for result in self:
            if result.query is not None:
                result.query.stop()

    def _repr_html_(self) -> str:
        from headwater.results.html import html_jobs, html_table, html_text

        shown = next((r for r in reversed(self) if r.query is not None or r.header), None)
        if shown is None:
            return html_jobs([job.name for result in self for job in result.jobs])
        if shown.query is not None:
            return shown.query._repr_html_()
        if shown.header in _TEXTS:
            return html_text([row[0] for row in shown.rows])
        return html_table(_text_columns(shown.header), shown.rows, len(shown.rows))

    def _ipython_display_(self) -> None:
        from headwater.results.notebook import display

        display(self, next((r.query for r in reversed(self) if r.query is not None), None))

    def _shown(self) -> Result:
        found = next((r for r in reversed(self) if r.query is not None or r.header), None)
        if found is None:
            raise ValidationError("None of these statements gave rows.", hint="SELECT, SHOW, DESCRIBE and EXPLAIN do.")
        return found

    def _query(self) -> QueryResult:
        found = next((r.query for r in reversed(self) if r.query is not None), None)
        if found is None:
            raise ValidationError("None of these statements is a SELECT.")
        return found


def _text_columns(header: tuple[str, ...]) -> tuple[Column, ...]:
    from headwater.plan.nodes import Column

    return tuple(Column(name, STRING) for name in header)
