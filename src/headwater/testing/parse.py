"""The text of a case file → `Case`. What it does not know is an error with its line and a caret."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from headwater.errors import Position, SqlError
from headwater.options.closest import did_you_mean
from headwater.testing.case import (
    Block,
    Case,
    Directive,
    Expect,
    ExpectError,
    ExpectMode,
    ExpectPlan,
    ExpectTable,
    Message,
    Phase,
    Produce,
    Restart,
    Sql,
    Topic,
)
from headwater.testing.messages import BadLine, parse_message

__all__ = ["parse_case", "read_case"]

_WORD = re.compile(r"\S+")
_PHASES: dict[str, Phase] = {"create": "create", "insert": "insert", "run": "run"}


def read_case(path: Path | str) -> Case:
    return parse_case(Path(path).read_text(encoding="utf-8"), str(path))


def parse_case(text: str, path: str = "") -> Case:
    return _Parser(text, path).case()


class _Parser:
    """Walks the lines; `_at` is the index of the next one. Words of a directive are (text, column) pairs."""

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._lines = text.splitlines()
        self._at = 0
        self._not_yet = ""
        self._topics: set[str] = set()
        self._read: dict[str, Callable[[list[tuple[str, int]], int], Directive | None]] = {
            "topic": self._topic,
            "sql": self._sql,
            "produce": self._produce,
            "expect": self._expect,
            "table": self._table,
            "error": self._error,
            "plan": self._plan,
            "restart": self._restart,
            "marker:": self._marker,
        }

    def case(self) -> Case:
        directives: list[Directive] = []
        while self._at < len(self._lines):
            line = self._lines[self._at]
            self._at += 1
            if not line.strip() or line.startswith("#"):
                continue
            directive = self._directive(line, self._at)
            if directive is not None:
                directives.append(directive)
        self._check_order(directives)
        return Case(self._path, tuple(directives), self._not_yet, self._text)

    def _directive(self, line: str, number: int) -> Directive | None:
        words = [(match[0], match.start()) for match in _WORD.finditer(line)]
        first, column = words[0]
        if first not in self._read or column > 0:
            near = did_you_mean(first, self._read)
            hint = f"Known words: {', '.join(self._read)}. They stand at the beginning of a line."
            raise self._problem(f"'{first}' is not a word of case files. {near}".strip(), number, words[0], hint)
        return self._read[first](words[1:], number)

    def _topic(self, words: list[tuple[str, int]], number: int) -> Topic:
        name = self._argument(words, number, "topic needs a name")
        partitions, compacted = 1, False
        for word in words[1:]:
            if word[0] == "compacted":
                compacted = True
            elif re.fullmatch(r"partitions=[1-9]\d*", word[0]):
                partitions = int(word[0].removeprefix("partitions="))
            else:
                raise self._problem(
                    f"'{word[0]}' is not a property of a topic.", number, word, "Known: partitions=N, compacted."
                )
        if name in self._topics:
            raise self._problem(f"Topic '{name}' already exists.", number, words[0])
        self._topics.add(name)
        return Topic(name, partitions, compacted, number)

    def _sql(self, words: list[tuple[str, int]], number: int) -> Sql:
        if words:
            return Sql("\n".join(self._script(word, number) for word in words), number)
        lines: list[str] = []
        while self._at < len(self._lines) and not self._ends_sql(lines):
            line = self._lines[self._at]
            lines.append("" if line.startswith("#") else line)
            self._at += 1
        if not any(line.strip() for line in lines):
            raise self._problem("There is no SQL here.", number, ("sql", 0))
        # Empty lines in front, so that the line numbers of errors are those of the case file.
        return Sql("\n" * number + "\n".join(lines).rstrip(), number)

    def _script(self, word: tuple[str, int], number: int) -> str:
        """A file, whose path is relative to that of the case."""
        try:
            return (Path(self._path).parent / word[0]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            hint = "Name files relative to the case file, or begin the script on the next line."
            raise self._problem(f"'{word[0]}' cannot be read: {error}.", number, word, hint) from None

    def _ends_sql(self, before: list[str]) -> bool:
        """A directive after a blank line or a ';': inside a statement its word may be SQL."""
        word = _WORD.match(self._lines[self._at])
        # TABLE or EXPECT at the beginning of a line may also be a part of a statement that is not finished.
        closed = not before or not before[-1].strip() or before[-1].rstrip().endswith(";")
        return word is not None and word[0] in self._read and closed

    def _produce(self, words: list[tuple[str, int]], number: int) -> Produce:
        topic = self._known_topic(words, number)
        self._no_more(words[1:], number, "Messages begin on the next line.")
        messages, _ = self._messages()
        if not messages:
            raise self._problem("There are no messages here.", number, ("produce", 0))
        return Produce(topic, messages, number)

    def _expect(self, words: list[tuple[str, int]], number: int) -> Expect:
        topic = self._known_topic(words, number)
        modes = {mode.value: mode for mode in ExpectMode}
        names = ", ".join(modes)
        if len(words) < 2:
            raise self._problem("expect needs a mode.", number, words[0], f"expect {topic} and one of {names}.")
        if words[1][0] not in modes:
            near = did_you_mean(words[1][0], modes)
            raise self._problem(f"'{words[1][0]}' is not a mode. {near}".strip(), number, words[1], f"Modes: {names}.")
        self._no_more(words[2:], number, "Messages begin on the next line.")
        messages, body = self._messages()
        return Expect(topic, modes[words[1][0]], messages, body, number)

    def _table(self, words: list[tuple[str, int]], number: int) -> ExpectTable:
        name = self._argument(words, number, "table needs the name of a table in the script")
        self._no_more(words[1:], number, "Rows begin on the next line.")
        lines, body = self._body()
        rows = tuple(tuple(cell.strip() for cell in line.split(" | ")) for _, line in lines)
        return ExpectTable(name, rows, body, number)

    def _error(self, words: list[tuple[str, int]], number: int) -> ExpectError:
        hint = "error create|insert|run contains TEXT"
        phase = self._argument(words, number, "error needs to know when", hint)
        if phase not in _PHASES:
            raise self._problem(f"Errors come at {', '.join(_PHASES)}, not '{phase}'.", number, words[0], hint)
        if len(words) < 2 or words[1][0] != "contains":
            raise self._problem("error needs the word 'contains'.", number, words[-1], hint)
        same_line = self._lines[number - 1][words[1][1] + len("contains") :].strip()
        lines, body = self._body()
        wanted = (*([same_line] if same_line else []), *(line.strip() for _, line in lines))
        if not wanted:
            raise self._problem("The error contains what?", number, words[1], hint)
        return ExpectError(_PHASES[phase], wanted, body, number)

    def _plan(self, words: list[tuple[str, int]], number: int) -> ExpectPlan:
        self._no_more(words, number, "The text of EXPLAIN begins on the next line.")
        lines, body = self._body()
        return ExpectPlan("\n".join(line.rstrip() for _, line in lines), body, number)

    def _restart(self, words: list[tuple[str, int]], number: int) -> Restart:
        how = self._argument(words, number, "restart needs to know how", "restart clean, or restart kill")
        if how not in {"clean", "kill"}:
            raise self._problem(f"A restart is clean or kill, not '{how}'.", number, words[0])
        self._no_more(words[1:], number, "")
        return Restart(how == "kill", number)

    def _marker(self, words: list[tuple[str, int]], number: int) -> None:
        if not words or words[0][0] != "notyet":
            raise self._problem("The only marker is 'notyet'.", number, words[0] if words else ("marker:", 0))
        self._not_yet = " ".join(word for word, _ in words[1:])
        if not self._not_yet:
            raise self._problem("A marker needs a reason.", number, words[0], "marker: notyet the reason")

    def _body(self) -> tuple[list[tuple[int, str]], Block]:
        """The lines up to the next blank one, with their numbers, without comments."""
        first = self._at + 1
        while self._at < len(self._lines) and self._lines[self._at].strip():
            self._at += 1
        numbered = [(n, self._lines[n - 1]) for n in range(first, self._at + 1)]
        return [(n, line) for n, line in numbered if not line.startswith("#")], Block(first, self._at + 1)

    def _messages(self) -> tuple[tuple[Message, ...], Block]:
        lines, body = self._body()
        messages = []
        for number, line in lines:
            try:
                messages.append(parse_message(line, number))
            except BadLine as bad:
                at = (line[bad.column : bad.column + bad.length], bad.column)
                raise self._problem(bad.fact, number, at, bad.hint) from None
        return tuple(messages), body

    def _argument(self, words: list[tuple[str, int]], number: int, fact: str, hint: str = "") -> str:
        if not words:
            raise self._problem(f"{fact}.", number, (self._lines[number - 1], 0), hint)
        return words[0][0]

    def _known_topic(self, words: list[tuple[str, int]], number: int) -> str:
        name = self._argument(words, number, "a topic is missing")
        if name not in self._topics:
            near = did_you_mean(name, self._topics)
            fact = f"There is no topic '{name}' above. {near}".strip()
            raise self._problem(fact, number, words[0], f"Declare it: topic {name}")
        return name

    def _no_more(self, words: list[tuple[str, int]], number: int, hint: str) -> None:
        if words:
            raise self._problem(f"'{words[0][0]}' is one word too many.", number, words[0], hint)

    def _check_order(self, directives: list[Directive]) -> None:
        """What refers to SQL stands below some."""
        seen = False
        for directive in directives:
            seen = seen or isinstance(directive, Sql)
            if not seen and isinstance(directive, ExpectTable | ExpectError | ExpectPlan | Restart):
                word = self._lines[directive.line - 1].split()[0]
                raise self._problem(f"'{word}' needs SQL above it.", directive.line, (word, 0))

    def _problem(self, fact: str, number: int, at: tuple[str, int], hint: str = "") -> SqlError:
        position = Position(number, at[1] + 1, self._lines[number - 1], max(1, len(at[0])))
        return SqlError(fact, position=position, script=self._path, hint=hint)
