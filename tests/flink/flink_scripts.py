"""Files of scripts that both engines run.

    topic orders                          the head: topics, messages and tables, as in a case file (docs/testing.md)
    produce orders
    1 => {"id": 1, "amount": 5}
    sql
    CREATE TABLE orders (id INT, amount INT) WITH (${log:orders});

    === sum of all                        a script: its last SELECT is compared, else what its INSERTs have written
    SELECT SUM(amount) FROM orders;

    === another
    differs: why the engines do not agree; then they must not
    SELECT …;

In SQL, `${NAME}` is a topic of the head and `${kafka}` the broker; `${log:NAME}` and `${upsert:NAME}` are all options
of a table over it that is bounded and read from its beginning. `${out:NAME}` is a topic that an engine writes: each has
its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from headwater.testing.case import Case, Produce, Sql, Topic
from headwater.testing.parse import parse_case

__all__ = ["Script", "ScriptFile", "read_scripts", "statements"]

HERE = Path(__file__).parent
_PLACE = re.compile(r"\$\{(?:(\w+):)?([\w-]+)\}")
_BOUNDED = "'properties.bootstrap.servers' = '${kafka}', 'scan.bounded.mode' = 'latest-offset'"
_OPTIONS = {
    # A row is late in Flink by the watermarks sent so far: with every row, not by the clock.
    "log": f"'connector' = 'kafka', {_BOUNDED}, 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', "
    "'scan.watermark.emit.strategy' = 'on-event'",
    "upsert": f"'connector' = 'upsert-kafka', {_BOUNDED}, 'key.format' = 'json', 'value.format' = 'json'",
}


@dataclass(frozen=True)
class Script:
    area: str
    name: str
    text: str
    differs: str = ""

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(sorted({name for kind, name in _PLACE.findall(self.text) if kind == "out"}))


@dataclass(frozen=True)
class ScriptFile:
    area: str
    head: Case
    scripts: tuple[Script, ...]
    topics: Mapping[str, Topic] = field(default_factory=dict)

    @property
    def tables(self) -> str:
        return "\n".join(directive.text for directive in self.head.directives if isinstance(directive, Sql))

    @property
    def produced(self) -> tuple[Produce, ...]:
        return tuple(directive for directive in self.head.directives if isinstance(directive, Produce))


def read_scripts() -> Iterator[ScriptFile]:
    for path in sorted(HERE.glob("*.scripts")):
        head, *sections = re.split(r"^=== ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        case = parse_case(head, str(path))
        topics = {directive.name: directive for directive in case.directives if isinstance(directive, Topic)}
        yield ScriptFile(path.stem, case, tuple(_script(path.stem, section) for section in sections), topics)


def _script(area: str, section: str) -> Script:
    name, _, text = section.partition("\n")
    differs = ""
    if text.startswith("differs: "):
        differs, _, text = text.removeprefix("differs: ").partition("\n")
    return Script(area, name.strip(), text.strip(), differs)


def statements(text: str, places: Mapping[str, str]) -> list[str]:
    """The statements of a script, with its places filled in. None of ours has a semicolon inside."""
    for _ in range(2):  # options name places themselves
        text = _PLACE.sub(_filled(places), text)
    return [statement.strip() for statement in text.split(";") if statement.strip()]


def _filled(places: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def fill(match: re.Match[str]) -> str:
        kind, name = match.groups()
        if kind in _OPTIONS:
            return f"'topic' = '{places[name]}', {_OPTIONS[kind]}"
        return places[match[0][2:-1]]

    return fill
