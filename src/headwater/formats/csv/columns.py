"""Lines of values → Arrow columns, thousands at a time.

Arrow's CSV reader gets the first try, and whatever it refuses (one message is enough) is left to the expressions of
`decode`. Here it sees only what needs few rules to be read: text between delimiters, the same number of columns in
every line, and quotes only around a whole value or doubled inside of one. Numbers and time stamps it reads itself; of
the other types it hands over the text, and the same expressions convert it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from headwater.formats.base import ColumnReader, FormatField
from headwater.formats.columns import as_text, joined, read_as, typed
from headwater.formats.csv.dialect import CsvDialect
from headwater.formats.csv.scalars import converted_token, misread_token
from headwater.sql.spark_text import quote_name
from headwater.sql.types import SqlType

__all__ = ["csv_reader"]

Bytes = npt.NDArray[np.uint8]
Places = npt.NDArray[np.intp]

_INTEGERS = {"TINYINT", "SMALLINT", "INT", "BIGINT"}
_READ = _INTEGERS | {"DOUBLE", "TIMESTAMP", "CHAR", "VARCHAR", "STRING"}
# What Spark's parser may see more in than text: line ends, its comments, a byte order mark, and its own mark for NULL.
_ODD = [b"\r", b"\0", b"\xef\xbb\xbf", "\ufddf".encode()]
_BASE_16 = [b"0x", b"0X"]  # Arrow reads such numbers


def csv_reader(
    fields: Sequence[FormatField], wanted: Sequence[FormatField], dialect: CsvDialect
) -> ColumnReader | None:
    if dialect.escape is not None or dialect.comments or dialect.trim:
        return None
    marks = [dialect.delimiter, *([dialect.quote] if dialect.quote is not None else [])]
    if not all(mark.isascii() and mark not in "\r\n\0" for mark in marks) or len(set(marks)) < len(marks):
        return None
    return _CsvReader(tuple(f.name for f in fields), tuple(wanted), dialect)


@dataclass(frozen=True)
class _CsvReader:
    fields: tuple[str, ...]
    wanted: tuple[FormatField, ...]
    dialect: CsvDialect

    @property
    def types(self) -> tuple[str, ...]:
        return tuple(f.type.spark() if _is_read(f.type) else "STRING" for f in self.wanted)

    def columns(self, names: Sequence[str]) -> tuple[str, ...]:
        pairs = zip(names, self.wanted, strict=True)
        return tuple(
            quote_name(n) if _is_read(f.type) else converted_token(quote_name(n), f.type, self.dialect)
            for n, f in pairs
        )

    def error(self, names: Sequence[str]) -> str | None:
        if self.dialect.ignore_errors:
            return None
        unread = [(quote_name(n), f) for n, f in zip(names, self.wanted, strict=True) if not _is_read(f.type)]
        cases = [case for token, f in unread if (case := misread_token(token, f, self.dialect))]
        return f"CASE {' '.join(cases)} END" if cases else None

    def read(self, payloads: pa.Array, types: Sequence[pa.DataType]) -> list[pa.Array] | None:
        strings = as_text(payloads)
        # An empty message is an error of its own; as an empty line it would be a row of NULLs, or none.
        if strings is None or pc.min(pc.binary_length(strings)).as_py() == 0:
            return None
        lines = joined(strings)
        if not self._are_plain(lines.to_pybytes(), len(strings)):
            return None
        names = [f.name for f in self.wanted]
        try:
            table = pv.read_csv(
                pa.BufferReader(lines),
                # One block and one thread: Spark has given this task one core.
                pv.ReadOptions(use_threads=False, block_size=lines.size + 1, column_names=self.fields),
                self._parsing(),
                self._conversion(dict(zip(names, map(read_as, types), strict=True))),
            )
            # A line that Arrow took for two rows, or left out, would shift all rows behind it to other messages.
            if table.num_rows != len(payloads):
                return None
            return [typed(table.column(n).combine_chunks(), t) for n, t in zip(names, types, strict=True)]
        except pa.ArrowInvalid:
            return None

    def _are_plain(self, lines: bytes, count: int) -> bool:
        """Whether these are so many lines that mean what they look like."""
        has_integers = any(f.type.name in _INTEGERS for f in self.wanted)
        if any(_occurs(mark, lines) for mark in (_ODD + _BASE_16 if has_integers else _ODD)):
            return False
        data = np.frombuffer(lines, np.uint8)
        breaks = np.flatnonzero(data == ord("\n"))
        if len(breaks) != count - 1:
            return False
        quote = self.dialect.quote
        return quote is None or quote.encode() not in lines or self._is_well_quoted(data, ord(quote), breaks)

    def _is_well_quoted(self, data: Bytes, quote: int, breaks: Places) -> bool:
        """Quotes open behind an edge of a value and close before one, in the same line, or two of them are one."""
        places = np.flatnonzero(data == quote)
        opened, closed = places[::2], places[1::2]
        if len(opened) != len(closed):
            return False
        if np.any(np.searchsorted(breaks, opened) != np.searchsorted(breaks, closed)):
            return False
        doubled = closed[:-1] + 1 == opened[1:]
        begins = (opened == 0) | self._is_edge(data[opened - 1])
        ends = (closed == len(data) - 1) | self._is_edge(data[np.minimum(closed + 1, len(data) - 1)])
        begins[1:] |= doubled
        ends[:-1] |= doubled
        return bool(np.all(begins) and np.all(ends))

    def _is_edge(self, data: Bytes) -> npt.NDArray[np.bool_]:
        edges: npt.NDArray[np.bool_] = (data == ord(self.dialect.delimiter)) | (data == ord("\n"))
        return edges

    def _parsing(self) -> pv.ParseOptions:
        quote = self.dialect.quote or False
        return pv.ParseOptions(delimiter=self.dialect.delimiter, quote_char=quote, ignore_empty_lines=False)

    def _conversion(self, types: dict[str, pa.DataType]) -> pv.ConvertOptions:
        nothing = [self.dialect.null] if self.dialect.null is not None else []
        nothing += [""] if self.dialect.empty_as_null else []
        return pv.ConvertOptions(
            column_types=types,
            include_columns=list(types),
            null_values=nothing,
            strings_can_be_null=True,
        )


def _occurs(mark: bytes, data: bytes) -> bool:
    """Looking for one byte is a hundred times faster than for two."""
    return mark[:1] in data and mark[-1:] in data and mark in data


def _is_read(kind: SqlType) -> bool:
    return kind.name in _READ
