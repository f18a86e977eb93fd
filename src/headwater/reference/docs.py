"""Writes the generated tables of the documentation: `python -m headwater.reference.docs [DIRECTORY]`.

A page has `<!-- options: NAME -->` or `<!-- metadata: NAME -->` where a table goes, and `<!-- end -->` behind it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from headwater.formats.base import ChangelogFormat
from headwater.plugins import CONNECTORS, FORMATS
from headwater.reference.options import OptionRow, option_tables
from headwater.sql.types import SqlType

__all__ = ["rewritten"]

_MARKED = re.compile(r"(<!-- (options|metadata): ([\w.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rewritten(page: str) -> str:
    """The page with its tables as they should be. Raises KeyError for a name that has none."""

    def fill(match: re.Match[str]) -> str:
        table = _options(match[3]) if match[2] == "options" else _metadata(match[3])
        return f"{match[1]}{table}{match[4]}"

    return _MARKED.sub(fill, page)


def _options(name: str) -> str:
    tables = option_tables()
    table = _markdown(tables[name].rows)
    if f"{name}.fields" in tables:
        table += f"\nFor each column:\n\n{_markdown(tables[f'{name}.fields'].rows)}"
    return table


def _markdown(rows: tuple[OptionRow, ...]) -> str:
    lines = ["| option | type | default | meaning |", "|---|---|---|---|"]
    for row in rows:
        default = "**required**" if row.required else f"`{_cell(row.default)}`" if row.default else ""
        choices = f" One of {', '.join(f'`{c}`' for c in row.choices)}." if row.choices else ""
        note = f" *{row.note}*" if row.note else ""
        meaning = _cell(f"{row.meaning}{choices}{note}")
        lines.append(f"| `{row.key}` | {row.type} | {default} | {meaning} |")
    return "\n".join(lines) + "\n"


def _metadata(name: str) -> str:
    found = FORMATS.get(name)
    if isinstance(found, ChangelogFormat):
        rows = (f"| `value.{m.key}` | `{_plain(m.type)}` | {_cell(m.meaning)} |" for m in found.metadata)
        return "\n".join(["| metadata key | type | meaning |", "|---|---|---|", *rows]) + "\n"
    lines = ["| key | type | written | meaning |", "|---|---|---|---|"]
    for key in CONNECTORS[name].metadata:
        written = "yes" if key.writable else ""
        lines.append(f"| `{key.key}` | `{_plain(key.type)}` | {written} | {_cell(key.meaning)} |")
    return "\n".join(lines) + "\n"


def _plain(kind: SqlType) -> str:
    return str(kind).replace("`", "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def main(directory: Path) -> None:
    for path in sorted(directory.rglob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = rewritten(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
