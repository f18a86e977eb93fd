"""What a checkpoint must agree with: the sources whose positions it holds, and the operators whose state it holds.

Everything above the last stateful operator, and all options that do not change what is read, may change between runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headwater.options.secrets import is_secret
from headwater.plan import nodes as n
from headwater.plan.explain import describe, explain
from headwater.plan.sources import sources_of

__all__ = ["OperatorPart", "Signature", "dealt_by", "differences", "fed_by", "operator_name", "signature_of"]

_LAYOUT = frozenset({"format", "key.format", "key.fields", "key.fields-prefix", "value.fields-include"})
# To be counted up whenever a source cuts a batch otherwise, reads large ones from another size on, or other formats
# in columns: a batch that an earlier release has written in part cannot be finished then.
_WAY_OF_DEALING = "way 1"
# What a format does about bad messages, and where it finds its schemas, may change from one run to the next.
_FREE = re.compile(r"ignore-parse-errors|fail-on-missing|encode\.|url|subject|ssl\.|auth|register|properties\.")


@dataclass(frozen=True)
class OperatorPart:
    """`name` is its directory in the checkpoint; `text` what it does; `columns` the types of what it keeps; `below`
    what feeds it, because state is a function of everything that was read."""

    name: str
    text: str
    columns: tuple[str, ...]
    below: str


@dataclass(frozen=True)
class Signature:
    sources: tuple[str, ...]
    operators: tuple[OperatorPart, ...]

    def to_json(self) -> dict[str, Any]:
        operators = [
            {"name": o.name, "text": o.text, "columns": list(o.columns), "below": o.below} for o in self.operators
        ]
        return {"sources": list(self.sources), "operators": operators}

    @staticmethod
    def from_json(content: dict[str, Any]) -> Signature:
        operators = (OperatorPart(o["name"], o["text"], tuple(o["columns"]), o["below"]) for o in content["operators"])
        return Signature(tuple(content["sources"]), tuple(operators))


def signature_of(root: n.Write) -> Signature:
    sources = tuple(_source(scans[0]) for scans in sources_of(root))
    stateful = [node for node in n.walk(root) if isinstance(node, n.Normalize | n.Aggregate)]
    return Signature(sources, tuple(_operator(root, node) for node in stateful))


def operator_name(root: n.Write, node: n.Node) -> str:
    """Its place among the stateful operators and its kind: the name of its state directory."""
    stateful = [x for x in n.walk(root) if isinstance(x, n.Normalize | n.Aggregate)]
    index = next(i for i, x in enumerate(stateful, 1) if x is node)
    return f"{index}-{type(node).__name__.lower()}"


def _operator(root: n.Write, node: n.Normalize | n.Aggregate) -> OperatorPart:
    columns = tuple(f"{c.name} {c.type}" for c in node.columns)
    return OperatorPart(operator_name(root, node), describe(node), columns, fed_by(node.inputs[0]))


def fed_by(node: n.Node) -> str:
    """The plan from here on and how its sources are read: the same text only if the same input gives the same rows."""
    return "\n".join([explain(node), *(_read_as(scans[0]) for scans in sources_of(node))])


def dealt_by(node: n.Node) -> str:
    """What decides which tasks read which messages: the same text only if it is the same ones."""
    tables = [scans[0].table for scans in sources_of(node) if isinstance(scans[0], n.Scan)]
    return "\n".join([_WAY_OF_DEALING, *(f"{table.name}: {_dealing(table.raw_options)}" for table in tables)])


def _dealing(options: Mapping[str, str]) -> str:
    """All options, though few of them matter here. Names of properties are enough: they tell which client can read."""
    bare = {key for key in options if key.startswith("properties.") or is_secret(key)}
    return ", ".join(key if key in bare else f"'{key}' = '{options[key]}'" for key in sorted(options))


def _read_as(node: n.Scan | n.Values) -> str:
    if isinstance(node, n.Values):
        return _source(node)
    given = {_plainly(key): text for key, text in node.table.raw_options.items()}
    formats = {given.get("format"), given.get("key.format")}
    own = tuple(f"{side}{name}." for name in formats for side in ("", "key."))
    told = {k: v for k, v in given.items() if k in _LAYOUT or (k.startswith(own) and not _FREE.search(k))}
    listed = ", ".join(f"'{key}' = '{told[key]}'" for key in sorted(told) if not is_secret(key))
    return f"{node.table.name}: {listed}"


def _source(node: n.Scan | n.Values) -> str:
    if isinstance(node, n.Values):
        return f"values {[[e.sql for e in row] for row in node.rows]}"
    raw = node.table.raw_options
    where = raw.get("topic") or raw.get("topic-pattern") or node.table.name
    return f"{node.table.connector.identifier} {where}"


def _plainly(key: str) -> str:
    """'value.format' and 'format' are two names of one option, and so are those of the format."""
    return key if key == "value.fields-include" else key.removeprefix("value.")


def differences(stored: Signature, current: Signature) -> list[str]:
    """Everything in `current` that a checkpoint of `stored` cannot follow, in words."""
    found: list[str] = []
    if stored.sources != current.sources:
        found.append(f"it read {_listed(stored.sources)}, and now reads {_listed(current.sources)}")
    if len(stored.operators) != len(current.operators):
        found.append(f"it kept state for {_texts(stored.operators)}, and now would for {_texts(current.operators)}")
        return found
    for old, new in zip(stored.operators, current.operators, strict=True):
        found += _operator_differences(old, new)
    return found


def _operator_differences(old: OperatorPart, new: OperatorPart) -> list[str]:
    if old.text != new.text:
        return [f"the state is of '{old.text}', and the query now needs '{new.text}'"]
    if old.columns != new.columns:
        return [f"the state of '{old.text}' has columns ({', '.join(old.columns)}), now ({', '.join(new.columns)})"]
    if old.below != new.below:
        return [f"what feeds '{old.text}' has changed from\n{_indented(old.below)}\n  to\n{_indented(new.below)}"]
    return []


def _listed(items: tuple[str, ...]) -> str:
    return "; ".join(items) or "nothing"


def _texts(operators: tuple[OperatorPart, ...]) -> str:
    return _listed(tuple(f"'{o.text}'" for o in operators))


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" for line in text.splitlines())
