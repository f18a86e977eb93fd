"""SQL/JSON paths: `lax $.a['b c'][0]`, as far as Spark can follow them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headwater.sql.functions.spark_sql import Refused

__all__ = ["JsonPath", "parse_path"]

_MODE = re.compile(r"\s*(?:(lax|strict)\s+)?(.*)", re.IGNORECASE | re.DOTALL)
_STEP = re.compile(
    r"""\.?\[\s*(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<index>\d+))\s*\]|\.(?P<name>[^.\[\]\s'"*]+)"""
)


@dataclass(frozen=True)
class JsonPath:
    """`spark` is the path in a form that get_json_object and variant_get both read."""

    spark: str
    lax: bool


def parse_path(text: str) -> JsonPath:
    found = _MODE.fullmatch(text)
    assert found is not None
    mode, path = found[1], found[2].strip()
    if not path.startswith("$"):
        raise _refused(text, "A path starts with $.")
    steps, place = ["$"], 1
    while place < len(path):
        step = _STEP.match(path, place)
        if step is None:
            raise _refused(text, "Supported are members ($.a, $['a b']) and positions ($.a[0]).")
        name = next((step[group] for group in ("single", "double", "name") if step[group] is not None), None)
        if name is not None and "'" in name:
            raise _refused(text, "A member's name cannot contain a quote.")
        # In brackets, which both functions read alike, whatever is in the name.
        steps.append(f"['{name}']" if name is not None else f"[{step['index']}]")
        place = step.end()
    return JsonPath("".join(steps), (mode or "").lower() == "lax")


def _refused(text: str, hint: str) -> Refused:
    return Refused(f"The JSON path '{text}' is not supported", hint=hint, argument=1)
