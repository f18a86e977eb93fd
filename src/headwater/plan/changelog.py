"""Who emits which changes, who needs what: the contract between operators, settled before anything runs.

1. An operator that counts rows (Aggregate, UnionAll) and a sink that shows every change need exact changes; a chain
   over an upsert source gets a Normalize for that. Filters below it become Guards: the state holds only rows that pass.
2. A keyed sink needs one net change per key. An Aggregate on that key gives it as it is, without before-images; a
   Filter above it needs both images and a Collapse; an upsert source with the same key passes through, without state.
   A changelog source with the same key is collapsed in the order of its messages.
3. The sink's primary key must be unique in the query: proved here, or the error says which key would be.
4. A sink takes inserts only, one net change per key, or every change: `Connector.takes` knows.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.connectors.base import Accepts
from headwater.errors import ValidationError
from headwater.plan import nodes as n
from headwater.plan.traits import Mode, describe_source_of_updates, mode_of, unique_key

__all__ = ["settle_changes"]


def settle_changes(root: n.Write) -> n.Write:
    """The plan with Normalize, Guard and Collapse in place. Raises if the sink cannot take what the query emits."""
    updating = mode_of(root.input) is not Mode.APPEND
    if not updating:
        return root
    taken = root.table.connector.takes(root.table)
    if taken is Accepts.APPEND:
        raise _cannot_take_updates(root)
    if root.key:
        _prove_unique(root)
    if taken is Accepts.ALL:
        return replace(root, input=_exact(root.input))
    return replace(root, input=_keyed(root))


def _prove_unique(root: n.Write) -> None:
    key = unique_key(root.input)
    if key is None or not set(key) <= set(root.key):
        raise _not_unique(root, key)


def _keyed(root: n.Write) -> n.Node:
    node, wanted = root.input, set(root.key)
    key = unique_key(node)
    assert key is not None
    if set(key) < wanted:
        return _collapsed(node, root.key)
    if _is_chain_of(node, Mode.RETRACT) or _repeats(node):
        return n.Collapse(node.columns, node, root.key)
    if _is_upsert_chain(node):
        return n.Normalize(node.columns, _guarded(node), key, False) if _has_filter(node) else node
    return _collapsed(node, root.key) if _has_filter(node) else _without_before(node)


def _collapsed(node: n.Node, key: tuple[str, ...]) -> n.Collapse:
    return n.Collapse(node.columns, _exact(node), key)


def _exact(node: n.Node) -> n.Node:
    """The node rewritten to emit inserts only or exact changes."""
    key = unique_key(node)
    if _is_upsert_chain(node) and key is not None:
        return n.Normalize(node.columns, _guarded(node), key, True)
    match node:
        case n.Scan() | n.Values():
            return node
        case n.Project() | n.Filter():
            return replace(node, input=_exact(node.input))
        case n.Aggregate():
            return replace(node, input=_exact(node.input), before=True)
        case n.UnionAll():
            return replace(node, parts=tuple(_exact(part) for part in node.parts))
    raise AssertionError(f"no exact form of {type(node).__name__}")


def _without_before(node: n.Node) -> n.Node:
    """Projections down to the Aggregate, which emits no before-images; below it everything is exact."""
    if isinstance(node, n.Aggregate):
        return replace(node, input=_exact(node.input), before=False)
    assert isinstance(node, n.Project), f"unexpected {type(node).__name__} above an aggregate"
    return replace(node, input=_without_before(node.input))


def _is_upsert_chain(node: n.Node) -> bool:
    return _is_chain_of(node, Mode.UPSERT)


def _is_chain_of(node: n.Node, mode: Mode) -> bool:
    scan = _scan_below(node)
    return scan is not None and mode_of(scan) is mode


def _repeats(node: n.Node) -> bool:
    scan = _scan_below(node)
    return scan is not None and scan.repeats


def _scan_below(node: n.Node) -> n.Scan | None:
    while isinstance(node, n.Project | n.Filter):
        node = node.input
    return node if isinstance(node, n.Scan) else None


def _has_filter(node: n.Node) -> bool:
    while isinstance(node, n.Project | n.Filter):
        if isinstance(node, n.Filter):
            return True
        node = node.input
    return False


def _guarded(node: n.Node) -> n.Node:
    match node:
        case n.Filter():
            return n.Guard(node.columns, _guarded(node.input), node.predicate)
        case n.Project():
            return replace(node, input=_guarded(node.input))
    return node


def _cannot_take_updates(root: n.Write) -> ValidationError:
    source = describe_source_of_updates(root.input)
    key = unique_key(root.input)
    columns = ", ".join(key) if key else "…"
    said = root.table.spelling.said
    fact = (
        f"Table '{root.table.name}' doesn't support consuming update and delete changes, "
        f"which are produced by {source}."
    )
    if root.table.options.given.get("sink.changelog"):
        return ValidationError(
            fact,
            detail=said("'sink.changelog' = 'append' means that it takes inserts only."),
            hint=said("Set 'sink.changelog' to 'upsert', for a table with a PRIMARY KEY, or to 'retract'")
            + ", or write a query that only inserts.",
        )
    return ValidationError(
        fact,
        detail=f"It is a '{root.table.connector.identifier}' table without a PRIMARY KEY: it can only append rows.",
        hint=f"Declare PRIMARY KEY ({columns}) NOT ENFORCED on '{root.table.name}', or make it an 'upsert-kafka' "
        "table, or write a query that only inserts.",
    )


def _not_unique(root: n.Write, key: tuple[str, ...] | None) -> ValidationError:
    declared = ", ".join(root.key)
    source = describe_source_of_updates(root.input)
    fact = f"PRIMARY KEY ({declared}) of table '{root.table.name}' is not unique in the query that writes it."
    if key is None:
        return ValidationError(
            fact,
            detail=f"The query updates rows (because of {source}), and no column of its result identifies a row.",
            hint="Select the key columns as they are, or group by them.",
        )
    return ValidationError(
        fact,
        detail=f"The query updates rows (because of {source}); its rows are identified by ({', '.join(key)}).",
        hint=f"Declare PRIMARY KEY ({', '.join(key)}) NOT ENFORCED, or group by ({declared}).",
    )
