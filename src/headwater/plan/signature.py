"""What a checkpoint must agree with: the sources whose positions it holds, and the operators whose state it holds.

Everything above the last stateful operator, and all options that do not change what is read, may change between runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headwater.plan import nodes as n
from headwater.plan.explain import describe, explain

__all__ = ["OperatorPart", "Signature", "differences", "operator_name", "signature_of"]


@dataclass(frozen=True)
class OperatorPart:
    """`name` is its directory in the checkpoint; `text` what it does; `columns` the types of what it keeps; `below` the
    plan that feeds it, because state is a function of everything that was read."""

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
    nodes = n.walk(root)
    sources = tuple(_source(node) for node in nodes if isinstance(node, n.Scan | n.Values))
    stateful = [node for node in nodes if isinstance(node, n.Normalize | n.Aggregate)]
    return Signature(sources, tuple(_operator(root, node) for node in stateful))


def operator_name(root: n.Write, node: n.Node) -> str:
    """Its place among the stateful operators and its kind: the name of its state directory."""
    stateful = [x for x in n.walk(root) if isinstance(x, n.Normalize | n.Aggregate)]
    index = next(i for i, x in enumerate(stateful, 1) if x is node)
    return f"{index}-{type(node).__name__.lower()}"


def _operator(root: n.Write, node: n.Normalize | n.Aggregate) -> OperatorPart:
    columns = tuple(f"{c.name} {c.type}" for c in node.columns)
    return OperatorPart(operator_name(root, node), describe(node), columns, explain(node.inputs[0]))


def _source(node: n.Scan | n.Values) -> str:
    if isinstance(node, n.Values):
        return f"values {[[e.sql for e in row] for row in node.rows]}"
    raw = node.table.raw_options
    where = raw.get("topic") or raw.get("topic-pattern") or node.table.name
    return f"{node.table.connector.identifier} {where}"


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
