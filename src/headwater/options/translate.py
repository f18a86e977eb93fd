"""From the older spelling of `options.legacy` to today's options, with what is wrong said in the old keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from headwater.options.base import Option
from headwater.options.legacy import CLASS, FORMAT, NOT_HERE, PARTITIONER, SIDES, TYPE, TYPES, Old, is_old, of_type
from headwater.options.problems import Problem
from headwater.options.reading import family_prefix, parse_value, read_options, supported_keys
from headwater.options.spelling import Spelling, as_written

__all__ = ["spelling_of"]


def spelling_of(written: Mapping[str, str]) -> Spelling:
    """What the options of a table mean. If `problems` are in it, the options are not to be used."""
    if not any(map(is_old, written)):
        return as_written(written)
    kind = _word(written, TYPE)
    rows = of_type(kind) or tuple({old.key: old for name in reversed(TYPES) for old in of_type(name)}.values())
    declared = tuple(old.option for old in rows)
    problems = tuple(_mixed(written)) or (*_problems(declared, written, kind), *_rules(rows, written))
    understood = [key for key in written if not problems or (key == TYPE and kind in TYPES)]
    parts = {key: _part(_row(rows, key), key, written) for key in understood}
    return Spelling(dict(written), parts, _naming(rows, written, parts), problems, supported_keys(declared))


def _mixed(written: Mapping[str, str]) -> Iterator[Problem]:
    old, today = [key for key in written if is_old(key)], [key for key in written if _is_todays(key)]
    if today:
        yield Problem(
            f"The table mixes two spellings. Older keys: {_listed(old)}. Today's keys: {_listed(today)}. "
            "Write all of them in one; `headwater modernize` turns a script of the older one into today's.",
            key=today[0],
        )


def _is_todays(key: str) -> bool:
    """Whether a Kafka table or one of the formats has such an option."""
    from headwater.connectors.registry import CONNECTORS
    from headwater.formats.base import all_formats

    if is_old(key):
        return False
    options = [option for name in TYPES for option in CONNECTORS[name].options]
    families = tuple(family_prefix(option) for option in options if option.prefix)
    formats = {f"{f.identifier}.{option.key}" for f in all_formats().values() for option in f.options}
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


def _rules(rows: tuple[Old, ...], written: Mapping[str, str]) -> Iterator[Problem]:
    chosen = _word(written, FORMAT)
    for old in rows:
        if old.key in written and chosen and chosen not in old.formats:
            formats = " or ".join(f"'{name}'" for name in old.formats)
            yield Problem(f"'{old.key}' is only for '{FORMAT}' = {formats}, and here it is '{chosen}'.", key=old.key)
    custom = _word(written, PARTITIONER) == "custom"
    if custom and CLASS not in written:
        yield Problem(f"'{PARTITIONER}' = 'custom' needs '{CLASS}', the name of a class.", key=PARTITIONER)
    if CLASS in written and not custom:
        yield Problem(f"'{CLASS}' is only used with '{PARTITIONER}' = 'custom'.", key=CLASS)


def _row(rows: tuple[Old, ...], key: str) -> Old:
    families = (old for old in rows if old.option.prefix and key.startswith(family_prefix(old.option)))
    return next((old for old in rows if old.key == key), None) or next(families)


def _part(old: Old, key: str, written: Mapping[str, str]) -> dict[str, str]:
    """One old option in today's keys."""
    if old.option.prefix:
        (today,) = old.today
        return {today.removesuffix("*") + key.removeprefix(family_prefix(old.option)): written[key]}
    text = parse_value(old.option, written[key]) if old.option.choices else written[key]
    value = old.value(text)
    keys = old.today_of(SIDES[_word(written, TYPE)], _word(written, FORMAT))
    return {} if value is None else dict.fromkeys(keys, value)


def _naming(
    rows: tuple[Old, ...], written: Mapping[str, str], parts: Mapping[str, Mapping[str, str]]
) -> Callable[[str], str]:
    """Today's key → the key that says the same here: the one that was written, if there are two."""
    sides = tuple(side for sides in SIDES.values() for side in sides)
    names = {t: old.key for old in reversed(rows) for t in old.today_of(sides, _word(written, FORMAT))}
    names |= {today: key for key, part in parts.items() for today in part}
    families = {old.today[0].removesuffix("*"): family_prefix(old.option) for old in rows if old.option.prefix}

    def name(key: str) -> str:
        if key in names:
            return names[key]
        return next((o + key.removeprefix(t) for t, o in families.items() if key.startswith(t)), key)

    return name


def _word(written: Mapping[str, str], key: str) -> str:
    """The value of an old key that has choices, as it is declared; '' without one."""
    return written.get(key, "").strip().lower()


def _listed(keys: list[str]) -> str:
    return ", ".join(f"'{key}'" for key in sorted(keys))
