"""What a checkpoint stands for: the sources whose positions it holds and the operators whose state it holds.

State is a function of everything that was read, so an operator's part names its state tables with the types of their
keys and values, and the whole plan below it. What is above the last stateful operator may change between runs, and so
may options that do not change which rows are read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Any

from headwater.errors import IncompatibleCheckpointError
from headwater.options.secrets import is_secret
from headwater.plan import nodes as n
from headwater.plan.explain import describe
from headwater.plan.expressions import functions_of
from headwater.plan.nodes import StateSchema, typed
from headwater.plan.sources import sources_of
from headwater.sql.functions import FUNCTIONS_VERSION

__all__ = [
    "Fingerprint",
    "OperatorFingerprint",
    "check_compatible",
    "differences",
    "fingerprint_of",
    "operator_name",
    "rows_description",
    "stateful_nodes",
]

_VERSION = 2
"""Of the JSON form. 1 was without state tables, time zone and versions."""

_LAYOUT = frozenset({"format", "key.format", "key.fields", "key.fields-prefix", "value.fields-include"})
# What a format does about bad messages, and where it finds its schemas, may change from one run to the next.
_FREE = re.compile(r"ignore-parse-errors|fail-on-missing|encode\.|url|subject|ssl\.|auth|register|properties\.")


@dataclass(frozen=True)
class OperatorFingerprint:
    """`name` is its directory in the checkpoint, `text` what it does, `version` that of its state, `input` the plan
    below it, one line per operator."""

    name: str
    text: str
    version: int
    state: tuple[StateSchema, ...]
    input: tuple[str, ...]


@dataclass(frozen=True)
class Fingerprint:
    """`time_zone` is empty where there is no state: then each row is computed on its own. `rows` is a digest of all
    that the query's rows depend on beside its input: it may change between runs, but not while a batch is half
    written."""

    sources: tuple[str, ...]
    operators: tuple[OperatorFingerprint, ...] = ()
    time_zone: str = ""
    functions: int = FUNCTIONS_VERSION
    rows: str = ""

    def to_json(self) -> dict[str, Any]:
        return {"version": _VERSION, **asdict(self)}

    @staticmethod
    def from_json(content: dict[str, Any]) -> Fingerprint:
        """Raises IncompatibleCheckpointError for one of another version."""
        if content.get("version", 1) != _VERSION:
            raise IncompatibleCheckpointError(
                "The checkpoint was written by another release of Headwater.",
                detail=f"Its plan fingerprint has version {content.get('version', 1)}; this release knows {_VERSION}.",
                hint="Run that release, or start with a new --checkpoint directory (the job then reads its input "
                "again).",
            )
        operators = tuple(_operator_from_json(part) for part in content["operators"])
        sources = tuple(content["sources"])
        return Fingerprint(sources, operators, content["time_zone"], content["functions"], content["rows"])


def _operator_from_json(part: dict[str, Any]) -> OperatorFingerprint:
    tables = tuple(StateSchema(t["name"], tuple(t["keys"]), tuple(t["values"])) for t in part["state"])
    return OperatorFingerprint(part["name"], part["text"], part["version"], tables, tuple(part["input"]))


def fingerprint_of(root: n.Write, time_zone: str) -> Fingerprint:
    """`time_zone` is the session's: functions on TIMESTAMP_LTZ depend on it."""
    sources = tuple(_source(scans[0]) for scans in sources_of(root))
    operators = tuple(_operator(root, node) for node in stateful_nodes(root))
    rows = _digest([f"functions {FUNCTIONS_VERSION}", time_zone, *rows_description(root.input)])
    return Fingerprint(sources, operators, time_zone if operators else "", FUNCTIONS_VERSION, rows)


def _digest(lines: list[str]) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16]


def stateful_nodes(root: n.Node) -> list[n.Node]:
    """Inputs first."""
    return [node for node in n.walk(root) if node.stateful]


def operator_name(root: n.Write, node: n.Node) -> str:
    """Its kind and its number among those of that kind, inputs first: 'aggregate-1'."""
    # Numbered among those of their kind: adding a join does not rename the aggregations, whose state could still be
    # used.
    alike = [other for other in stateful_nodes(root) if type(other) is type(node)]
    number = next(i for i, other in enumerate(alike, 1) if other is node)
    return f"{type(node).__name__.lower()}-{number}"


def rows_description(node: n.Node) -> tuple[str, ...]:
    """The plan from here down, one line per operator with the types of its columns, and how its sources are read: the
    same lines only if the same input gives the same rows."""
    return tuple(_lines(node, 0))


def _lines(node: n.Node, depth: int) -> Iterator[str]:
    columns = ", ".join(typed(node.columns))
    yield f"{'  ' * depth}{_described(node)} -> ({columns}) changes={node.mode.value}{_calls(node)}"
    for child in node.inputs:
        yield from _lines(child, depth + 1)


def _calls(node: n.Node) -> str:
    """The user's functions, which may change while their names stay."""
    called = sorted({function.declaration for function in functions_of(node)})
    return f" calls {'; '.join(called)}" if called else ""


def _described(node: n.Node) -> str:
    if isinstance(node, n.Values):
        return _source(node)
    return f"Scan {_source(node)}{_read_as(node)}" if isinstance(node, n.Scan) else describe(node)


def _source(node: n.Scan | n.Values) -> str:
    """A topic, whatever the script calls its table."""
    if isinstance(node, n.Values):
        return f"values {[[e.sql for e in row] for row in node.rows]}"
    raw = node.table.raw_options
    # Positions are about a topic. Renaming the table in the script changes nothing about them.
    where = raw.get("topic") or raw.get("topic-pattern") or node.table.name
    return f"{node.table.connector.identifier} {where}"


def _read_as(node: n.Scan) -> str:
    given = {_plainly(key): text for key, text in node.table.raw_options.items()}
    formats = {given.get("format"), given.get("key.format")}
    own = tuple(f"{side}{name}." for name in formats for side in ("", "key."))
    # Only what decides how a message is read: another consumer group or other credentials must not cost a job its
    # state.
    kept = {k: v for k, v in given.items() if k in _LAYOUT or (k.startswith(own) and not _FREE.search(k))}
    listed = ", ".join(f"'{key}' = '{kept[key]}'" for key in sorted(kept) if not is_secret(key))
    return f" with {listed}" if listed else ""


def _plainly(key: str) -> str:
    """'value.format' and 'format' are two names of one option, and so are those of the format."""
    return key if key == "value.fields-include" else key.removeprefix("value.")


def _operator(root: n.Write, node: n.Node) -> OperatorFingerprint:
    below = (
        *([calls.strip()] if (calls := _calls(node)) else []),
        *(line for child in node.inputs for line in rows_description(child)),
    )
    name = operator_name(root, node)
    return OperatorFingerprint(name, describe(node), node.state_version, node.state_tables(), below)


def check_compatible(stored: Fingerprint, current: Fingerprint, location: str) -> None:
    """Raises if the checkpoint at `location` cannot be continued by this plan."""
    problems = differences(stored, current)
    if problems:
        raise IncompatibleCheckpointError(
            "The checkpoint was written by a job that this SQL cannot continue.",
            detail="\n".join(f"- {p}" for p in problems) + f"\nCheckpoint: {location}",
            hint="Undo the change, or start with a new --checkpoint directory (the job then reads its input again).",
        )


def differences(stored: Fingerprint, current: Fingerprint) -> list[str]:
    """Everything in `current` that a checkpoint of `stored` cannot follow, one line each."""
    found: list[str] = []
    if stored.sources != current.sources:
        found.append(f"it read {_listed(stored.sources)}, and now reads {_listed(current.sources)}")
    # Without a pairing of operators nothing more can be compared; a list of follow-up differences would hide the
    # reason.
    if len(stored.operators) != len(current.operators):
        before, now = _shown_operators(stored.operators), _shown_operators(current.operators)
        found.append(f"it kept state for {before}, and now would for {now}")
        return found
    for old, new in zip(stored.operators, current.operators, strict=True):
        found += _operator_differences(old, new)
    if stored.operators:
        found += _session_differences(stored, current)
    return found


def _session_differences(stored: Fingerprint, current: Fingerprint) -> Iterator[str]:
    if stored.time_zone != current.time_zone:
        yield f"'table.local-time-zone' was '{stored.time_zone}', and now is '{current.time_zone}'"
    if stored.functions != current.functions:
        yield (
            f"its state was computed by functions of version {stored.functions}, and this release has "
            f"version {current.functions}"
        )


def _operator_differences(old: OperatorFingerprint, new: OperatorFingerprint) -> list[str]:
    """Of several reasons that follow from each other, the first is enough."""
    if old.text != new.text:
        return [f"the state is of '{old.text}', and the query now needs '{new.text}'"]
    if old.version != new.version:
        return [f"the state of '{old.text}' has format version {old.version}, and this release has {new.version}"]
    found = [f"the state of '{old.text}' {text}" for text in _table_differences(old.state, new.state)]
    changed = _changed_lines(old.input, new.input)
    if changed:
        found.append(f"the input of '{old.text}' has changed: {changed}")
    return found


def _table_differences(old: tuple[StateSchema, ...], new: tuple[StateSchema, ...]) -> Iterator[str]:
    for before, after in zip_longest(old, new):
        if before is None or after is None:
            yield f"has {_names(old)}, and now would have {_names(new)}"
            return
        for part in ("keys", "values"):
            was, now = getattr(before, part), getattr(after, part)
            if was != now:
                yield f"has {part} ({', '.join(was)}) in '{before.name}', and now would have ({', '.join(now)})"


def _names(tables: tuple[StateSchema, ...]) -> str:
    return ", ".join(f"'{table.name}'" for table in tables)


def _changed_lines(old: tuple[str, ...], new: tuple[str, ...]) -> str:
    """The lines that only one of the two has, in one line."""
    if old == new:
        return ""
    was, now = [line.strip() for line in old], [line.strip() for line in new]
    gone, come = [line for line in was if line not in now], [line for line in now if line not in was]
    if not gone and not come:
        return "the same operators in another order"
    return f"it was [{'; '.join(gone)}], and now is [{'; '.join(come)}]"


def _listed(items: tuple[str, ...]) -> str:
    return "; ".join(items) or "nothing"


def _shown_operators(operators: tuple[OperatorFingerprint, ...]) -> str:
    return _listed(tuple(f"'{o.text}'" for o in operators))
