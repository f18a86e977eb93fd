"""`datagen`: rows generated from the types of the columns, without end or `number-of-rows` of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headwater.catalog.connector import CONNECTOR, Connector, Emits
from headwater.connectors.datagen_rules import value_problems
from headwater.options.base import Option
from headwater.options.closest import did_you_mean
from headwater.options.parsing import under
from headwater.options.problems import Problem
from headwater.options.types import BOOL, DURATION, INT, LONG, STRING, enum

if TYPE_CHECKING:
    from headwater.catalog.tables import Table
    from headwater.connectors.runtime import RuntimeContext, Source

__all__ = ["DATAGEN", "FIELD_OPTIONS"]

# Declared for every column: 'fields.<column>.kind' and so on.
FIELD_OPTIONS: tuple[Option, ...] = (
    Option("kind", enum(("random", "sequence")), "How values are generated.", "random", choices=("random", "sequence")),
    Option("min", STRING, "Minimum of 'random' numbers. Default: the minimum of the type."),
    Option("max", STRING, "Maximum of 'random' numbers. Default: the maximum of the type."),
    Option("max-past", DURATION, "Maximum age of a 'random' timestamp. Default: the current time."),
    Option(
        "length", INT, "Length of 'random' CHAR, VARCHAR, STRING, BINARY, VARBINARY, BYTES, ARRAY, MAP and MULTISET."
    ),
    Option("var-len", BOOL, "Whether 'length' is the maximum length, for VARCHAR, STRING, VARBINARY, BYTES.", False),
    Option("null-rate", STRING, "Share of NULLs, between 0 and 1.", "0"),
    Option("start", STRING, "First value of a 'sequence'."),
    Option("end", STRING, "Last value of a 'sequence'. The table ends with the first sequence that ends."),
)


class DatagenConnector(Connector):
    identifier = "datagen"
    summary = "Generates rows."
    options = (
        CONNECTOR,
        Option("rows-per-second", LONG, "Maximum number of rows per second.", 10_000),
        Option("number-of-rows", LONG, "Total number of rows, after which the table ends. Default: no end."),
        Option("scan.parallelism", INT, "Number of tasks that generate rows."),
        Option("fields.*", STRING, "How the values of a column are generated, see below.", prefix=True),
    )
    emits = Emits.APPEND
    column_options = FIELD_OPTIONS

    def source(self, table: Table, context: RuntimeContext) -> Source:
        from headwater.connectors.datagen_source import DatagenSource

        return DatagenSource(table, context)

    def is_bounded(self, table: Table) -> bool:
        sequences = any(value == "sequence" for key, value in table.raw_options.items() if key.endswith(".kind"))
        return sequences or table.options["number-of-rows"] is not None

    def more_options(self, given: Mapping[str, str]) -> tuple[Option, ...]:
        return tuple(o for column in _columns_named(given) for o in under(f"fields.{column}.", FIELD_OPTIONS))

    def validate(self, table: Table) -> list[Problem]:
        """`fields.*` is a family to the reader of options, so what is below it is checked here."""
        problems = []
        names = [column.name for column in table.physical_columns]
        for key in (key for key in table.raw_options if key.startswith("fields.")):
            column, _, setting = key.removeprefix("fields.").rpartition(".")
            if column.split(".")[0] not in names:
                text = f"Option '{key}' is for a column '{column or setting}', which the table does not have."
                problems.append(Problem(f"{text} {did_you_mean(column, names)}".strip(), "rule", key))
            elif setting not in _FIELD_KEYS:
                text = f"Option '{key}' ends in '{setting}'; it can be one of {', '.join(_FIELD_KEYS)}."
                problems.append(Problem(f"{text} {did_you_mean(setting, _FIELD_KEYS)}".strip(), "rule", key))
        return [*problems, *_sequence_problems(table), *value_problems(table)]


_FIELD_KEYS = tuple(option.key for option in FIELD_OPTIONS)


def _columns_named(given: Mapping[str, str]) -> list[str]:
    paths = (key.removeprefix("fields.").rpartition(".") for key in given if key.startswith("fields."))
    return sorted({column for column, _, _ in paths if column})


def _sequence_problems(table: Table) -> list[Problem]:
    problems = []
    for column in _columns_named(table.raw_options):
        if table.options[f"fields.{column}.kind"] != "sequence":
            continue
        for end in ("start", "end"):
            if table.options[f"fields.{column}.{end}"] is None:
                text = f"Could not find required property 'fields.{column}.{end}' for sequence generator."
                problems.append(Problem(text, "rule", f"fields.{column}.kind"))
    return problems


DATAGEN = DatagenConnector()
