"""Rows as HTML, for notebooks. Everything from the data is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from headwater.results.text import row_count, shown_cell

if TYPE_CHECKING:
    from headwater.plan.nodes import Column
    from headwater.results.query import Row

__all__ = ["RUNNING", "html_jobs", "html_table", "html_text"]

RUNNING = ", running; <code>.stop()</code> ends it"


def html_table(columns: Sequence[Column], rows: Sequence[Row], count: int, state: str = "") -> str:
    """`state` is what goes on, as HTML behind the number of rows."""
    heads = "".join(f'<th title="{escape(str(c.type.as_nullable()))}">{escape(c.name)}</th>' for c in columns)
    body = "".join(f"<tr>{''.join(_cell(v, c) for v, c in zip(row, columns, strict=True))}</tr>" for row in rows)
    more = f", the first {len(rows)} shown" if len(rows) < count else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table><p>{row_count(count)}{more}{state}</p>"


def html_jobs(names: Sequence[str]) -> str:
    """What a script has started that shows no rows; nothing if it has only defined something."""
    return "".join(f"<p>Job <code>{escape(name)}</code> runs in the background.</p>" for name in names)


def html_text(lines: Sequence[str]) -> str:
    """A plan or a statement: its spaces and line breaks are a part of it."""
    text = escape("\n".join(lines))
    return f'<pre style="white-space:pre;overflow-x:auto">{text}</pre>'


def _cell(value: object, column: Column) -> str:
    side = "right" if column.type.is_numeric else "left"
    return f'<td style="text-align:{side}">{escape(shown_cell(value, column))}</td>'
