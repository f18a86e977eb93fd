"""All options as rows of tables, for `headwater options` and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.formats.base import Format
from headwater.options.base import Option
from headwater.options.legacy import SIDES, SUMMARY, TYPES, of_type
from headwater.options.parsing import under
from headwater.options.session import SESSION_OPTIONS
from headwater.options.types import show
from headwater.plugins import CONNECTORS, FORMATS

__all__ = ["OptionRow", "OptionTable", "option_tables"]


@dataclass(frozen=True)
class OptionRow:
    """One option in words. `note` says that it is refused or has been replaced; '' if it is neither."""

    key: str
    type: str
    default: str
    meaning: str
    required: bool = False
    choices: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class OptionTable:
    """The options of a connector, a format, or SET."""

    name: str
    kind: str
    summary: str
    rows: tuple[OptionRow, ...]


def option_tables() -> Mapping[str, OptionTable]:
    connectors, formats = list(CONNECTORS.values()), list(FORMATS.values())
    tables = [OptionTable(c.identifier, "connector", c.summary, _rows(c.options, c.not_yet)) for c in connectors]
    tables += [OptionTable(f.identifier, "format", f.summary, _rows(*_of_format(f))) for f in formats]
    tables.append(OptionTable("session", "settings", "Settings for SET.", _rows(SESSION_OPTIONS, {})))
    for c in (c for c in connectors if c.column_options):
        fields = _rows(under("fields.<column>.", c.column_options), {})
        summary = "How the values of a column are generated."
        tables.append(OptionTable(f"{c.identifier}.fields", f"columns of {c.identifier}", summary, fields))
    tables += [
        OptionTable(f"legacy-{kind}", "legacy options", SUMMARY.format(kind), _legacy_rows(kind)) for kind in TYPES
    ]
    return {table.name: table for table in tables}


def _of_format(format_: Format) -> tuple[tuple[Option, ...], Mapping[str, str]]:
    prefix = f"{format_.identifier}."
    refused: Mapping[str, str] = getattr(format_, "not_yet", {})  # few formats have one
    return under(prefix, format_.options), {f"{prefix}{key}": text for key, text in refused.items()}


def _legacy_rows(kind: str) -> tuple[OptionRow, ...]:
    """Each with its replacement."""
    notes = {}
    for old in of_type(kind):
        current = " and ".join(f"'{key}'" for key in old.current_keys(SIDES[kind], "<format>"))
        notes[old.key] = f"Replaced by {current}." if current else "Has no replacement."
    return _rows((old.option for old in of_type(kind)), notes)


def _rows(options: Iterable[Option], not_yet: Mapping[str, str]) -> tuple[OptionRow, ...]:
    return tuple(
        OptionRow(
            option.key,
            option.type.name,
            show(option.default),
            option.meaning,
            option.required,
            option.choices,
            f"Replaced by '{option.deprecated}'." if option.deprecated else not_yet.get(option.key, ""),
        )
        for option in options
    )
