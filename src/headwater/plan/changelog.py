"""Who emits which changes, who needs what: the contract between operators, decided before anything runs.

Two passes. What a node emits flows up (`Node.mode`, the most that it can emit); what is needed flows down:

1. An operator that takes changes (`Takes.CHANGES`), and a sink that shows every change, need a full changelog; a chain
   over an upsert source gets a Normalize for that. Filters below it become FilterToDelete: the state holds only rows
   that pass.
2. A keyed sink needs one net change per key. An operator that can emit that by itself does (`Node.net`), without
   before-images; else there is a Consolidate. An upsert source with the same key passes through, without state. A
   changelog source with the same key is consolidated in the order of its messages.
3. The sink's primary key is unique in the query: proved here, or else Materialize keeps all rows of a key and shows
   one of them.
4. A sink takes inserts only, one net change per key, or every change: `Connector.takes` knows.
"""

from __future__ import annotations

from dataclasses import replace

from headwater.catalog.connector import Accepts
from headwater.errors import ValidationError
from headwater.plan import nodes as n
from headwater.plan.nodes import Mode, Takes, source_of_updates

__all__ = ["decide_changelog"]


def decide_changelog(root: n.Write) -> n.Write:
    """The plan with Normalize, FilterToDelete and Consolidate in place. Raises if the sink, or an operator, cannot take
    what comes."""
    require = _Requirements()
    taken = root.table.connector.takes(root.table)
    updating = root.input.mode is not Mode.APPEND
    if updating and taken is Accepts.APPEND:
        raise _cannot_take_updates(root)
    shown = _shown_of_key(root) if root.by and taken is not Accepts.APPEND else None
    if shown is not None:
        before = taken is Accepts.ALL
        rows = require.full(root.input)
        node = n.Materialize(rows.columns, rows, root.by, before, shown, root.table.name)
        return replace(root, input=node)
    # A sink that takes every change as it is must get them in full; a query of inserts needs nothing added, but the
    # operators below it may.
    if not updating or taken is Accepts.ALL:
        return replace(root, input=require.full(root.input))
    return replace(root, input=_keyed(root, require))


_SHOWN = {"auto": "last", "force": "last", "DEDUPLICATE": "last", "NOTHING": "first", "ERROR": "error"}


def _shown_of_key(root: n.Write) -> str | None:
    """Which row of a primary key is shown, if there may be several; None if there are not. Of inserts the last one
    takes the place of the others without any state."""
    unique = any(set(key) <= set(root.by) for key in root.input.keys)
    inserts = root.input.mode is Mode.APPEND and root.conflict not in {"NOTHING", "ERROR"}
    if root.conflict != "force" and (unique or inserts):
        return None
    if root.conflict == "none":
        raise _not_unique(root, root.input.key)
    return _SHOWN[root.conflict]


def _keyed(root: n.Write, require: _Requirements) -> n.Node:
    node = root.input
    same = next((key for key in node.keys if set(key) == set(root.by)), None)
    # A source that may say a change again cannot be trusted to emit one per key: the net change of a batch hides
    # repetitions within it, and the upsert those of earlier batches.
    if same is not None and _repeats(node):
        return n.Consolidate(node.columns, node, root.by)
    # Upserts by the very key of the sink pass through without state. Only behind a filter a delete may be about a row
    # that never passed, which a state alone can tell.
    if same is not None and node.mode is Mode.UPSERT:
        return n.Normalize(node.columns, _filtered_to_delete(node), same, False) if _has_filter(node) else node
    full = require.full(node)
    # The operator below may emit net changes by this key itself, without before-images; a second pass over the batch is
    # the fallback.
    return full.net(root.by) or n.Consolidate(node.columns, full, root.by)


class _Requirements:
    """A node that is used twice stays one node."""

    def __init__(self) -> None:
        self._full: dict[int, n.Node] = {}

    def full(self, node: n.Node) -> n.Node:
        """The node rewritten to emit inserts only or a full changelog."""
        if id(node) not in self._full:
            self._full[id(node)] = self._rewritten(node)
        return self._full[id(node)]

    def _rewritten(self, node: n.Node) -> n.Node:
        # As high up as the key of the upserts is still there: what projections and filters drop need not be kept in the
        # state.
        if node.mode is Mode.UPSERT and node.key is not None:
            return n.Normalize(node.columns, _filtered_to_delete(node), node.key, True)
        if not node.inputs:
            return node
        pairs = zip(node.inputs, node.takes, strict=True)
        inputs = [self._given(node, child, takes) for child, takes in pairs]
        # Untouched nodes stay the same objects: subplans are shared by identity, and a copy would get a state of its
        # own.
        same = all(new is old for new, old in zip(inputs, node.inputs, strict=True))
        return node if same else node.with_inputs(inputs)

    def _given(self, node: n.Node, child: n.Node, takes: Takes) -> n.Node:
        if takes is Takes.INSERTS and child.mode is not Mode.APPEND:
            raise _needs_inserts(node, child)
        # Above an upsert source whose key is gone, a row-wise node is no place for Normalize: it stands further down.
        if takes is Takes.UPSERTS and not node.row_wise and child.mode is Mode.UPSERT and child.key is not None:
            return _filtered_to_delete(child)
        return self.full(child)


def _repeats(node: n.Node) -> bool:
    scan = _below_rows(node)
    return isinstance(scan, n.Scan) and scan.repeats


def _below_rows(node: n.Node) -> n.Node:
    while node.row_wise:
        (node,) = node.inputs
    return node


def _has_filter(node: n.Node) -> bool:
    while node.row_wise:
        if isinstance(node, n.Filter):
            return True
        (node,) = node.inputs
    return False


def _filtered_to_delete(node: n.Node) -> n.Node:
    if not node.row_wise:
        return node
    (below,) = node.inputs
    if isinstance(node, n.Filter):
        return n.FilterToDelete(node.columns, _filtered_to_delete(below), node.predicate)
    return node.with_inputs([_filtered_to_delete(below)])


def _needs_inserts(node: n.Node, child: n.Node) -> ValidationError:
    return ValidationError(
        f"{node.shown(node.described())} doesn't support consuming update and delete changes, which are produced by "
        f"{source_of_updates(child)}.",
        hint="It works over tables and queries that only insert rows.",
    )


def _cannot_take_updates(root: n.Write) -> ValidationError:
    source = source_of_updates(root.input)
    key = root.input.key
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


_MATERIALIZED = "Or set 'table.exec.sink.upsert-materialize' to 'auto': the last row of a key is written."


def _not_unique(root: n.Write, key: tuple[str, ...] | None) -> ValidationError:
    declared = ", ".join(root.by)
    source = source_of_updates(root.input)
    fact = f"PRIMARY KEY ({declared}) of table '{root.table.name}' is not unique in the query that writes it."
    if key is None:
        return ValidationError(
            fact,
            detail=f"The query updates rows (because of {source}), and no column of its result identifies a row.",
            hint=f"Select the key columns as they are, or group by them. {_MATERIALIZED}",
        )
    return ValidationError(
        fact,
        detail=f"The query updates rows (because of {source}); its rows are identified by ({', '.join(key)}).",
        hint=f"Declare PRIMARY KEY ({', '.join(key)}) NOT ENFORCED, or group by ({declared}). {_MATERIALIZED}",
    )
