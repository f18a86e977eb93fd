"""Flink's lists and maps in one line of text: parts between delimiters, trimmed, or in single or double quotes."""

from __future__ import annotations

__all__ = ["split_quoted"]


def split_quoted(text: str, delimiter: str) -> list[str]:
    """`'a;b';c` is two parts at ';'. A quote inside quotes is doubled. Empty parts count only between delimiters."""
    parts: list[str] = []
    at, after_delimiter = 0, False
    while at < len(text):
        char = text[at]
        if char == delimiter:
            # As Flink: an empty element counts between two delimiters, but not at the ends.
            if after_delimiter:
                parts.append("")
            after_delimiter, at = True, at + 1
        elif char.isspace():
            at += 1
        else:
            part, at = _quoted(text, at, delimiter) if char in "'\"" else _bare(text, at, delimiter)
            parts.append(part)
            after_delimiter = False
    return parts


def _bare(text: str, start: int, delimiter: str) -> tuple[str, int]:
    end = text.find(delimiter, start)
    end = len(text) if end < 0 else end
    return text[start:end].strip(), end


def _quoted(text: str, start: int, delimiter: str) -> tuple[str, int]:
    quote, at, part = text[start], start + 1, ""
    while at < len(text):
        if text[at] != quote:
            part, at = part + text[at], at + 1
        elif text[at + 1 : at + 2] == quote:
            part, at = part + quote, at + 2
        else:
            return part, _check_end(text, at + 1, delimiter)
    raise ValueError(f"'{text}' has a quote that is not closed.")


def _check_end(text: str, at: int, delimiter: str) -> int:
    rest = text[at:].lstrip()
    if rest and not rest.startswith(delimiter):
        raise ValueError(f"'{text}' has text behind a closing quote.")
    return at
