"""From what a user wrote to typed options, with everything that is wrong found in one go."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from headwater.errors import Position
from headwater.options.base import Option
from headwater.options.closest import close_to, closest, did_you_mean
from headwater.options.problems import OptionContext, Problem, problems_error
from headwater.options.resolved import ResolvedOptions
from headwater.options.secrets import is_secret
from headwater.options.types import enum

__all__ = ["family_prefix", "parse_options", "parse_value", "read_options", "supported_keys", "under"]


def parse_options(
    declared: Sequence[Option],
    given: Mapping[str, str],
    owner: str,
    positions: Mapping[str, Position] | None = None,
) -> ResolvedOptions:
    """The options of `owner`, or one ValidationError that lists every problem."""
    resolved, problems = read_options(declared, given)
    if problems:
        context = OptionContext(owner, supported_keys(declared), given, positions or {})
        raise problems_error(f"'{owner}'", problems, context)
    return resolved


def read_options(declared: Sequence[Option], given: Mapping[str, str]) -> tuple[ResolvedOptions, list[Problem]]:
    """What can be read, and what is wrong. An option with an invalid value reads as its default."""
    by_key = {option.key: option for option in declared if not option.prefix}
    families = [family_prefix(option) for option in declared if option.prefix]
    replaced = {option.deprecated for option in by_key.values() if option.deprecated and option.key in given}
    missing = [o for o in by_key.values() if o.required and o.key not in given and o.key not in replaced]
    problems = [_missing(option, [key for key in given if key not in by_key]) for option in missing]
    values: dict[str, Any] = {key: option.default for key, option in by_key.items()}
    for key, text in given.items():
        if key in by_key:
            _read_one(by_key[key], text, values, problems)
        elif not any(key.startswith(family) and key != family for family in families):
            problems.append(_unsupported(key, by_key))
    _carry_deprecated(by_key, given, values, problems)
    return ResolvedOptions(values, given), problems


def parse_value(option: Option, text: str) -> Any:
    """The value of one option. Raises ValueError with a sentence; it never repeats a secret."""
    kind = enum(option.choices) if option.choices else option.type
    try:
        return kind.parse(text)
    except ValueError as error:
        # The usual sentence repeats the value.
        if option.secret or is_secret(option.key):
            raise ValueError(f"The value is not a valid {kind.name}.") from None
        hint = did_you_mean(text, option.choices) if option.choices else ""
        raise ValueError(f"{error} {hint}".strip()) from None


def supported_keys(declared: Iterable[Option]) -> tuple[str, ...]:
    return tuple(option.key for option in declared)


def family_prefix(option: Option) -> str:
    return option.key.removesuffix("*")


def under(prefix: str, options: Iterable[Option]) -> tuple[Option, ...]:
    """The same options with `prefix` in front of their keys."""
    return tuple(
        replace(option, key=prefix + option.key, deprecated=option.deprecated and prefix + option.deprecated)
        for option in options
    )


def _read_one(option: Option, text: str, values: dict[str, Any], problems: list[Problem]) -> None:
    try:
        values[option.key] = parse_value(option, text)
    except ValueError as error:
        problems.append(Problem(str(error), "invalid", option.key))


def _missing(option: Option, others: Sequence[str]) -> Problem:
    """A typo in 'properties.bootstrap.servers' is a key of the family 'properties.*', so that nothing else finds it."""
    near = closest(option.key, others) if close_to(option.key, others) else None
    typo = f" Is it '{near}' that should be '{option.key}'?" if near else ""
    return Problem(f"({option.meaning}){typo}", "missing", option.key)


def _unsupported(key: str, by_key: Mapping[str, Option]) -> Problem:
    return Problem(did_you_mean(key, by_key), "unsupported", key)


def _carry_deprecated(
    by_key: Mapping[str, Option], given: Mapping[str, str], values: dict[str, Any], problems: list[Problem]
) -> None:
    """A deprecated option speaks for the one that replaced it, unless both are given and disagree."""
    for old in by_key.values():
        if not old.deprecated or old.key not in given:
            continue
        if old.deprecated not in given:
            # Whoever reads options asks for the current key alone.
            values[old.deprecated] = values[old.key]
        elif values[old.deprecated] != values[old.key]:
            text = f"'{old.key}' is the old name of '{old.deprecated}', and the two have different values. Keep one."
            problems.append(Problem(text, "rule", old.key))
