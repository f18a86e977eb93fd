"""Rows as text: an aligned table, CSV, JSON, and changes one line each."""

from __future__ import annotations

import csv
import io
import json
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headwater.results.values import cell_text, json_value

if TYPE_CHECKING:
    from headwater.plan.nodes import Column
    from headwater.results.query import Change, Row

__all__ = ["change_line", "csv_lines", "json_lines", "json_text", "print_table", "row_count", "table_lines", "width"]

_WIDEST = 60  # of a cell in a table
_NARROWEST = 8
_OP = "op"
_CONTROL = {ord("\n"): "⏎", ord("\r"): "␍", ord("\t"): "⇥", 0x1B: "␛"}


def table_lines(
    columns: Sequence[Column], rows: Sequence[Row], most: int | None = None, room: int | None = None
) -> Iterator[str]:
    """Aligned, numbers to the right, the types below the names, and below all the number of rows. With `room`, the
    widest columns are cut until a line fits, as long as they are readable."""
    shown = rows if most is None else rows[:most]
    cells = [[shown_cell(value, c) for value, c in zip(row, columns, strict=True)] for row in shown]
    heads = _heads(columns)
    widths = column_widths(columns, cells, room)
    right = [c.type.is_numeric for c in columns]
    yield from (_line(line, widths, right) for line in heads)
    yield "-+-".join("-" * w for w in widths)
    yield from (_line(line, widths, right) for line in cells)
    yield row_count(len(rows)) + (f", {len(shown)} of them shown" if len(shown) < len(rows) else "")


def column_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int | None) -> list[int]:
    """Of a table with three characters between columns; the widest are cut first, so that narrow ones stay whole."""
    return _fitting([max(map(width, column)) for column in zip(*_heads(columns), *cells, strict=True)], room)


def _heads(columns: Sequence[Column]) -> list[list[str]]:
    return [[c.name for c in columns], [str(c.type.as_nullable()) for c in columns]]


def print_table(columns: Sequence[Column], rows: Sequence[Row], most: int) -> None:
    for line in table_lines(columns, rows, most):
        sys.stdout.write(f"{line}\n")


def row_count(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


def change_count(number: int) -> str:
    return "1 change" if number == 1 else f"{number:,} changes"


def shown_cell(value: Any, column: Column) -> str:
    """On one line, and not wider than a table can show."""
    text = cell_text(value, column.type).translate(_CONTROL)
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def width(text: str) -> int:
    """How many places of a terminal it takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    fitted = zip((_cut(cell, w) for cell, w in zip(cells, widths, strict=True)), widths, right, strict=True)
    padded = ((_blank(c, w) + c) if r else (c + _blank(c, w)) for c, w, r in fitted)
    return " | ".join(padded).rstrip()


def _fitting(widths: list[int], room: int | None) -> list[int]:
    while room is not None and sum(widths) + 3 * (len(widths) - 1) > room and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _cut(cell: str, wanted: int) -> str:
    if width(cell) <= wanted:
        return cell
    while width(cell) > wanted - 1:
        cell = cell[:-1]
    return f"{cell}…"


def _blank(cell: str, wanted: int) -> str:
    return " " * (wanted - width(cell))


def change_line(change: Change, columns: Sequence[Column]) -> str:
    """+I[1, a]"""
    cells = (cell_text(value, c.type).translate(_CONTROL) for value, c in zip(change.row, columns, strict=True))
    return f"{change.kind}[{', '.join(cells)}]"


def csv_lines(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """With a header. NULL is nothing between the commas, an empty string is quoted."""
    yield _csv([c.name for c in columns])
    for row in rows:
        yield _csv(_csv_cells(columns, row))


def csv_changes(columns: Sequence[Column], changes: Iterable[Change]) -> Iterator[str]:
    """As `csv_lines`, with the kind of each change in front."""
    yield _csv([_OP, *(c.name for c in columns)])
    for change in changes:
        yield _csv([change.kind, *_csv_cells(columns, change.row)])


def _csv_cells(columns: Sequence[Column], row: Row) -> list[str | None]:
    return [None if v is None else cell_text(v, c.type) for v, c in zip(row, columns, strict=True)]


def _csv(cells: Sequence[str | None]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    text = out.getvalue()
    if "" not in cells:
        return text
    # The writer makes no difference between NULL and an empty string.
    return ",".join("" if cell is None else '""' if cell == "" else _csv([cell]) for cell in cells)


def json_lines(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(_json_fields(columns, row), ensure_ascii=False)


def json_changes(columns: Sequence[Column], changes: Iterable[Change]) -> Iterator[str]:
    """As `json_lines`, with the kind of each change in front."""
    for change in changes:
        yield json.dumps({_OP: change.kind, **_json_fields(columns, change.row)}, ensure_ascii=False)


def _json_fields(columns: Sequence[Column], row: Row) -> dict[str, Any]:
    return {c.name: json_value(v, c.type) for v, c in zip(row, columns, strict=True)}


def json_text(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """One array."""
    lines = list(json_lines(columns, rows))
    yield "[" + ",\n ".join(lines) + "]"
