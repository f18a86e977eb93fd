"""Options after reading: every declared key has a typed value, its own or its default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from headwater.options.secrets import masked
from headwater.options.types import show

__all__ = ["ResolvedOptions"]


@dataclass(frozen=True)
class ResolvedOptions:
    """`values` holds every declared option, `given` the text of those that were written, families (`properties.*`)
    included. Asking for a key nobody declared is a mistake in the program and raises KeyError."""

    values: Mapping[str, Any]
    given: Mapping[str, str]

    def __post_init__(self) -> None:
        # Copied, because a frozen value must not change when its caller's dictionary does.
        object.__setattr__(self, "values", dict(self.values))
        object.__setattr__(self, "given", dict(self.given))

    def __repr__(self) -> str:
        return f"ResolvedOptions({masked(self.given)})"

    def __hash__(self) -> int:
        return hash(frozenset(self.given.items()))

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def is_given(self, key: str) -> bool:
        return key in self.given

    def string(self, key: str) -> str:
        """The value of a text or an enumeration, else the text that was given; '' if there is none."""
        value = self.values[key]
        return value if isinstance(value, str) else self.given.get(key, "" if value is None else show(value))

    def integer(self, key: str) -> int | None:
        value: int | None = self.values[key]
        return value

    def flag(self, key: str) -> bool:
        return bool(self.values[key])

    def duration(self, key: str) -> timedelta:
        value: timedelta = self.values[key]
        return value

    def strings(self, key: str) -> tuple[str, ...]:
        value: tuple[str, ...] | None = self.values[key]
        return value or ()

    def family(self, prefix: str) -> dict[str, str]:
        """The strings given under `prefix`, which ends in a dot, without it."""
        return {key.removeprefix(prefix): text for key, text in self.given.items() if key.startswith(prefix)}

    def below(self, prefix: str) -> dict[str, Any]:
        """The values of all declared options under `prefix`, which ends in a dot, without it."""
        return {key.removeprefix(prefix): value for key, value in self.values.items() if key.startswith(prefix)}
