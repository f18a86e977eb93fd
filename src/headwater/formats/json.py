"""JSON objects, as Flink's `json` format reads and writes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import Decoder, FormatField
from headwater.formats.json_decode import json_decoder
from headwater.formats.json_encode import json_encoder
from headwater.options.base import Option
from headwater.options.types import BOOL, STRING, enum
from headwater.sql.types import SqlType

__all__ = ["JsonFormat"]

_STANDARDS = ("SQL", "ISO-8601")
_NULL_KEYS = ("FAIL", "DROP", "LITERAL")


class JsonFormat:
    identifier = "json"
    summary = "One JSON object per message."
    insert_only = True
    decodes_null = False
    options: tuple[Option, ...] = (
        Option("fail-on-missing-field", BOOL, "Whether a message without one of the fields is an error.", False),
        Option(
            "ignore-parse-errors",
            BOOL,
            "Whether a field that cannot be read is NULL and a message that is no JSON is skipped: no errors.",
            False,
        ),
        Option(
            "timestamp-format.standard",
            enum(_STANDARDS),
            "How timestamps are written: '2020-01-01 12:34:56.789' (SQL) or '2020-01-01T12:34:56.789' (ISO-8601). "
            "Both are read.",
            "SQL",
            choices=_STANDARDS,
        ),
        Option(
            "map-null-key.mode",
            enum(_NULL_KEYS),
            "What happens to a NULL key of a MAP. Spark's maps have none.",
            "FAIL",
            choices=_NULL_KEYS,
        ),
        Option("map-null-key.literal", STRING, "What LITERAL writes for a NULL key of a MAP.", "null"),
        Option(
            "encode.decimal-as-plain-number",
            BOOL,
            "Whether 100 is written as 100.00 (with the scale of its type) instead of 1E+2.",
            False,
        ),
        Option("encode.ignore-null-fields", BOOL, "Whether fields that are NULL are left out when writing.", False),
        Option(
            "decode.json-parser.enabled",
            BOOL,
            "Which of two parsers Flink uses. There is one parser here, and both values are accepted.",
            True,
        ),
    )

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        problems = [problem for f in fields for problem in _type_problems(f.name, f.type)]
        if options["fail-on-missing-field"] and options["ignore-parse-errors"]:
            problems.append("fail-on-missing-field and ignore-parse-errors shouldn't both be true.")
        return problems

    def decoder(
        self,
        payload: str,
        alias: str,
        fields: Sequence[FormatField],
        wanted: Sequence[str],
        options: Mapping[str, Any],
    ) -> Decoder:
        by_name = {f.name: f for f in fields}
        return json_decoder(payload, alias, [by_name[w] for w in wanted], options)

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        return json_encoder(fields, columns, options)


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
