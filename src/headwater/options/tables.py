"""All options as rows of tables, for `headwater options` and for the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headwater.options.base import Option
from headwater.options.legacy import SIDES, SUMMARY, TYPES, of_type
from headwater.options.types import show

__all__ = ["OptionRow", "OptionTable", "option_tables", "render_options"]


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


def render_options(name: str) -> OptionTable | None:
    """The table of that name: a connector, a format or 'session'."""
    return option_tables().get(name)


def option_tables() -> Mapping[str, OptionTable]:
    from headwater.connectors.datagen import FIELD_OPTIONS
    from headwater.connectors.registry import CONNECTORS
    from headwater.formats.registry import FORMATS
    from headwater.options.reading import under
    from headwater.options.session import SESSION_OPTIONS

    tables = [
        OptionTable(c.identifier, "connector", c.summary, _rows(c.options, _kafka_not_yet()))
        for c in CONNECTORS.values()
    ]
    tables += [
        OptionTable(f.identifier, "format", f.summary, _rows(under(f"{f.identifier}.", f.options), _format_not_yet()))
        for f in FORMATS.values()
    ]
    tables.append(OptionTable("session", "settings", "What SET knows.", _rows(SESSION_OPTIONS, {})))
    fields = _rows(under("fields.<column>.", FIELD_OPTIONS), {})
    tables.append(OptionTable("datagen.fields", "columns of datagen", "How the values of a column are made.", fields))
    tables += [OptionTable(f"old-{kind}", "older spelling", SUMMARY.format(kind), _old_rows(kind)) for kind in TYPES]
    return {table.name: table for table in tables}


def _old_rows(kind: str) -> tuple[OptionRow, ...]:
    """Each with what is written for it today."""
    notes = {}
    for old in of_type(kind):
        today = " and ".join(f"'{key}'" for key in old.today_of(SIDES[kind], "<format>"))
        notes[old.key] = f"Today: {today}." if today else "Today: nothing."
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


def _kafka_not_yet() -> dict[str, str]:
    from headwater.connectors.kafka.options import NOT_YET

    return {entry.key: f"{entry.what} not supported yet." for entry in NOT_YET}


def _format_not_yet() -> dict[str, str]:
    from headwater.formats import avro

    return {f"avro.{key}": sentence for key, sentence in avro.NOT_YET.items()}
