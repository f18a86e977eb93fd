"""An option is declared once: key, type, default, meaning. Parsing, errors, `headwater options` and the docs follow."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Option", "OptionType"]


@dataclass(frozen=True)
class OptionType:
    """How text becomes a value. `parse` raises ValueError with a sentence that says what was expected."""

    name: str
    parse: Callable[[str], Any]


@dataclass(frozen=True)
class Option:
    """`required` in a table; `secret` values are never shown; `choices` are matched without regard to case;
    `deprecated` names the option that replaced this one; `prefix` declares a family (`properties.*`)."""

    key: str
    type: OptionType
    meaning: str
    default: Any = None
    required: bool = False
    secret: bool = False
    choices: tuple[str, ...] = ()
    deprecated: str = ""
    prefix: bool = False
