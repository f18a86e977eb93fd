"""What is wrong with a table's options, all of it in one error, with Flink's phrases where people search for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from headwater.errors import Position, ValidationError
from headwater.options.secrets import hidden_in, is_secret, masked

__all__ = ["OptionContext", "Problem", "problems_error"]


@dataclass(frozen=True)
class Problem:
    """One thing wrong. `text` is a full sentence, or for a missing or unsupported option what to add behind its key.
    `position` is where it is, if it is not the option `key`."""

    text: str
    kind: Literal["missing", "unsupported", "invalid", "rule"] = "rule"
    key: str = ""
    position: Position | None = None


@dataclass(frozen=True)
class OptionContext:
    """What an error says beside the problems: whose options these are, which there are, and where they were written.
    `here` are those that the current statement writes: others may be in another script."""

    owner: str
    supported: tuple[str, ...] = ()
    given: Mapping[str, str] = field(default_factory=dict, repr=False)
    positions: Mapping[str, Position] = field(default_factory=dict)
    here: Collection[str] = ()


def problems_error(subject: str, problems: Sequence[Problem], context: OptionContext) -> ValidationError:
    """`subject` starts the fact: "Table 'orders'". Secrets in options are masked. The error is where its only problem
    is; several are shown with a place each."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    place, given = _only_place(problems, context), _options_given(context)
    if place is not None:
        context = replace(context, positions={})
    paragraphs = [
        _missing(problems),
        _unsupported(problems, context),
        *(_invalid(p, context) for p in problems if p.kind == "invalid"),
        *(_with_place(p.text, p, context) for p in problems if p.kind == "rule"),
        given,
    ]
    detail = "\n\n".join(filter(None, paragraphs))
    return ValidationError(f"{subject} is not valid: {count}.", detail=detail, position=place)


def _only_place(problems: Sequence[Problem], context: OptionContext) -> Position | None:
    key = problems[0].key if len(problems) == 1 else ""
    if is_secret(key) or key not in context.here or problems[0].position is not None:
        return None
    return _masked(context.positions[key], context.given)


def _missing(problems: Iterable[Problem]) -> str:
    missing = [p for p in problems if p.kind == "missing"]
    if not missing:
        return ""
    lines = "\n".join(f"  {p.key}  {p.text}".rstrip() for p in missing)
    return f"One or more required options are missing.\nMissing required options are:\n{lines}"


def _unsupported(problems: Iterable[Problem], context: OptionContext) -> str:
    unsupported = [p for p in problems if p.kind == "unsupported"]
    if not unsupported:
        return ""
    lines = "\n".join(_with_place(f"  {p.key}  {p.text}".rstrip(), p, context) for p in unsupported)
    # All of them would scroll what is wrong off the screen.
    more = f"`headwater options {context.owner}` lists the {len(context.supported)} supported options."
    return f"Unsupported options found for '{context.owner}'.\nUnsupported options:\n{lines}\n{more}"


def _invalid(problem: Problem, context: OptionContext) -> str:
    return _with_place(f"Invalid value for option '{problem.key}'.\n  {problem.text}", problem, context)


def _with_place(text: str, problem: Problem, context: OptionContext) -> str:
    """The place is shown with its line, without the secrets in it, unless it is about one."""
    position = problem.position or context.positions.get(problem.key)
    if position is None:
        return text
    if is_secret(problem.key):
        return f"{text}\n    at line {position.line}, column {position.column}"
    return f"{text}\n    at " + _masked(position, context.given).render().replace("\n", "\n    ")


def _masked(position: Position, given: Mapping[str, str]) -> Position:
    """Secrets go before the line is cut to the width of a terminal: half of one would not be recognised."""
    text, start = position.text, position.column - 1
    end = start + position.length
    before, at, behind = (hidden_in(part, given) for part in (text[:start], text[start:end], text[end:]))
    return replace(position, text=f"{before}{at}{behind}", column=len(before) + 1, length=len(at))


def _options_given(context: OptionContext) -> str:
    """Not those that are in the statement, for anybody to read: a long list would scroll the hint off the screen."""
    if context.given.keys() <= context.positions.keys():
        return ""
    lines = "\n".join(f"  '{key}'='{value}'" for key, value in sorted(masked(context.given).items()))
    return f"Table options are:\n{lines}"
