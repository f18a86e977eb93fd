"""`'format' = 'pipes'`: strings with a bar between them, such as `ann|7`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from headwater.formats.base import Decoder, DecodeRequest, FormatField
from headwater.options.base import Option

__all__ = ["PipesFormat"]


class PipesFormat:
    identifier = "pipes"
    summary = "Strings with a bar between them."
    options: tuple[Option, ...] = ()
    insert_only = True
    decodes_null = False

    def validate(self, fields: Sequence[FormatField], options: Mapping[str, Any]) -> list[str]:
        return [
            f"The 'pipes' format has strings only, not {f.type} ('{f.name}')." for f in fields if not f.type.is_string
        ]

    def decoder(self, request: DecodeRequest) -> Decoder:
        """All Spark SQL: bytes to an array, one element per field; fewer or more are an error."""
        places = {field.name: place for place, field in enumerate(request.fields)}
        return Decoder(
            parsed=f"split(CAST({request.payload} AS STRING), '[|]', -1)",
            columns=tuple(f"{request.alias}[{places[name]}]" for name in request.wanted),
            error=f"IF(size({request.alias}) = {len(places)}, NULL, 'It has another number of fields.')",
        )

    def encoder(self, fields: Sequence[FormatField], columns: Sequence[str], options: Mapping[str, Any]) -> str:
        return f"CAST(concat_ws('|', {', '.join(columns)}) AS BINARY)"
