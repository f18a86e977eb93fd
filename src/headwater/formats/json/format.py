"""JSON objects, as Flink's `json` format reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.formats.base import Decoder, DecodeRequest, FormatField
from headwater.formats.json.arrays import json_rows
from headwater.formats.json.decode import json_decoder
from headwater.formats.json.encode import json_encoder
from headwater.formats.json.options import READING, WRITING
from headwater.options.base import Option
from headwater.options.types import BOOL
from headwater.sql.types import SqlType

__all__ = ["JsonFormat", "json_type_problems"]


class JsonFormat:
    identifier = "json"
    summary = "One JSON object per message, or an array of them."
    insert_only = True
    decodes_null = False
    partial_rows = True
    options: tuple[Option, ...] = (
        Option("fail-on-missing-field", BOOL, "Whether a message without one of the fields is an error.", False),
        *READING,
        *WRITING,
        Option(
            "decode.json-parser.enabled",
            BOOL,
            "Which of two parsers Flink uses. There is one parser here, and both values are accepted.",
            True,
        ),
    )

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = json_type_problems(fields)
        if options["fail-on-missing-field"] and options["ignore-parse-errors"]:
            problems.append("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
        return problems

    def decoder(self, request: DecodeRequest) -> Decoder:
        decoder = json_decoder(request.payload, request.alias, request.wanted_fields, request.options)
        return replace(decoder, rows=json_rows)

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        return json_encoder(fields, columns, options)


def json_type_problems(fields: Sequence[FormatField]) -> list[str]:
    """Fields whose type cannot be in JSON, one sentence each."""
    return [problem for f in fields for problem in _type_problems(f.name, f.type)]


def _type_problems(where: str, kind: SqlType) -> list[str]:
    if kind.name in {"MAP", "MULTISET"}:
        key = kind.key if kind.name == "MAP" else kind.element
        if key is not None and not key.is_string:
            text = f"JSON format doesn't support non-string as key type of map. The type is: {kind}"
            return [f"{text} (field '{where}')."]
    if kind.name.startswith("INTERVAL") or kind.name == "NULL":
        return [f"Field '{where}' is {kind}, which cannot be in a message."]
    inner = [
        *((where, t) for t in (kind.element,) if t is not None),
        *((f"{where}.{f.name}", f.type) for f in kind.fields),
    ]
    return [problem for path, t in inner for problem in _type_problems(path, t)]
