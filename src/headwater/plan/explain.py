"""The plan as text: one line per operator with the changes it emits, the key of its rows and what it keeps as state."""

from __future__ import annotations

from headwater.plan import nodes as n
from headwater.plan.traits import Mode, mode_of, unique_key

__all__ = ["describe", "explain", "state_of"]


def explain(root: n.Node) -> str:
    lines = _lines(root, "", "")
    width = max(len(left) for left, _ in lines)
    return "\n".join(f"{left.ljust(width)}  {right}".rstrip() for left, right in lines)


def _lines(node: n.Node, first: str, rest: str) -> list[tuple[str, str]]:
    lines = [(first + describe(node), _promises(node))]
    children = node.inputs
    for index, child in enumerate(children):
        last = index == len(children) - 1
        branch, below = ("└─ ", "   ") if last else ("├─ ", "│  ")
        lines += _lines(child, rest + branch, rest + below)
    return lines


def describe(node: n.Node) -> str:
    """What the operator does, without what it promises."""
    match node:
        case n.Scan():
            return f"Scan {node.table.name} ({node.table.connector.identifier}) [{', '.join(node.names)}]"
        case n.Values():
            return f"Values {len(node.rows)} rows"
        case n.Project():
            pairs = zip(node.columns, node.expressions, strict=True)
            return f"Project [{', '.join(_item(c.name, e.text) for c, e in pairs)}]"
        case n.Filter():
            return f"Filter {node.predicate.text}"
        case n.Guard():
            return f"Guard {node.predicate.text} (else delete)"
        case n.Aggregate():
            calls = zip(node.columns[len(node.groups) :], node.calls, strict=True)
            items = ", ".join(_item(c.name, call.text) for c, call in calls)
            return f"Aggregate group by ({', '.join(node.groups)}) [{items}]"
        case n.UnionAll():
            return "UnionAll"
        case n.Normalize():
            return f"Normalize by ({', '.join(node.key)})"
        case n.Collapse():
            return f"Collapse by ({', '.join(node.key)})"
        case n.Write():
            return f"Write {node.table.name} ({node.table.connector.identifier})"
    raise AssertionError(f"no description of {type(node).__name__}")


def _item(name: str, text: str) -> str:
    return name if text == name else f"{text} AS {name}"


def _promises(node: n.Node) -> str:
    key = unique_key(node)
    parts = [f"changes={mode_of(node).value}"]
    if key is not None:
        parts.append(f"key=({', '.join(key)})")
    state = state_of(node)
    if state:
        parts.append(f"state: {state}")
    return "  ".join(parts)


def state_of(node: n.Node) -> str:
    """What the operator remembers, in words; empty for none."""
    match node:
        case n.Normalize():
            return f"last row per ({', '.join(node.key)})"
        case n.Aggregate():
            tables = ["one row per group"]
            retracting = mode_of(node.input) is not Mode.APPEND
            for call in node.calls:
                kept = call.distinct or (retracting and call.function in {"MIN", "MAX"})
                if kept and call.argument is not None:
                    text = f"values of {call.argument.text} per group"
                    if text not in tables:
                        tables.append(text)
            return ", ".join(tables)
    return ""
