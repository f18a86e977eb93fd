"""A script's text: its variables, the positions in it, and syntax errors as errors with a line and a caret.

Variables (`${name}`) are replaced before anything is parsed, in names, options and strings alike, but not in comments,
so that a script can be commented out. The parser's offsets are therefore offsets into the replaced text (`Script.sql`);
a script maps them back: every position that a user sees is one in the text as written.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping

from sqlglot import exp

from headwater.errors import Position, SqlError
from headwater.sql.tokens import COMMENT, DOUBLE_QUOTED, NAME, STRING, Token

__all__ = ["Script", "SyntaxFault", "position_of"]

# Comments, quoted pieces and variables, in this order: what begins first ends first.
_PIECES = re.compile(
    rf"""
    (?P<comment> {COMMENT} )
  | (?P<quoted> {STRING} | {DOUBLE_QUOTED} | {NAME} )
  | (?P<open> /\*(?!\+) | /\*(?=\+)(?!.*?\*/) | ' | " | ` )
  | (?P<escape> \$\$\{{ )
  | (?P<variable> \$\{{ (?P<name>[^{{}}\n]*) (?P<closed>\}})? )
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
_LINE_END = re.compile(r"[\r\n]")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_OUTSIDE = re.compile(r"(env|file):.+")  # who gives the variables knows where to look
_UNCLOSED = {
    "/*": ("A comment or hint is not closed", "End it with */."),
    "'": ("A string is not closed", "End it with '; a quote inside a string is doubled: 'it''s'."),
    '"': ("A double-quoted string is not closed", 'End it with ".'),
    "`": ("A quoted name is not closed", "End it with `."),
}


class SyntaxFault(Exception):
    """What is wrong at `start`..`end` (offsets into the SQL text, `end` exclusive). `Script.error` makes a SqlError."""

    def __init__(self, fact: str, start: int, end: int, *, detail: str = "", hint: str = "") -> None:
        super().__init__(fact)
        self.fact = fact
        self.start = start
        self.end = end
        self.detail = detail
        self.hint = hint


class Script:
    """A script as written. `variables` replace `${name}` everywhere but in comments; `$${` is a plain `${`.

    A value is data where the variable is inside quotes: quotes in it are doubled and end nothing.
    """

    def __init__(self, text: str, name: str = "", variables: Mapping[str, str] | None = None) -> None:
        self.text = text
        self.name = name
        self._shown = _SECRET.sub(lambda m: m["key"] + re.sub(r"[^\r\n]", "*", m["value"]), text)
        self._lines = [0, *(m.end() for m in re.finditer(r"\r\n|\r|\n", text))]
        # Where each run of unchanged text begins: in `sql`, and in `text`. A replaced variable is a run of its own.
        self._sql_starts: list[int] = []
        self._text_starts: list[int] = []
        self._replaced: list[bool] = []
        self.sql = self._with_values({} if variables is None else variables)
        # Once more: a value outside quotes may bring a quote that nothing closes.
        for _ in self._pieces(self.sql):
            pass

    def position(self, of: exp.Expr | Token) -> Position:
        """The position of a token, or of a node that has one."""
        if isinstance(of, Token):
            return self.span(of.start, of.end)
        found = position_of(of, self)
        if found is None:
            raise ValueError(f"this node has no position in the script: {of!r}")
        return found

    def span(self, start: int, end: int) -> Position:
        """The position of `sql[start:end]`; the caret stops at the end of the line."""
        first, last = self._written(start)[0], self._written(max(start, end - 1))[1]
        first = min(first, len(self.text))
        number = bisect_right(self._lines, first)
        begin = self._lines[number - 1]
        end_of_line = _LINE_END.search(self._shown, begin)
        line = self._shown[begin : end_of_line.start() if end_of_line else None]
        length = max(1, min(last + 1 - first, len(line) - (first - begin)))
        return Position(number, first - begin + 1, line, length)

    def written(self, start: int, end: int) -> str:
        """The text as written that became `sql[start:end]`."""
        first, last = self.written_range(start, end)
        return self.text[first:last]

    def written_range(self, start: int, end: int) -> tuple[int, int]:
        """The part of `text` that became `sql[start:end]`."""
        return self._written(start)[0], self._written(end - 1)[1] + 1

    def error(self, fault: SyntaxFault) -> SqlError:
        position = self.span(fault.start, fault.end)
        return SqlError(fault.fact, position=position, script=self.name, detail=fault.detail, hint=fault.hint)

    def _written(self, offset: int) -> tuple[int, int]:
        """The offset in `text` of an offset in `sql`, twice; inside a replaced variable, its first and its last."""
        if not self._sql_starts:
            return offset, offset
        run = bisect_right(self._sql_starts, offset) - 1
        if not self._replaced[run]:
            plain = self._text_starts[run] + offset - self._sql_starts[run]
            return plain, plain
        return self._text_starts[run], self._text_starts[run + 1] - 1

    def _with_values(self, variables: Mapping[str, str]) -> str:
        """The text with values for its variables. Fills the runs that map offsets back."""
        out: list[str] = []
        starts: list[tuple[int, int, bool]] = []
        done = size = 0

        def run(piece: str, start: int, *, replaced: bool) -> None:
            nonlocal size
            starts.append((size, start, replaced))
            out.append(piece)
            size += len(piece)

        for found, quote in list(self._variables()):  # all, so that what is not closed is reported first
            run(self.text[done : found.start()], done, replaced=False)
            run(self._value(found, quote, variables), found.start(), replaced=True)
            done = found.end()
        run(self.text[done:], done, replaced=False)
        self._sql_starts = [sql_start for sql_start, _, _ in starts]
        self._text_starts = [*(text_start for _, text_start, _ in starts), len(self.text)]
        self._replaced = [replaced for _, _, replaced in starts]
        return "".join(out)

    def _pieces(self, text: str) -> Iterator[re.Match[str]]:
        """Comments, quoted pieces and variables. Raises at a quote or comment that nothing closes."""
        for piece in _PIECES.finditer(text):
            if piece["open"]:
                fact, hint = _UNCLOSED[piece["open"]]
                raise self.error(SyntaxFault(fact, *piece.span(), hint=hint))
            yield piece

    def _variables(self) -> Iterator[tuple[re.Match[str], str]]:
        """The variables and escapes of the text, none in a comment, each with the quote that it is in."""
        for piece in self._pieces(self.text):
            if piece["quoted"]:
                inner = _VARIABLE.finditer(self.text, *piece.span())
                yield from ((variable, piece[0][0]) for variable in inner)
            elif not piece["comment"]:
                yield piece, ""

    def _value(self, found: re.Match[str], quote: str, variables: Mapping[str, str]) -> str:
        if found["escape"]:
            return "${"
        name = found["name"].strip()
        outside = name.partition(":")[0] if _OUTSIDE.fullmatch(name) else ""
        if not found["closed"] or not (outside or _NAME.fullmatch(name)):
            fact = "Not a variable's name" if found["closed"] else "A variable is not closed"
            raise self._fault(found, fact, "A variable is ${name}; write $${ for a plain ${.")
        if name not in variables and outside:
            raise self._fault(found, *_not_there(name))
        if name not in variables:
            known = ", ".join(sorted(variables))
            hint = f"Known variables: {known}." if known else f"Give it a value with --var {name}=…"
            raise self._fault(found, f"Unknown variable '{name}'", hint)
        value = variables[name]
        if quote == '"' and quote in value:
            raise self._fault(found, "A value with a double quote inside double quotes", "Use single quotes here.")
        return value.replace(quote, quote * 2) if quote else value

    def _fault(self, found: re.Match[str], fact: str, hint: str) -> SqlError:
        """An error in `text` itself: no run has been filled yet, so its offsets are taken as they are."""
        return self.error(SyntaxFault(fact, *found.span(), hint=hint))


def _not_there(name: str) -> tuple[str, str]:
    kind, _, what = name.partition(":")
    if kind == "env":
        return f"The environment variable '{what.strip()}' is not set", "Set it before the command is started."
    return f"The file '{what.strip()}' cannot be read", "A relative path is one beside the script."


def position_of(node: exp.Expr | None, script: Script) -> Position | None:
    """The position of a node: its own, else that of the part of it that comes first, else that of its parent."""
    current = node
    while current is not None:
        span = _first_span(current)
        if span is not None:
            return script.span(*span)
        current = current.parent
    return None


def _first_span(node: exp.Expr) -> tuple[int, int] | None:
    # `end` in `meta` is inclusive, as sqlglot has it.
    if "start" in node.meta:
        return node.meta["start"], node.meta["end"] + 1
    spans = [(n.meta["start"], n.meta["end"] + 1) for n in node.walk() if "start" in n.meta]
    return min(spans, default=None)
