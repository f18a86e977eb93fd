"""Lists of legacy options as Flink up to 1.9 wrote them: one key for each part of each element, with its number.

A property of the client is `….0.key` and `….0.value`, an offset `….0.partition` and `….0.offset`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from headwater.options.legacy import OFFSETS, PROPERTIES

__all__ = ["Folded", "folded"]

_PROPERTY = re.compile(re.escape(PROPERTIES) + r"(\d+)\.(key|value)")
_OFFSET = re.compile(re.escape(OFFSETS) + r"\.(\d+)\.(partition|offset)")


@dataclass(frozen=True)
class Folded:
    """`options` without numbered keys; `origins` are the keys as written of each that is made of several."""

    options: Mapping[str, str]
    origins: Mapping[str, tuple[str, ...]]

    def unfolded(self, parts: Mapping[str, Mapping[str, str]]) -> dict[str, Mapping[str, str]]:
        """By keys as written: the first of several stands for all of them."""
        found: dict[str, Mapping[str, str]] = {}
        for key, part in parts.items():
            first, *others = self.origins.get(key, (key,))
            found |= {first: part, **{other: {} for other in others}}
        return found


def folded(written: Mapping[str, str]) -> Folded:
    """Elements that are not complete stay as they are."""
    options, origins = dict(written), {}
    for keys in _complete(written, _PROPERTY, ("key", "value")).values():
        plain = PROPERTIES + written[keys[0]]
        options[plain], origins[plain] = written[keys[1]], keys
    offsets = _complete(written, _OFFSET, ("partition", "offset"))
    if offsets and OFFSETS not in written:
        pairs = (f"partition:{written[p]},offset:{written[o]}" for p, o in offsets.values())
        options[OFFSETS] = ";".join(pairs)
        origins[OFFSETS] = tuple(key for keys in offsets.values() for key in keys)
    for keys in origins.values():
        for key in keys:
            del options[key]
    return Folded(options, origins)


def _complete(
    written: Mapping[str, str], pattern: re.Pattern[str], names: tuple[str, str]
) -> dict[str, tuple[str, ...]]:
    """The keys of each number that has both."""
    found: dict[str, dict[str, str]] = {}
    for key in written:
        if match := pattern.fullmatch(key):
            found.setdefault(match[1], {})[match[2]] = key
    return {number: tuple(keys[n] for n in names) for number, keys in found.items() if len(keys) == len(names)}
