"""Lines → rows as Spark SQL: `from_csv` finds the tokens, and each wanted column converts its own.

Spark's parser fills `_bad` where a line has another number of columns than the table. Only then they are counted: a
marker put behind the line is found again as the token after the last one.

`columns` is the faster way for many messages at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headwater.formats.base import Decoder, DecodeRequest
from headwater.formats.csv.columns import csv_reader
from headwater.formats.csv.dialect import CsvDialect
from headwater.formats.csv.scalars import converted_token, misread_token
from headwater.formats.strings import text_of
from headwater.sql.spark_text import once, string_literal, string_map

__all__ = ["csv_decoder"]

# Characters that Unicode reserves for programs: they stand for escaped ones while Spark looks for tokens.
_RESERVED = [chr(0xFDD0 + i) for i in range(16)]
_MARKER = chr(0xFDEF)
_SPECIAL = {"0": "\0", "n": "\n", "r": "\r", "t": "\t"}


def csv_decoder(request: DecodeRequest, dialect: CsvDialect) -> Decoder:
    return _Line(request, dialect).decoder(request.wanted)


class _Line:
    def __init__(self, request: DecodeRequest, dialect: CsvDialect) -> None:
        self._alias = alias = request.alias
        self._fields = request.fields
        self._dialect = dialect
        self._raw, self._text = f"{alias}_raw", f"{alias}_text"
        self._marked, self._count, self._tokens = (f"{alias}_{what}" for what in ("marked", "count", "tokens"))
        self._payload = request.payload

    def decoder(self, wanted: Sequence[str]) -> Decoder:
        positions = [next(i for i, f in enumerate(self._fields) if f.name == name) for name in wanted]
        tokens = [f"{self._tokens}.c{i}" for i in positions]
        kinds = [self._fields[i].type for i in positions]
        columns = tuple(converted_token(t, k, self._dialect) for t, k in zip(tokens, kinds, strict=True))
        line = [f"WHEN {wrong} THEN {sentence}" for wrong, sentence in self._wrong_lines()]
        # All fields, not only the wanted ones: the number of columns in a line is part of its validity.
        reader = csv_reader(self._fields, [self._fields[i] for i in positions], self._dialect)
        decoder = Decoder(self._parsed(), columns, before=self._before(), after=self._after(positions), reader=reader)
        if self._dialect.ignore_errors:
            return replace(decoder, skip=f"CASE {' '.join(line)} END IS NOT NULL")
        # Lines are judged before values: with a column too many, every value may be that of its neighbour.
        broken = [misread_token(t, self._fields[i], self._dialect) for i, t in zip(positions, tokens, strict=True)]
        error = (f"{self._alias}_error", once(f"CASE {' '.join(line + [b for b in broken if b])} END"))
        return replace(decoder, error=error[0], after=(*decoder.after, error))

    def _before(self) -> tuple[tuple[str, str], ...]:
        line = _protected(_first_line(_uncommented(self._raw, self._dialect), self._dialect), self._dialect)
        return ((self._raw, text_of(self._payload)), (self._text, line))

    def _after(self, positions: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """The line with its marker, where it may be needed; and the text of every wanted column."""
        # Counting columns needs a second parse, with a marker behind the line: only where the number may be wrong.
        doubtful = self._bad
        if self._dialect.quote is not None:
            doubtful = f"{doubtful} OR {self._odd_quotes(self._dialect.quote)}"
        tokens = ", ".join(f"'c{i}', {self._token(i)}" for i in positions)
        return (
            (self._marked, f"IF({doubtful}, {self._with_marker()}, NULL)"),
            (self._count, self._columns_found()),
            (self._tokens, once(f"named_struct({tokens})")),
        )

    def _parsed(self) -> str:
        return once(_from_csv(self._text, len(self._fields), self._dialect))

    @property
    def _bad(self) -> str:
        return f"{self._alias}._bad IS NOT NULL"

    def _token(self, position: int) -> str:
        """The text of a column. Spark has NULL where the line has nothing; a column that is not there is NULL."""
        # Spark's parser does not tell an empty token from a missing one; the marker does.
        found = f"{self._alias}.c{position}"
        there = f"{self._alias} IS NOT NULL AND ({self._alias}._bad IS NULL OR {position} < {self._count})"
        token = f"CASE WHEN {found} IS NOT NULL THEN {found} WHEN {there} THEN '' END"
        token = _restored(token, self._dialect)
        nothing = [self._dialect.null] if self._dialect.null is not None else []
        nothing += [""] if self._dialect.empty_as_null else []
        for literal in nothing:
            token = f"nullif({token}, {string_literal(literal)})"
        return token

    def _with_marker(self) -> str:
        line = f"concat({self._text}, {string_literal(self._dialect.delimiter + _MARKER)})"
        return _from_csv(line, len(self._fields) + 2, self._dialect)

    def _columns_found(self) -> str:
        """How many columns the line has; -1 if they are more than one too many, or a quote is not closed."""
        tokens = ", ".join(f"{self._marked}.c{i}" for i in range(len(self._fields) + 2))
        return f"(array_position(array({tokens}), {string_literal(_MARKER)}) - 1)"

    def _wrong_lines(self) -> list[tuple[str, str]]:
        expected, count, found = len(self._fields), self._count, []
        found.append((f"{self._alias} IS NULL OR {self._text} = ''", "'The message is empty.'"))
        if self._dialect.quote is not None:
            unclosed = f"{self._odd_quotes(self._dialect.quote)} AND {count} < 0 AND {self._unclosed()}"
            found.append((unclosed, "'Missing closing quote for value.'"))
        if not self._dialect.ignore_extra:
            extra = f"{self._bad} AND ({count} < 0 OR {count} > {expected})"
            if self._dialect.trailing_delimiter:
                extra += f" AND NOT ({count} = {expected + 1} AND {self._marked}.c{expected} IS NULL)"
            found.append((extra, string_literal(f"Too many entries: expected at most {expected} columns.")))
        if self._dialect.fail_on_missing:
            sentence = (
                f"concat({string_literal(f'Row length mismatch. {expected} fields expected but was ')}, {count}, '.')"
            )
            found.append((f"{self._bad} AND {count} >= 0 AND {count} < {expected}", sentence))
        return [*found, (f"NOT is_valid_utf8(CAST({self._payload} AS STRING))", "'It is not UTF-8.'")]

    def _odd_quotes(self, quote: str) -> str:
        others = string_literal(f"[^{_in_class(quote)}]")
        odd = f"length(regexp_replace({self._text}, {others}, '')) % 2 = 1"
        return f"(contains({self._text}, {string_literal(quote)}) AND {odd})"

    def _unclosed(self) -> str:
        """The marker is then no token of its own, but the end of one."""
        tokens = ", ".join(f"{self._marked}.c{i}" for i in range(len(self._fields) + 2))
        return f"exists(array({tokens}), token -> endswith(token, {string_literal(_MARKER)}))"


def _from_csv(line: str, columns: int, dialect: CsvDialect) -> str:
    quote = dialect.quote or "\0"
    blanks = "true" if dialect.trim else "false"
    options = {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": "_bad",
        "sep": dialect.delimiter,
        "quote": quote,
        "escape": quote,
        "nullValue": _RESERVED[-1],
        "emptyValue": "",
        "ignoreLeadingWhiteSpace": blanks,
        "ignoreTrailingWhiteSpace": blanks,
    }
    schema = ", ".join([*(f"c{i} STRING" for i in range(columns)), "_bad STRING"])
    return f"from_csv({line}, {string_literal(schema)}, {string_map(options)})"


def _first_line(line: str, dialect: CsvDialect) -> str:
    """Without what is behind the first line end that is not inside quotes. Few messages have any."""
    quote = "" if dialect.quote is None else _in_class(dialect.quote)
    in_quotes = f"|{quote}[^{quote}]*+{quote}" if quote else ""
    pattern = f"(?s)^((?:[^{quote}\\r\\n]++{in_quotes})*+)[\\r\\n].*$"
    some = f"contains({line}, '\\n') OR contains({line}, '\\r')"
    return f"IF({some}, regexp_replace({line}, {string_literal(pattern)}, '\\u00241'), {line})"


def _uncommented(line: str, dialect: CsvDialect) -> str:
    pattern = string_literal("^(?:[ \\t]*#[^\\n]*(?:\\n|$))+")
    return f"regexp_replace({line}, {pattern}, '')" if dialect.comments else line


def _protected(line: str, dialect: CsvDialect) -> str:
    """The line with reserved characters for escaped ones."""
    if dialect.escape is not None:
        # Spark knows one escape character, for quotes inside quotes. Flink's escapes anything: so escaped characters
        # are replaced before the line is split, and put back in the tokens.
        for shown, reserved in _escapes(dialect):
            line = f"replace({line}, {string_literal(dialect.escape + shown)}, {string_literal(reserved)})"
        line = f"replace({line}, {string_literal(dialect.escape)}, '')"
    return line


def _restored(token: str, dialect: CsvDialect) -> str:
    if dialect.escape is None:
        return token
    for shown, reserved in _escapes(dialect):
        token = f"replace({token}, {string_literal(reserved)}, {string_literal(_SPECIAL.get(shown, shown))})"
    return token


def _escapes(dialect: CsvDialect) -> list[tuple[str, str]]:
    """Characters that mean something behind the escape. The escape itself comes first: pairs of it are taken from the
    left, so that what is left of it escapes the next character."""
    assert dialect.escape is not None
    shown = [dialect.escape, dialect.delimiter, *([dialect.quote] if dialect.quote else []), *_SPECIAL, "\n", "\r"]
    return list(zip(dict.fromkeys(shown), _RESERVED, strict=False))


def _in_class(char: str) -> str:
    return f"\\x{{{ord(char):x}}}"
