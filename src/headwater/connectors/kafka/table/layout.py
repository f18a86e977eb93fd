"""Which columns are in a message's key and which in its value, under which names, in which format.

    upsert-kafka   key: the PRIMARY KEY, in its order
    kafka          key: 'key.fields', in their order; a table with a PRIMARY KEY writes that as its key, in 'key.format'
                   or else in the format of the value, if that is one for rows

The value holds all physical columns, or with EXCEPT_KEY those that are not in the key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from headwater.connectors.kafka.clients.settings import login
from headwater.formats.base import Format, FormatField, RegisteredFormat, SchemaLocation, all_formats
from headwater.options.closest import did_you_mean
from headwater.options.problems import Problem

if TYPE_CHECKING:
    from headwater.catalog.tables import Table

__all__ = [
    "LayoutProblem",
    "MessageLayout",
    "PayloadLayout",
    "format_prefix",
    "key_side",
    "message_layout",
    "registered_sides",
    "value_side",
]


_SideName = Literal["key", "value"]


@dataclass(frozen=True)
class PayloadLayout:
    """The key or the value of a message. `columns` are the table's names and `fields`, one for each, the message's."""

    format: Format
    options: Mapping[str, Any]
    columns: tuple[str, ...]
    fields: tuple[FormatField, ...]

    def field_of(self, column: str) -> FormatField:
        return self.fields[self.columns.index(column)]


@dataclass(frozen=True)
class MessageLayout:
    """`upserts`: a message is the newest row of its key and a null value is the key's deletion. That holds for reading
    `upsert-kafka`, and for writing any table that has a key to upsert by."""

    key: PayloadLayout | None
    value: PayloadLayout
    upserts: bool


class LayoutProblem(Exception):
    """The table says nothing sensible about its messages."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = problems
        super().__init__("; ".join(problem.text for problem in problems))


def message_layout(table: Table) -> MessageLayout:
    """Of a table that the catalog has accepted."""
    return MessageLayout(key_side(table), value_side(table), bool(table.primary_key))


def registered_sides(table: Table) -> list[tuple[str, RegisteredFormat, PayloadLayout]]:
    """The sides whose schemas are in a registry: 'key' or 'value', and the format once more as what it is."""
    sides = {"key": key_side(table), "value": value_side(table)}
    return [(n, s.format, s) for n, s in sides.items() if s is not None and isinstance(s.format, RegisteredFormat)]


def key_side(table: Table) -> PayloadLayout | None:
    option = "key.format" if table.options.is_given("key.format") else _value_format_option(table)
    columns = _key_columns(table)
    # Without 'key.format' the key takes the format of the value. One that writes changes has no rows for a key: then
    # the messages have none.
    if not columns or (option != "key.format" and not _format(table, option).insert_only):
        return None
    prefix = table.options.string("key.fields-prefix")
    problems = _key_problems(table, columns, prefix)
    if problems:
        raise LayoutProblem(problems)
    return _side(table, option, "key", columns, prefix)


def value_side(table: Table) -> PayloadLayout:
    physical = tuple(column.name for column in table.physical_columns)
    include = table.options.string("value.fields-include")
    if include == "ALL" and table.options.string("key.fields-prefix"):
        text = "A key prefix is not allowed when option 'value.fields-include' is set to 'ALL'. "
        raise LayoutProblem(
            [Problem(f"{text}Set it to 'EXCEPT_KEY' instead to avoid field overlaps.", key="key.fields-prefix")]
        )
    key = _quietly_key_columns(table) if include == "EXCEPT_KEY" else ()
    return _side(table, _value_format_option(table), "value", tuple(c for c in physical if c not in key), "")


def format_prefix(option: str, identifier: str) -> str:
    """Where the options of a format are: 'json.' for 'format', 'value.json.' for 'value.format'."""
    return f"{option.removesuffix('format')}{identifier}."


def _value_format_option(table: Table) -> str:
    options = table.options
    return "format" if "format" in options.values and options.is_given("format") else "value.format"


def _key_columns(table: Table) -> tuple[str, ...]:
    fields = _key_fields(table)
    if fields and table.primary_key and set(fields) != set(table.primary_key):
        text = f"'key.fields' ({', '.join(fields)}) and PRIMARY KEY ({', '.join(table.primary_key)}) are not the same "
        text += "columns: a table with a PRIMARY KEY has it as the key of its messages. Leave out 'key.fields'."
        raise LayoutProblem([Problem(text, key="key.fields")])
    has_format = table.options.is_given("key.format")
    if fields and not has_format and not table.primary_key:
        text = "The option 'key.fields' can only be declared if a key format is defined using 'key.format'."
        raise LayoutProblem([Problem(text, key="key.fields")])
    if has_format and not fields and not table.primary_key and table.connector.identifier == "kafka":
        text = "A key format 'key.format' requires the declaration of one or more of key fields using 'key.fields'."
        raise LayoutProblem([Problem(text, key="key.format")])
    return fields or table.primary_key


def _quietly_key_columns(table: Table) -> tuple[str, ...]:
    """The key as far as the value needs it; what is wrong with it is reported once, by `key_side`."""
    return _key_fields(table) or table.primary_key


def _key_fields(table: Table) -> tuple[str, ...]:
    return table.options.strings("key.fields") if "key.fields" in table.options.values else ()


def _key_problems(table: Table, columns: Sequence[str], prefix: str) -> list[Problem]:
    physical = [column.name for column in table.physical_columns]
    problems = []
    for name in columns:
        if name not in physical:
            problems.append(
                Problem(
                    f"Could not find the field '{name}' in the table schema for usage in the key format. A key field "
                    "must be a regular, physical column. The following columns can be selected in the 'key.fields' "
                    f"option:\n[{', '.join(physical)}]",
                    key="key.fields",
                )
            )
        elif not name.startswith(prefix):
            text = (
                f"All fields in 'key.fields' must be prefixed with '{prefix}' when option 'key.fields-prefix' is set "
            )
            problems.append(Problem(f"{text}but field '{name}' is not prefixed.", key="key.fields-prefix"))
    return problems


def _side(table: Table, option: str, side: _SideName, columns: tuple[str, ...], prefix: str) -> PayloadLayout:
    chosen = _format(table, option)
    types = {column.name: column.type for column in table.physical_columns}
    fields = tuple(FormatField(name.removeprefix(prefix), types[name]) for name in columns)
    options = _options(table, option, side, chosen)
    label = "Key" if option == "key.format" else "Value"
    problems = [
        Problem(f"{label} format '{chosen.identifier}': {text}", key=_named_option(table, text) or option)
        for text in chosen.validate(fields, options)
    ]
    if not chosen.insert_only:
        problems += _changelog_format(table, option, chosen)
    if problems:
        raise LayoutProblem(problems)
    return PayloadLayout(chosen, options, columns, fields)


def _named_option(table: Table, text: str) -> str:
    """The option of the table that a sentence quotes, if any."""
    return next((key for key in table.raw_options if f"'{key}'" in text), "")


def _options(table: Table, option: str, side: _SideName, chosen: Format) -> dict[str, Any]:
    prefix = format_prefix(option, chosen.identifier)
    options = table.options.below(prefix)
    if not isinstance(chosen, RegisteredFormat):
        return options
    # The key takes the format of the value here, but not what is said about the value's subject and schema.
    if side == "key" and option != "key.format":
        options |= dict.fromkeys(RegisteredFormat.OF_ONE_SIDE)
    location = SchemaLocation(table.options.strings("topic"), side, login(table.options.family("properties.")))
    return chosen.located(options, table.options.family(f"{prefix}properties."), location)


def _format(table: Table, option: str) -> Format:
    formats = all_formats()
    identifier = table.options.string(option)
    if identifier in formats:
        return formats[identifier]
    known = ", ".join(sorted(formats))
    if identifier:
        text = f"Could not find any factory for identifier '{identifier}', which '{option}' names. "
        text += f"Available factory identifiers are: {known}. {did_you_mean(identifier, formats)}"
        raise LayoutProblem([Problem(text.strip(), key=option)])
    if table.connector.identifier == "kafka":
        text = f"Could not find required scan format 'value.format'. Set 'format' or 'value.format' to one of {known}."
        raise LayoutProblem([Problem(text, key="format")])
    # A required option that is missing has been reported already.
    raise LayoutProblem([])


def _changelog_format(table: Table, option: str, chosen: Format) -> list[Problem]:
    """Both connectors need rows in keys, and `upsert-kafka` in values too, not changes."""
    name = chosen.identifier
    if table.connector.identifier == "kafka":
        text = f"A key format should only deal with INSERT-only records. But {name} has a changelog mode of its own."
        return [Problem(text, key=option)] if option == "key.format" else []
    what = "key format" if option == "key.format" else "value format"
    text = f"'upsert-kafka' connector doesn't support '{name}' as {what}, because '{name}' is not in insert-only mode."
    return [Problem(text, key=option)]
