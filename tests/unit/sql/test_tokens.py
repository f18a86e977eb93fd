"""Flink's lexical rules: where a token begins and ends, and what it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.sql.tokens import TokenKind, tokenize


def sketch(text: str) -> str:
    return " ".join(f"{token.kind.name.lower()}:{token.text}" for token in tokenize(text))


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("a_1 É x$y", "word:a_1 word:É word:x$y"),
        ("`a``b`", "name:a`b"),
        ("'it''s' N'q' n''", "string:it's string:q string:"),
        (r"U&'\0041' 'a\n'", r"unicode_string:\0041 string:a\n"),
        ('"a""b"', "double_quoted:a double_quoted:b"),
        ("x'0a'", "word:x string:0a"),
        ("1 1. 1.5 1e5 1.5E-3", "number:1 number:1. number:1.5 number:1e5 number:1.5E-3"),
        ("1e-x", "number:1e symbol:- word:x"),
        ("1a 0x1F", "number:1 word:a number:0 word:x1F"),
        ("a<=b||c=>d", "word:a symbol:<= word:b symbol:|| word:c symbol:=> word:d"),
        ("a-- b\nc /* d */ e", "word:a word:c word:e"),
        ("a /*+ b('*/') */ c", "word:a hint_start:/*+ word:b symbol:( string:*/ symbol:) hint_end:*/ word:c"),
        ("a */ b", "word:a symbol:* symbol:/ word:b"),
        ("{# a #}", "symbol:{ symbol:# word:a symbol:# symbol:}"),
        ("group\n by order  BY(group bye)", "word:GROUP BY word:ORDER BY symbol:( word:group word:bye symbol:)"),
    ],
)
def test_tokens(text: str, tokens: str) -> None:
    assert sketch(text) == tokens


def test_only_what_is_not_quoted_can_be_a_key_word() -> None:
    words = [token.word for token in tokenize("""from `from` 'from' "from" = 1""")]
    assert words == ["FROM", "", "", "", "=", ""]


@given(st.text(alphabet=st.sampled_from("aN&U'`\"/*+-\n 1.e{#;=|<")))
def test_tokens_cover_the_text_in_order(text: str) -> None:
    """Nothing overlaps, and nothing but space and comments is between them."""
    end = 0
    for token in tokenize(text):
        assert end <= token.start < token.end
        assert token.kind is not TokenKind.END
        assert not text[end : token.start].strip() or text[end : token.start].lstrip()[:2] in ("--", "//", "/*")
        end = token.end
