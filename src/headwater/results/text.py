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
    heads = [[c.name for c in columns], [str(c.type.as_nullable()) for c in columns]]
    widths = _fitting([max(map(width, column)) for column in zip(*heads, *cells, strict=True)], room)
    right = [c.type.is_numeric for c in columns]
    yield from (_line(line, widths, right) for line in heads)
    yield "-+-".join("-" * w for w in widths)
    yield from (_line(line, widths, right) for line in cells)
    yield row_count(len(rows)) + (f", {len(shown)} of them shown" if len(shown) < len(rows) else "")


def print_table(columns: Sequence[Column], rows: Sequence[Row], most: int) -> None:
    for line in table_lines(columns, rows, most):
        sys.stdout.write(f"{line}\n")


def row_count(number: int) -> str:
    return "1 row" if number == 1 else f"{number:,} rows"


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
    padded = (_padded(cell, w, r) for cell, w, r in zip(cells, widths, right, strict=True))
    return " | ".join(padded).rstrip()


def _fitting(widths: list[int], room: int | None) -> list[int]:
    while room is not None and sum(widths) + 3 * (len(widths) - 1) > room and max(widths) > _NARROWEST:
        widest = widths.index(max(widths))
        widths[widest] -= 1
    return widths


def _padded(cell: str, wanted: int, right: bool) -> str:
    if width(cell) > wanted:
        while width(cell) > wanted - 1:
            cell = cell[:-1]
        cell += "…"
    blank = " " * (wanted - width(cell))
    return f"{blank}{cell}" if right else f"{cell}{blank}"


def change_line(change: Change, columns: Sequence[Column]) -> str:
    """+I[1, a]"""
    cells = (cell_text(value, c.type).translate(_CONTROL) for value, c in zip(change.row, columns, strict=True))
    return f"{change.kind}[{', '.join(cells)}]"


def csv_lines(columns: Sequence[Column], rows: Iterable[Row], kinds: bool = False) -> Iterator[str]:
    """With a header. NULL is nothing between the commas, an empty string is quoted. With `kinds`, rows are changes."""
    yield _csv([*([_OP] if kinds else []), *(c.name for c in columns)])
    for row in rows:
        kind, values = row if kinds else ("", row)
        cells = [None if v is None else cell_text(v, c.type) for v, c in zip(values, columns, strict=True)]
        yield _csv([*([kind] if kinds else []), *cells])


def _csv(cells: Sequence[str | None]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="").writerow(cells)
    text = out.getvalue()
    if "" not in cells:
        return text
    # The writer makes no difference between NULL and an empty string.
    return ",".join("" if cell is None else '""' if cell == "" else _csv([cell]) for cell in cells)


def json_lines(columns: Sequence[Column], rows: Iterable[Row], kinds: bool = False) -> Iterator[str]:
    for row in rows:
        kind, values = row if kinds else ("", row)
        fields = {c.name: json_value(v, c.type) for v, c in zip(values, columns, strict=True)}
        yield json.dumps({_OP: kind, **fields} if kinds else fields, ensure_ascii=False)


def json_text(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[str]:
    """One array."""
    lines = list(json_lines(columns, rows))
    yield "[" + ",\n ".join(lines) + "]"
