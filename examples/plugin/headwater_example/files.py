"""`'connector' = 'files'`: writes every batch as files of text, one line per row, into a directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.catalog.connector import CONNECTOR, Accepts, Connector
from headwater.connectors.runtime import BatchId, RuntimeContext, Sink, Writer
from headwater.options.base import Option
from headwater.options.types import STRING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from headwater.catalog.tables import Table

__all__ = ["FILES"]


class FilesConnector(Connector):
    identifier = "files"
    summary = "Writes rows as lines of text files."
    options = (CONNECTOR, Option("path", STRING, "The directory to write to.", required=True))
    accepts = Accepts.APPEND

    def sink(self, table: Table, context: RuntimeContext) -> Sink:
        return FilesSink(table)


FILES = FilesConnector()


class FilesSink(Sink):
    """A file is named by batch and task, so a batch that is written again replaces what it wrote before."""

    def __init__(self, table: Table) -> None:
        self._directory = Path(table.options.string("path"))

    def encode(self, rows: DataFrame) -> DataFrame:
        return rows

    def writer(self) -> Writer:
        self._directory.mkdir(parents=True, exist_ok=True)
        return _Lines(str(self._directory))


@dataclass(frozen=True)
class _Lines:
    """In a worker: the rows of one task."""

    directory: str

    def __call__(self, task: int, batch: BatchId, messages: Iterable[pa.RecordBatch]) -> int:
        lines = [", ".join(map(str, row.values())) for part in messages for row in part.to_pylist()]
        path = Path(self.directory) / f"{batch.number:06d}-{task:03d}.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return len(lines)
