"""A script's text: its variables, its places, and problems as errors with a line and a caret.

Variables are replaced before parsing, so the parser's offsets are offsets into the replaced text (`Script.sql`). A
script maps them back: every position a user sees is one in the text as written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping

from sqlglot import exp
from sqlglot.tokens import Token

from headwater.errors import Position, SqlError
from headwater.sql.parse_tokens import SyntaxProblem

__all__ = ["Script", "position_of"]

# Comments, quoted pieces and variables, in this order: what begins first ends first.
_PIECES = re.compile(
    r"""
    (?P<comment> --[^\n\r]* | /\*(?!\+).*?\*/ )
  | (?P<quoted> '(?:[^']|'')*' | "[^"]*" | `(?:[^`]|``)*` )
  | (?P<open> /\*(?!\+) | /\*(?=\+)(?!.*?\*/) | ' | " | ` )
  | (?P<escape> \$\$\{ )
  | (?P<variable> \$\{ (?P<name>[^{}\n]*) (?P<closed>\})? )
    """,
    re.VERBOSE | re.DOTALL,
)
_VARIABLE = re.compile(r"(?P<escape>\$\$\{)|(?P<variable>\$\{(?P<name>[^{}\n]*)(?P<closed>\})?)")
# The values of options whose key sounds secret are never shown, not even in the line above a caret.
_SECRET = re.compile(
    r"""(?P<key>(?P<q>['"])[^'"\n]*(?:password|secret|token|jaas|api-?key|credential|auth-params|basic-auth)[^'"\n]*(?P=q)
    \s*=\s*)(?P<value>'(?:[^']|'')*'|"[^"]*")""",
    re.VERBOSE | re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_UNCLOSED = {
    "/*": ("A comment or hint is not closed", "End it with */."),
    "'": ("A text is not closed", "End it with '; a quote inside a text is doubled: 'it''s'."),
    '"': ("A double-quoted text is not closed", 'End it with ".'),
    "`": ("A quoted name is not closed", "End it with `."),
}


class Script:
    """A script as written. `variables` replace `${name}` everywhere but in comments; `$${` is a plain `${`.

    A value is data where the variable stands inside quotes: quotes in it are doubled and end nothing.
    """

    def __init__(self, text: str, name: str = "", variables: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.name = name
        self._shown = _SECRET.sub(lambda m: m["key"] + re.sub(r"[^\r\n]", "*", m["value"]), text)
        self._lines = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
        # Where each run of unchanged text begins: in `sql`, and in `text`. A replaced variable is a run of its own.
        self._sql_starts: list[int] = []
        self._text_starts: list[int] = []
        self._fixed: list[bool] = []
        self.sql = self._replaced(variables or {})
        self._check_closed()

    def position(self, of: exp.Expr | Token | int, length: int = 1) -> Position:
        """The place of a token, of a node that has one, or of an offset into `sql`."""
        if isinstance(of, Token):
            return self.span(of.start, of.end + 1)
        if isinstance(of, int):
            return self.span(of, of + length)
        found = position_of(of, self)
        if found is None:
            raise ValueError(f"this node has no place in the script: {of!r}")
        return found

    def span(self, start: int, end: int) -> Position:
        """The place of `sql[start:end]`; the caret stops at the end of the line."""
        first, last = self._written(start), self._written(max(start, end - 1), last=True)
        first = min(first, len(self.text))
        number = bisect_right(self._lines, first)
        begin = self._lines[number - 1]
        line = re.split(r"[\r\n]", self._shown[begin:], maxsplit=1)[0]
        length = max(1, min(last + 1 - first, len(line) - (first - begin)))
        return Position(number, first - begin + 1, line, length)

    def written(self, start: int, end: int) -> str:
        """The text as written that became `sql[start:end]`."""
        first, last = self.place(start, end)
        return self.text[first:last]

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where in `text` that is which became `sql[start:end]`."""
        return self._written(start), self._written(end - 1, last=True) + 1

    def error(self, problem: SyntaxProblem) -> SqlError:
        position = self.span(problem.start, problem.end)
        return SqlError(problem.fact, position=position, script=self.name, detail=problem.detail, hint=problem.hint)

    def _written(self, offset: int, last: bool = False) -> int:
        """The offset in `text` of an offset in `sql`; inside a replaced variable, that of the variable."""
        if not self._sql_starts:
            return offset
        run = bisect_right(self._sql_starts, offset) - 1
        if not self._fixed[run]:
            return self._text_starts[run] + offset - self._sql_starts[run]
        return self._text_starts[run + 1] - 1 if last else self._text_starts[run]

    def _replaced(self, variables: Mapping[str, str]) -> str:
        """Check that everything quoted is closed, and put in the variables."""
        out: list[str] = []
        done = size = 0

        def run(piece: str, start: int, fixed: bool) -> None:
            nonlocal size
            self._sql_starts.append(size)
            self._text_starts.append(start)
            self._fixed.append(fixed)
            out.append(piece)
            size += len(piece)

        for found, quote in self._variables():
            run(self.text[done : found.start()], done, False)
            value = "${" if found["escape"] else self._value(found, variables)
            if quote == '"' and quote in value:
                self._fail("A value with a double quote inside double quotes", *found.span(), "Use single quotes here.")
            run(value.replace(quote, quote * 2) if quote else value, found.start(), True)
            done = found.end()
        run(self.text[done:], done, False)
        self._text_starts.append(len(self.text))
        return "".join(out)

    def _check_closed(self) -> None:
        """A value outside quotes may bring a quote that nothing closes."""
        for piece in _PIECES.finditer(self.sql):
            if piece["open"]:
                fact, hint = _UNCLOSED[piece["open"]]
                raise self.error(SyntaxProblem(fact, piece.start(), piece.end(), hint=hint))

    def _variables(self) -> list[tuple[re.Match[str], str]]:
        """The variables and escapes of the text, none in a comment, each with the quote it stands in."""
        found: list[tuple[re.Match[str], str]] = []
        at = 0
        while piece := _PIECES.search(self.text, at):
            at = piece.end()
            if piece["open"]:
                fact, hint = _UNCLOSED[piece["open"]]
                self._fail(fact, piece.start(), piece.end(), hint)
            if piece["quoted"]:
                inner = _VARIABLE.finditer(self.text, piece.start(), piece.end())
                found.extend((variable, piece[0][0]) for variable in inner)
            elif not piece["comment"]:
                found.append((piece, ""))
        return found

    def _value(self, found: re.Match[str], variables: Mapping[str, str]) -> str:
        name = found["name"].strip()
        if not found["closed"] or not _NAME.fullmatch(name):
            fact = "Not a variable's name" if found["closed"] else "A variable is not closed"
            self._fail(fact, *found.span(), "A variable is ${name}; write $${ for a plain ${.")
        if name not in variables:
            known = ", ".join(sorted(variables))
            hint = f"Known variables: {known}." if known else f"Give it a value with --var {name}=…"
            self._fail(f"Unknown variable '{name}'", *found.span(), hint)
        return variables[name]

    def _fail(self, fact: str, start: int, end: int, hint: str) -> None:
        self._sql_starts.clear()
        raise self.error(SyntaxProblem(fact, start, end, hint=hint)) from None


def position_of(node: exp.Expr | None, script: Script) -> Position | None:
    """The place of a node: its own, else that of the part of it that comes first, else that of what it is part of."""
    current = node
    while current is not None:
        start = _first_start(current)
        if start is not None:
            return script.span(*start)
        current = current.parent
    return None


def _first_start(node: exp.Expr) -> tuple[int, int] | None:
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    places = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    return min(places, default=None)
