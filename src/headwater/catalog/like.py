"""`CREATE TABLE … LIKE base (INCLUDING …)`: the new table with what it takes from the base table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from headwater.catalog.tables import Table
from headwater.errors import ValidationError
from headwater.sql.statements import Column, ComputedColumn, CreateTable, MetadataColumn, PhysicalColumn

__all__ = ["merge_like"]

T = TypeVar("T")

_FEATURES = ("CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")


def merge_like(new: CreateTable, base: Table) -> CreateTable:
    """The base's physical columns come first and always; the rest follows the rules. By default everything is included,
    and options are overwritten."""
    assert new.like is not None
    rules = _rules(new.like.rules)
    return replace(
        new,
        like=None,
        columns=_columns(new, base, rules),
        options=_options(new, base, rules["OPTIONS"]),
        primary_key=_one_of(new, "PRIMARY KEY", new.primary_key, base.primary_key or None, rules["CONSTRAINTS"]),
        partitioned_by=_one_of(
            new, "PARTITIONED BY", new.partitioned_by or None, base.partitioned_by or None, rules["PARTITIONS"]
        )
        or (),
        watermark=_one_of(new, "WATERMARK", new.watermark, base.watermark, rules["WATERMARKS"]),
        comment=new.comment or base.comment,
    )


def _rules(given: Mapping[str, str]) -> dict[str, str]:
    everything = given.get("ALL", "INCLUDING")
    rules = dict.fromkeys(_FEATURES, everything)
    # Flink's default: LIKE without rules must let a table change its topic, which would otherwise be an option given
    # twice.
    if "ALL" not in given:
        rules["OPTIONS"] = "OVERWRITING"
    rules.update({feature: rule for feature, rule in given.items() if feature != "ALL"})
    return rules


def _columns(new: CreateTable, base: Table, rules: Mapping[str, str]) -> tuple[Column, ...]:
    own = {column.name: column for column in new.columns}
    kept: list[Column] = []
    for column in base.columns:
        rule = _rule_of(column, rules)
        if rule == "EXCLUDING" or (rule == "OVERWRITING" and column.name in own):
            continue
        if column.name in own:
            raise ValidationError(
                f"A column named '{column.name}' already exists in the base table '{base.name}'.",
                hint=_hint(column),
            )
        kept.append(column)
    return (*kept, *new.columns)


def _rule_of(column: Column, rules: Mapping[str, str]) -> str:
    match column:
        case PhysicalColumn():
            return "INCLUDING"
        case ComputedColumn():
            return rules["GENERATED"]
        case MetadataColumn():
            return rules["METADATA"]


def _hint(column: Column) -> str:
    match column:
        case PhysicalColumn():
            return "Physical columns of the base table are always taken over. Leave this one out."
        case ComputedColumn():
            return "You might want to specify EXCLUDING GENERATED or OVERWRITING GENERATED."
        case MetadataColumn():
            return "You might want to specify EXCLUDING METADATA or OVERWRITING METADATA."


def _options(new: CreateTable, base: Table, rule: str) -> dict[str, str]:
    if rule == "EXCLUDING":
        return dict(new.options)
    # As they were written: translated options would be current ones, and mix with legacy ones of the new table.
    inherited = base.spelling.written
    both = sorted(new.options.keys() & inherited.keys())
    if rule == "INCLUDING" and both:
        raise ValidationError(
            f"There already exists an option ['{both[0]}'] in the base table '{base.name}'.",
            hint="You might want to specify EXCLUDING OPTIONS or OVERWRITING OPTIONS.",
        )
    return {**inherited, **new.options}


def _one_of(new: CreateTable, what: str, own: T | None, inherited: T | None, rule: str) -> T | None:
    """There is only one, so it is the new table's or the base's."""
    if rule == "EXCLUDING" or inherited is None:
        return own
    if own is not None and rule == "INCLUDING":
        raise ValidationError(
            f"Table '{new.name}' and the table it is LIKE both have a {what}.",
            hint="You might want to exclude the base table's one.",
        )
    return inherited if own is None else own
