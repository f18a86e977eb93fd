"""From the legacy options of `options.legacy` to current options. Problems name the keys that were written."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from headwater.options.base import Option
from headwater.options.legacy import (
    CLASS,
    FORMAT,
    LEGACY_FORMATS,
    NOT_HERE,
    OLDER_NAMES,
    PARTITIONER,
    SIDES,
    TYPE,
    TYPES,
    LegacyOption,
    is_legacy,
    of_type,
)
from headwater.options.numbered import folded
from headwater.options.parsing import family_prefix, parse_value, read_options, supported_keys
from headwater.options.problems import Problem
from headwater.options.spelling import Spelling, as_written
from headwater.plugins import CONNECTORS, FORMATS

__all__ = ["spelling_of"]


def spelling_of(written: Mapping[str, str]) -> Spelling:
    """What the options of a table mean. If `problems` are in it, the options are not to be used."""
    if not any(map(is_legacy, written)):
        return _with_current_name(written)
    numbered = folded(written)
    plain = numbered.options
    kind = _word(plain, TYPE)
    # Without a valid type all legacy options are accepted here, so that the error is about the type and not about each
    # of them.
    rows = of_type(kind) or tuple({old.key: old for name in reversed(TYPES) for old in of_type(name)}.values())
    declared = tuple(old.option for old in rows)
    problems = tuple(_mixed(plain)) or _relevant([*_problems(declared, plain, kind), *_rules(rows, plain)], plain)
    # Of options with problems only a valid type is used: it decides what the error lists as supported.
    understood = [key for key in plain if not problems or (key == TYPE and kind in TYPES)]
    parts = {key: _part(_row(rows, key), key, plain) for key in understood}
    naming = _naming(rows, plain, parts)
    return Spelling(dict(written), numbered.unfolded(parts), naming, problems, supported_keys(declared))


def _with_current_name(written: Mapping[str, str]) -> Spelling:
    """Current options, but perhaps for the name of the connector."""
    spelling = as_written(written)
    current = OLDER_NAMES.get(written.get("connector", ""))
    if current is None:
        return spelling
    return replace(spelling, parts={**spelling.parts, "connector": {"connector": current}})


def _relevant(problems: list[Problem], written: Mapping[str, str]) -> tuple[Problem, ...]:
    """A wrong or missing type decides which other options there are, so it is reported alone; so is a wrong format."""
    of_type_ = [problem for problem in problems if problem.key == TYPE]
    if of_type_:
        return tuple(of_type_)
    if _word(written, FORMAT) and any(problem.key == FORMAT for problem in problems):
        problems = [p for p in problems if p.key == FORMAT or not p.key.startswith("format.")]
    return tuple(problems)


def _mixed(written: Mapping[str, str]) -> Iterator[Problem]:
    old, current = [key for key in written if is_legacy(key)], [key for key in written if _is_current(key)]
    if current:
        yield Problem(
            f"The table mixes legacy and current options. Legacy keys: {_listed(old)}. "
            f"Current keys: {_listed(current)}. Write all of them in one way; `headwater modernize` rewrites a script "
            "with legacy options.",
            key=current[0],
        )


def _is_current(key: str) -> bool:
    """Whether a Kafka table or one of the formats has such an option."""
    if is_legacy(key):
        return False
    options = [option for name in TYPES for option in CONNECTORS[name].options]
    families = tuple(family_prefix(option) for option in options if option.prefix)
    formats = {f"{f.identifier}.{option.key}" for f in FORMATS.values() for option in f.options}
    plain = key.removeprefix("key.").removeprefix("value.")
    return key in {option.key for option in options} or key.startswith(families) or plain in formats


def _problems(declared: tuple[Option, ...], written: Mapping[str, str], kind: str) -> Iterator[Problem]:
    """What is missing, unknown or not a value; a key that is known from elsewhere says why it is not here."""
    explained = {
        key: text
        for key in written
        for pattern, types, text in NOT_HERE
        if kind in types and re.fullmatch(pattern, key)
    }
    yield from (Problem(text, "unsupported", key) for key, text in explained.items())
    yield from (problem for problem in read_options(declared, written)[1] if problem.key not in explained)


def _rules(rows: tuple[LegacyOption, ...], written: Mapping[str, str]) -> Iterator[Problem]:
    chosen = _word(written, FORMAT)
    for old in rows:
        if old.key in written and chosen in LEGACY_FORMATS and chosen not in old.formats:
            formats = " or ".join(f"'{name}'" for name in old.formats)
            yield Problem(f"'{old.key}' is only for '{FORMAT}' = {formats}, and here it is '{chosen}'.", key=old.key)
    custom = _word(written, PARTITIONER) == "custom"
    if custom and CLASS not in written:
        yield Problem(f"'{PARTITIONER}' = 'custom' needs '{CLASS}', the name of a class.", key=PARTITIONER)
    if CLASS in written and not custom:
        yield Problem(f"'{CLASS}' is only used with '{PARTITIONER}' = 'custom'.", key=CLASS)


def _row(rows: tuple[LegacyOption, ...], key: str) -> LegacyOption:
    families = (old for old in rows if old.option.prefix and key.startswith(family_prefix(old.option)))
    return next((old for old in rows if old.key == key), None) or next(families)


def _part(old: LegacyOption, key: str, written: Mapping[str, str]) -> dict[str, str]:
    """One legacy option in current keys."""
    if old.option.prefix:
        (current,) = old.current
        return {current.removesuffix("*") + key.removeprefix(family_prefix(old.option)): written[key]}
    text = parse_value(old.option, written[key]) if old.option.choices else written[key]
    value = old.value(text)
    keys = old.current_keys(SIDES[_word(written, TYPE)], _word(written, FORMAT))
    return {} if value is None else dict.fromkeys(keys, value)


def _naming(
    rows: tuple[LegacyOption, ...], written: Mapping[str, str], parts: Mapping[str, Mapping[str, str]]
) -> Callable[[str], str]:
    """Current key → the key that says the same here: the one that was written, if there are two."""
    sides = tuple(side for sides in SIDES.values() for side in sides)
    names = {t: old.key for old in reversed(rows) for t in old.current_keys(sides, _word(written, FORMAT))}
    names |= {current: key for key, part in parts.items() for current in part}
    families = {old.current[0].removesuffix("*"): family_prefix(old.option) for old in rows if old.option.prefix}

    def name(key: str) -> str:
        if key in names:
            return names[key]
        return next((o + key.removeprefix(t) for t, o in families.items() if key.startswith(t)), key)

    return name


def _word(written: Mapping[str, str], key: str) -> str:
    """The value of a legacy key that has choices, as it is declared; '' without one."""
    return written.get(key, "").strip().lower()


def _listed(keys: list[str]) -> str:
    return ", ".join(f"'{key}'" for key in sorted(keys))
