"""Partial sums of DOUBLE in Spark SQL, for its hash aggregation: see `exact_sums` for what their columns mean.

    rows         → the projections of `partial_sums`, one after the other ─┐
    partial sums → those of `salted` alone                                 ─┴→ GROUP BY the groups and `partial_keys`,
                                                                               SUM of `partial_columns`

A value beyond the window cannot be summed in SQL. It becomes a key of the aggregation, which is NULL for all others, so
that such rows stay by themselves, with the number of times as their weight. Spark then shuffles by all keys of the
aggregation; NULL does not change a hash, but these rows would leave the state partition of their group. One more key,
the *salt*, moves them back: murmur3 is reversible in its last word, so there is an integer for which the hash of all
keys equals that of the groups alone.

Names and expressions are quoted already. Projections, not one expression: every step uses the one before it twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headwater.changelog.exact_sums import LEAST, LIMB_BITS, LIMBS, LIMIT, LOWEST, limb_names, weight_name

__all__ = ["SALT", "DoubleSum", "partial_columns", "partial_keys", "partial_sums", "salted"]

SALT = "__hw_salt"

_MASK = (1 << 32) - 1
_TARGET, _SEED = "__hw_target", "__hw_seed"


@dataclass(frozen=True)
class DoubleSum:
    """`value` is an expression of type DOUBLE, NULL where there is nothing to add; `weight` of type BIGINT."""

    name: str
    value: str
    weight: str = "1L"


def partial_keys(names: Sequence[str]) -> list[str]:
    """What to group by besides the groups, for the sums of these names."""
    return [*names, SALT]


def partial_columns(names: Sequence[str]) -> list[str]:
    """What to sum; all of type BIGINT."""
    return [column for name in names for column in (weight_name(name), *limb_names(name))]


def partial_sums(
    sums: Sequence[DoubleSum], groups: Sequence[str], kept: Sequence[str], apart: Sequence[str] = ()
) -> list[list[str]]:
    """Projections, each a list for `selectExpr`, that keep the `groups` and the columns `kept` and add the partial sums
    of every row, with their salt. Of the columns kept, those in `apart` are grouped by, too."""
    names = [s.name for s in sums]
    columns = [*kept, *names, *partial_columns(names)]
    steps = _projections(_limb_steps(sums), [*groups, *kept])
    return [*steps, [*groups, *columns], *salted([*apart, *names], groups, columns)]


def salted(names: Sequence[str], groups: Sequence[str], kept: Sequence[str]) -> list[list[str]]:
    """Projections that keep the `groups` and the columns `kept` and add the salt, for all columns of these names that
    are grouped by besides the groups."""
    columns = [*groups, *kept]
    return [*_projections(_salt_steps(names, groups), columns), [*columns, SALT]]


def _projections(steps: Sequence[dict[str, str]], columns: Sequence[str]) -> list[list[str]]:
    """Every step adds columns, or replaces some."""
    projections = []
    for step in steps:
        columns = [column for column in columns if column not in step]
        projections.append([*columns, *(f"{sql} AS {name}" for name, sql in step.items())])
        columns = [*columns, *step]
    return projections


def _limb_steps(sums: Sequence[DoubleSum]) -> list[dict[str, str]]:
    """As `exact_sums.split`, from the highest limb down."""
    steps = [
        {s.name: s.value for s in sums} | {weight_name(s.name): s.weight for s in sums},
        {f"{s.name}_inside": _inside(s.name) for s in sums},
        {f"{s.name}_rest": f"IF({s.name}_inside, {s.name}, 0D)" for s in sums},
    ]
    for k in reversed(range(LIMBS)):
        unit = 2.0 ** (LOWEST + LIMB_BITS * k)
        remainders, limbs = ([f"{s.name}_rest" for s in sums], [limb_names(s.name)[k] for s in sums])
        pairs = list(zip(remainders, limbs, strict=True))
        # Exact in DOUBLE: a unit is a power of two, so a product only moves the exponent, and the rest loses no bit.
        steps.append({limb: f"CAST({rest} * {1 / unit!r}D AS BIGINT)" for rest, limb in pairs})
        steps.append({rest: f"{rest} - CAST({limb} AS DOUBLE) * {unit!r}D" for rest, limb in pairs})
    weighted = [s for s in sums if s.weight != "1L"]
    steps.append({limb: f"{limb} * {weight_name(s.name)}" for s in weighted for limb in limb_names(s.name)})
    steps.append(
        {s.name: f"IF({s.name}_inside, NULL, {s.name})" for s in sums}
        | {weight_name(s.name): f"IF({s.name}_inside OR {s.name} IS NULL, 0L, {weight_name(s.name)})" for s in sums}
    )
    return [step for step in steps if step]


def _inside(name: str) -> str:
    """NaN is the greatest number in Spark, so it is not less than the limit."""
    return f"({name} = 0D OR (abs({name}) >= {LEAST!r}D AND abs({name}) < {LIMIT!r}D))"


def _salt_steps(names: Sequence[str], groups: Sequence[str]) -> list[dict[str, str]]:
    """The last word of murmur3 (x86, 32 bit) from the hash that is wanted, backwards; in BIGINT without a sign."""
    none_beyond = " AND ".join(f"{name} IS NULL" for name in names)
    of_groups = f"hash({', '.join(groups)})" if groups else "42"
    of_keys = f"hash({', '.join([*groups, *names])})"
    x = _TARGET
    words = [
        # The finalizer, from its last step to its first; 4 is the length of a word, which it mixes in.
        f"{x} ^ shiftright({x}, 16)",
        _times(x, pow(0xC2B2AE35, -1, 1 << 32)),
        f"{x} ^ shiftright({x}, 13) ^ shiftright({x}, 26)",
        _times(x, pow(0x85EBCA6B, -1, 1 << 32)),
        f"{x} ^ shiftright({x}, 16) ^ 4L",
        # The hash so far, before the word was mixed in: h = rotl(h ^ k, 13) * 5 + 0xE6546B64.
        f"({x} + {(1 << 32) - 0xE6546B64}L) & {_MASK}L",
        _times(x, pow(5, -1, 1 << 32)),
        f"((shiftright({x}, 13) | shiftleft({x}, 19)) & {_MASK}L) ^ {_SEED}",
        # The word itself: k = rotl(word * 0xCC9E2D51, 15) * 0x1B873593.
        _times(x, pow(0x1B873593, -1, 1 << 32)),
        f"(shiftright({x}, 15) | shiftleft({x}, 17)) & {_MASK}L",
        _times(x, pow(0xCC9E2D51, -1, 1 << 32)),
    ]
    return [
        {
            _TARGET: f"IF({none_beyond}, NULL, CAST({of_groups} AS BIGINT) & {_MASK}L)",
            _SEED: f"IF({none_beyond}, NULL, CAST({of_keys} AS BIGINT) & {_MASK}L)",
        },
        *({_TARGET: word} for word in words),
        {SALT: f"CAST(IF({_TARGET} >= {1 << 31}L, {_TARGET} - {1 << 32}L, {_TARGET}) AS INT)"},
    ]


def _times(name: str, factor: int) -> str:
    """A product modulo 2**32. BIGINT must not overflow, so the factor comes in two halves."""
    low, high = f"{name} * {factor & 0xFFFF}L", f"{name} * {factor >> 16}L"
    return f"({low} + shiftleft(({high}) & 65535L, 16)) & {_MASK}L"
