"""Completion: what may stand at the cursor, judged by the words before it.

inside WITH (…) or OPTIONS(…)   keys of the connector's options, behind '=' their values; topics of the broker
behind SET, RESET               keys of settings, and their values
behind FROM, INTO, TABLE …      tables and views
behind SHOW                     what can be shown
elsewhere                       columns of the tables that the statement names, or of all; key words, functions
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from headwater.catalog.catalog import Catalog
from headwater.catalog.tables import Table
from headwater.cli.select_output import RowFormat
from headwater.cli.shell.commands import COMMANDS
from headwater.cli.shell.input_text import KEYWORDS
from headwater.cli.shell.topics import KnownTopics
from headwater.errors import HeadwaterError
from headwater.options.base import Option
from headwater.options.session import SESSION_OPTIONS
from headwater.plan.validation import view_columns
from headwater.plugins import CONNECTORS, FORMATS
from headwater.sql.functions import REGISTRY
from headwater.sql.parser.show import SHOWN
from headwater.sql.tokens import Token, tokenize

__all__ = ["SqlCompleter", "proposals"]

_TABLE_WORDS = frozenset({"FROM", "JOIN", "INTO", "TABLE", "VIEW", "DESCRIBE", "DESC", "LIKE", "COLUMNS"})
_COLUMN_WORDS = frozenset({"SELECT", "WHERE", "BY", "ON", "AND", "OR", "HAVING", "DISTINCT", ",", "(", "="})
_ARGUMENTS: Mapping[str, tuple[str, ...]] = {"\\timing": ("on", "off"), "\\format": tuple(RowFormat)}
_OPTION = re.compile(r"'([^']*)'\s*=\s*'([^']*)'")
_OPEN_STRING = re.compile(r"(?:[^']|'[^']*')*'([^']*)\Z")
_WORD = re.compile(r"[\w$]*\Z")
_FORMAT_KEYS = ("format", "key.format", "value.format")


@dataclass
class SqlCompleter(Completer):
    """`catalog` is the session's own; `connection` what headwater.toml says of the broker."""

    catalog: Catalog
    connection: Mapping[str, str] = field(default_factory=dict)
    topics: KnownTopics = field(default_factory=KnownTopics)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        typed, found = proposals(document.text_before_cursor, self)
        for text in found:
            yield Completion(text, start_position=-len(typed))


def proposals(before: str, known: SqlCompleter) -> tuple[str, list[str]]:
    """What of the text is being completed, and what it could become."""
    if before.lstrip().startswith("\\"):
        return _command(before.lstrip(), known)
    inside = _OPEN_STRING.fullmatch(before)
    if inside is not None:
        typed = inside[1]
        return typed, _starting(typed, _in_string(before[: len(before) - len(typed) - 1], known))
    found = _WORD.search(before)
    typed = found[0] if found is not None else ""
    # Tokens, because a table may be named inside of a comment or a string, where nothing is to be completed.
    tokens = tokenize(before[: len(before) - len(typed)])
    if tokens and tokens[-1].word in _TABLE_WORDS:
        return typed, _starting(typed, known.catalog.names())
    if tokens and tokens[-1].word == "SHOW":
        return typed, _starting(typed, SHOWN)
    columns = _columns(before, known.catalog)
    if not typed:
        return "", columns if tokens and tokens[-1].word in _COLUMN_WORDS else []
    words = columns, known.catalog.names(), sorted(REGISTRY.functions), sorted(KEYWORDS)
    return typed, _starting(typed, dict.fromkeys(word for group in words for word in group))


def _command(text: str, known: SqlCompleter) -> tuple[str, list[str]]:
    name, blank, rest = text.partition(" ")
    if not blank:
        return text, _starting(text, sorted(COMMANDS))
    if name == "\\i":
        return rest, _files(rest)
    words = known.catalog.names() if name == "\\d" else _ARGUMENTS.get(name, ())
    return rest, _starting(rest, words)


def _files(typed: str) -> list[str]:
    directory, _, name = typed.rpartition("/")
    try:
        there = sorted(Path(f"{directory}/" if "/" in typed else ".").expanduser().iterdir())
    except OSError:
        return []
    shown = (path for path in there if path.name.startswith(name) and not path.name.startswith("."))
    stem = typed[: len(typed) - len(name)]
    return [f"{stem}{path.name}{'/' if path.is_dir() else ''}" for path in shown if path.is_dir() or _is_sql(path)]


def _is_sql(path: Path) -> bool:
    return path.suffix.lower() == ".sql"


def _starting(typed: str, words: Iterable[str]) -> list[str]:
    lower = typed.lower()
    return [word for word in words if word.lower().startswith(lower) and word != typed]


def _in_string(before: str, known: SqlCompleter) -> list[str]:
    """Inside quotes: the key or the value of an option."""
    tokens = tokenize(before)
    start = next((place + 1 for place in reversed(range(len(tokens))) if tokens[place].word == ";"), 0)
    statement = tokens[start:]
    first = statement[0].word if statement else ""
    if first in ("SET", "RESET"):
        return _of_settings(statement)
    if not {"WITH", "OPTIONS"} & {token.word for token in statement}:
        return []
    given = dict(_OPTION.findall(before[statement[0].start :]))
    options = _options(given, statement, known.catalog)
    if statement[-1].word != "=":
        return [key for key in options if key not in given]
    return _values(options.get(statement[-2].text), statement[-2].text, {**known.connection, **given}, known)


def _of_settings(statement: list[Token]) -> list[str]:
    if statement[-1].word != "=":
        return [option.key for option in SESSION_OPTIONS]
    chosen = next((option for option in SESSION_OPTIONS if option.key == statement[-2].text), None)
    return _choices(chosen) if chosen is not None else []


def _options(given: Mapping[str, str], statement: list[Token], catalog: Catalog) -> dict[str, Option]:
    """Those of the connector that is chosen, of the table that is hinted, or else of all connectors."""
    chosen = given.get("connector", "")
    if not chosen:
        named = (token.text for token in statement if token.text in catalog.names())
        tables = (relation for name in named if isinstance(relation := catalog.get(name), Table))
        hinted = next(tables, None)
        chosen = hinted.connector.identifier if hinted is not None else ""
    connectors = [CONNECTORS[chosen]] if chosen in CONNECTORS else list(CONNECTORS.values())
    found = [option for c in connectors for option in (*c.options, *c.more_options(given))]
    return {option.key: option for option in found if not option.prefix}


def _values(option: Option | None, key: str, given: Mapping[str, str], known: SqlCompleter) -> list[str]:
    if key == "connector":
        return sorted(CONNECTORS)
    if key in _FORMAT_KEYS:
        return sorted(FORMATS)
    if key == "topic":
        return known.topics.of(given)
    if key == "properties.bootstrap.servers":
        return _servers(known)
    return _choices(option) if option is not None else []


def _servers(known: SqlCompleter) -> list[str]:
    key = "properties.bootstrap.servers"
    tables = (table.raw_options.get(key, "") for table in known.catalog.tables())
    return sorted({*filter(None, tables), *filter(None, [known.connection.get(key, "")])})


def _choices(option: Option) -> list[str]:
    return list(option.choices) or (["true", "false"] if option.type.name == "Boolean" else [])


def _columns(before: str, catalog: Catalog) -> list[str]:
    """Of all tables and views whose names stand in the statement; before one does, of all there are."""
    words = {token.text for token in tokenize(before.rsplit(";", 1)[-1])}
    names = catalog.names()
    found: list[str] = []
    for name in [name for name in names if name in words] or names:
        relation = catalog.get(name)
        if isinstance(relation, Table):
            found += [column.name for column in relation.columns]
            continue
        try:
            found += [column.name for column in view_columns(relation, catalog)]
        except HeadwaterError:  # a table of the view has been dropped
            continue
    return list(dict.fromkeys(found))
