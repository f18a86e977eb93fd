"""Options of a script rewritten where they stand. All around them stays as it is: comments, layout, variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from headwater.sql.parse_source import Script
from headwater.sql.parse_tokens import DOUBLE_QUOTED, HINT_START

__all__ = ["Edit", "OptionGroup", "edited", "group_edit", "option_groups"]

_TEXTS = (TokenType.STRING, DOUBLE_QUOTED)


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
        if token.token_type == HINT_START:
            hinted = tokens[at - 1].text
        word = token.text.upper() if token.token_type not in _TEXTS else ""
        if word in ("WITH", "OPTIONS") and _pairs_follow(tokens[at + 1 : at + 4]):
            found.append(_group(tokens, at + 1, hinted if word == "OPTIONS" else ""))
    return found


def _pairs_follow(tokens: list[Token]) -> bool:
    return len(tokens) == 3 and tokens[0].text == "(" and tokens[1].token_type in _TEXTS and tokens[2].text == "="


def _group(tokens: list[Token], opening: int, hinted: str) -> OptionGroup:
    pairs: list[Pair] = []
    at = opening
    while tokens[at].token_type != TokenType.R_PAREN:
        key, _, value, delimiter = tokens[at + 1 : at + 5]
        pairs.append(Pair(key, value, delimiter))
        at += 4
    return OptionGroup(hinted, tokens[opening], tuple(pairs))


def group_edit(script: Script, group: OptionGroup, parts: Mapping[str, Mapping[str, str]]) -> Edit:
    """The group with each pair replaced by what `parts` has for its key: one pair, several, or none. A value that stays
    the same stays as it was written, with its variables; so do the comments of a pair that goes."""
    begin = end = script.place(group.opening.start, group.opening.end + 1)[1]
    pieces: list[str] = []
    left = None  # what stood in front of pairs that went
    for pair in group.pairs:
        start, after = script.place(pair.key.start, pair.value.end + 1)
        delimiter, behind = script.place(pair.delimiter.start, pair.delimiter.end + 1)
        lead, tail = script.text[end:start], script.text[after:delimiter]
        lead = lead if left is None else _joined(left, lead)
        last = pair is group.pairs[-1]
        written = _written(script, pair, parts[pair.key.text])
        if written:
            pieces += [lead + written[0], *(_blank(lead) + more for more in written[1:])]
            pieces[-1] += "" if last else tail
        left = None if written else lead + (f"{tail.strip()}{_blank(lead)}" if _comment(tail) and not last else "")
        begin_of_closing, end = delimiter, behind
    closing = tail if left is None else _closed(left, tail)
    return Edit(begin, begin_of_closing, ",".join(pieces) + closing)


def _written(script: Script, pair: Pair, today: Mapping[str, str]) -> list[str]:
    (start, middle), (other, end) = (script.place(t.start, t.end + 1) for t in (pair.key, pair.value))
    key, between, value = script.text[start:middle], script.text[middle:other], script.text[other:end]
    return [
        f"{_quoted(name, key)}{between}{value if text == pair.value.text else _quoted(text, value)}"
        for name, text in today.items()
    ]


def _quoted(text: str, like: str) -> str:
    """In the quotes that were used. A plain '${' stays one."""
    text = text.replace("${", "$${")
    return f'"{text}"' if like.startswith('"') else "'" + text.replace("'", "''") + "'"


def _joined(earlier: str, later: str) -> str:
    """The space between two pairs, when a pair in it has gone."""
    if _comment(earlier) or _comment(later):
        return earlier + later.lstrip()
    return later if "\n" in later else earlier


def _closed(left: str, tail: str) -> str:
    """What stands in front of the closing parenthesis, when the last pair has gone."""
    if not _comment(left):
        return tail
    return left.rstrip() + tail if "\n" in tail else left + tail.lstrip()


def _blank(lead: str) -> str:
    """Space for one pair more: a line of its own, where the others have one."""
    return "\n" + lead.rpartition("\n")[2] if "\n" in lead else " "


def _comment(text: str) -> bool:
    return "--" in text or "/*" in text
