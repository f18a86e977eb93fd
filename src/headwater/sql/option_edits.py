"""Options of a script replaced where they are written. All around them stays: comments, layout, variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headwater.sql.flink_text import flink_string
from headwater.sql.script import Script
from headwater.sql.tokens import Token, TokenKind

__all__ = ["Edit", "OptionGroup", "edited", "group_edit", "option_groups"]

_STRINGS = (TokenKind.STRING, TokenKind.DOUBLE_QUOTED, TokenKind.UNICODE_STRING)


@dataclass(frozen=True)
class Pair:
    """The tokens of `'key' = 'value'` and of the comma or parenthesis behind it."""

    key: Token
    value: Token
    delimiter: Token


@dataclass(frozen=True)
class OptionGroup:
    """`('key' = 'value', …)` of WITH or of an OPTIONS hint. `hinted` is the name in front of the hint, '' for WITH."""

    hinted: str
    opening: Token
    pairs: tuple[Pair, ...]

    @property
    def options(self) -> dict[str, str]:
        return {pair.key.text: pair.value.text for pair in self.pairs}


@dataclass(frozen=True)
class Edit:
    """Other text for `text[start:end]`."""

    start: int
    end: int
    replacement: str


def edited(text: str, edits: Iterable[Edit]) -> str:
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.replacement + text[edit.end :]
    return text


def option_groups(tokens: list[Token]) -> list[OptionGroup]:
    """All groups of a statement that has been parsed, in order."""
    found = []
    hinted = ""
    for at, token in enumerate(tokens):
        if token.kind is TokenKind.HINT_START:
            hinted = tokens[at - 1].text
        if token.word in ("WITH", "OPTIONS") and _pairs_follow(tokens[at + 1 : at + 4]):
            found.append(_group(tokens, at + 1, hinted if token.word == "OPTIONS" else ""))
    return found


def _pairs_follow(tokens: list[Token]) -> bool:
    return len(tokens) == 3 and tokens[0].word == "(" and tokens[1].kind in _STRINGS and tokens[2].word == "="


def _group(tokens: list[Token], opening: int, hinted: str) -> OptionGroup:
    pairs: list[Pair] = []
    at = opening
    while tokens[at].word != ")":
        key, _, value, delimiter = tokens[at + 1 : at + 5]
        pairs.append(Pair(key, value, delimiter))
        at += 4
    return OptionGroup(hinted, tokens[opening], tuple(pairs))


def group_edit(script: Script, group: OptionGroup, parts: Mapping[str, Mapping[str, str]]) -> Edit:
    """The group with each pair replaced by what `parts` has for its key: one pair, several, or none. A value that stays
    the same stays as it was written, with its variables; so do the comments of a pair that is removed."""
    begin = end = script.written_range(group.opening.start, group.opening.end)[1]
    edit = _GroupEdit(script, parts)
    for pair in group.pairs:
        start, after = script.written_range(pair.key.start, pair.value.end)
        delimiter, behind = script.written_range(pair.delimiter.start, pair.delimiter.end)
        lead, tail = script.text[end:start], script.text[after:delimiter]
        # The space behind the last pair belongs to the closing parenthesis.
        edit.add(pair, lead, "" if pair is group.pairs[-1] else tail)
        end = behind
    closing = tail if edit.orphaned is None else _closed(edit.orphaned, tail)
    return Edit(begin, delimiter, ",".join(edit.pieces) + closing)


@dataclass
class _GroupEdit:
    """`pieces` are the pairs written so far, with the space around them. `orphaned` is what was in front of pairs that
    have been removed since: its comments have to stay, in front of the next pair or of the closing parenthesis."""

    script: Script
    parts: Mapping[str, Mapping[str, str]]
    pieces: list[str] = field(default_factory=list)
    orphaned: str | None = None

    def add(self, pair: Pair, lead: str, tail: str) -> None:
        """A pair with the text in front of it and the text up to its comma."""
        lead = lead if self.orphaned is None else _joined(self.orphaned, lead)
        written = _written(self.script, pair, self.parts[pair.key.text])
        if written:
            self.pieces += [lead + written[0], *(_blank(lead) + more for more in written[1:])]
            self.pieces[-1] += tail
            self.orphaned = None
        else:
            self.orphaned = lead + (f"{tail.strip()}{_blank(lead)}" if _comment(tail) else "")


def _written(script: Script, pair: Pair, current: Mapping[str, str]) -> list[str]:
    (start, middle), (other, end) = (script.written_range(t.start, t.end) for t in (pair.key, pair.value))
    key, between, value = script.text[start:middle], script.text[middle:other], script.text[other:end]
    return [
        f"{_quoted(name, key)}{between}{value if text == pair.value.text else _quoted(text, value)}"
        for name, text in current.items()
    ]


def _quoted(text: str, like: str) -> str:
    """In the quotes that were used. A plain '${' stays one."""
    text = text.replace("${", "$${")
    return f'"{text}"' if like.startswith('"') else flink_string(text)


def _joined(earlier: str, later: str) -> str:
    """The space between two pairs, when the pair between them has been removed."""
    if _comment(earlier) or _comment(later):
        return earlier + later.lstrip()
    return later if "\n" in later else earlier


def _closed(left: str, tail: str) -> str:
    """What is in front of the closing parenthesis, when the last pair has been removed."""
    if not _comment(left):
        return tail
    return left.rstrip() + tail if "\n" in tail else left + tail.lstrip()


def _blank(lead: str) -> str:
    """Space for one pair more: a line of its own, where the others have one."""
    return "\n" + lead.rpartition("\n")[2] if "\n" in lead else " "


def _comment(text: str) -> bool:
    return "--" in text or "/*" in text or "//" in text
