"""The options of `csv` as one value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["CsvDialect", "unescape_java"]

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "b": "\b", "f": "\f"}


@dataclass(frozen=True)
class CsvDialect:
    """`quote`, `escape` and `null` are None where there is none."""

    delimiter: str
    quote: str | None
    escape: str | None
    null: str | None
    array_delimiter: str
    comments: bool
    ignore_errors: bool
    plain_decimals: bool
    trim: bool
    ignore_extra: bool
    trailing_delimiter: bool
    fail_on_missing: bool
    empty_as_null: bool

    @staticmethod
    def of(options: Mapping[str, Any]) -> CsvDialect:
        quote = options["quote-character"]
        return CsvDialect(
            delimiter=unescape_java(options["field-delimiter"]),
            quote=None if options["disable-quote-character"] else '"' if quote is None else quote,
            escape=options["escape-character"],
            null=options["null-literal"],
            array_delimiter=options["array-element-delimiter"],
            comments=options["allow-comments"],
            ignore_errors=options["ignore-parse-errors"],
            plain_decimals=not options["write-bigdecimal-in-scientific-notation"],
            trim=options["trim-spaces"],
            ignore_extra=options["ignore-trailing-unmappable"],
            trailing_delimiter=options["allow-trailing-comma"],
            fail_on_missing=options["fail-on-missing-columns"],
            empty_as_null=options["empty-string-as-null"],
        )


def unescape_java(text: str) -> str:
    """`\\t`, `\\u0001` and so on in an option; whatever else follows a backslash stands for itself."""

    def one(match: re.Match[str]) -> str:
        code = match[1]
        return chr(int(code[-4:], 16)) if code.startswith("u") else _ESCAPES.get(code, code)

    return re.sub(r"\\(u+[0-9a-fA-F]{4}|.)", one, text)
