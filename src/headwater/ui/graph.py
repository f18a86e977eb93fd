"""A plan as boxes and arrows: which operators there are, what each promises, and where it stands.

A simple layered layout. The layer of a node is the longest way to it from a source. An arrow over several layers gets a
narrow lane in each of them, so that it does not run through boxes. Within a layer, boxes and lanes stand in the order
of the mean place of their neighbours, looked at from both sides in turn, so that few arrows cross. The page makes
coordinates of it, from left to right or from top to bottom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

from headwater.plan import nodes as n
from headwater.plan.display_names import shown_text
from headwater.plan.explain import describe
from headwater.plan.fingerprint import operator_name, stateful_nodes

__all__ = ["Arrow", "Box", "Graph", "graph_of"]

_LANE = 0.25  # as wide as so much of a box
_SWEEPS = 6

Item = tuple[int, ...]
"""(number of a node,), or for a lane (from, to, layer)."""


@dataclass(frozen=True)
class Box:
    """`operator` names its state and its counters, '' if it has neither; `changes` are the kinds it emits. `place` is
    the middle of the box across its layer, in widths of a box."""

    id: int
    kind: str
    text: str
    changes: str
    key: str
    state: str
    operator: str
    table: str
    layer: int
    place: float


@dataclass(frozen=True)
class Arrow:
    """`via`: layer and place of its lanes."""

    start: int
    end: int
    via: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Graph:
    """So many layers, each so wide in widths of a box."""

    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    layers: int
    breadth: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def graph_of(root: n.Write) -> Graph:
    """A node that is used twice is one box with two arrows from it."""
    nodes = _distinct(root)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    arrows = list(dict.fromkeys((numbers[id(below)], numbers[id(node)]) for node in nodes for below in node.inputs))
    layers = _layers(len(nodes), arrows)
    lanes = {arrow: _lanes(arrow, layers) for arrow in arrows}
    rows = _rows(layers, lanes)
    places, breadth = _places(rows)
    operators = {id(node): operator_name(root, node) for node in stateful_nodes(root)}
    boxes = tuple(
        _box(node, number, operators.get(id(node), ""), layers[number], places[(number,)])
        for number, node in enumerate(nodes)
    )
    drawn = tuple(Arrow(*arrow, tuple((lane[2], places[lane]) for lane in lanes[arrow])) for arrow in arrows)
    return Graph(boxes, drawn, len(rows), breadth)


def _box(node: n.Node, number: int, operator: str, layer: int, place: float) -> Box:
    kind, _, text = describe(node).partition(" ")
    key = "" if node.key is None else ", ".join(shown_text(name, node.display_names) for name in node.key)
    table = node.table.name if isinstance(node, n.Scan | n.Write) else ""
    return Box(number, kind, text, node.mode.value, key, node.remembers, operator, table, layer, place)


def _distinct(root: n.Node) -> list[n.Node]:
    """Inputs first."""
    found: dict[int, n.Node] = {}

    def visit(node: n.Node) -> None:
        if id(node) not in found:
            for below in node.inputs:
                visit(below)
            found[id(node)] = node

    visit(root)
    return list(found.values())


def _layers(count: int, arrows: list[tuple[int, int]]) -> list[int]:
    """Nodes are numbered inputs first. A source stands right before whoever reads it, not at the far end."""
    layers = [0] * count
    for start, end in sorted(arrows, key=lambda arrow: arrow[1]):
        layers[end] = max(layers[end], layers[start] + 1)
    for source in set(range(count)) - {end for _, end in arrows}:
        # Otherwise a table that is joined late would have an arrow across the whole picture.
        layers[source] = min((layers[end] for start, end in arrows if start == source), default=1) - 1
    return layers


def _lanes(arrow: tuple[int, int], layers: list[int]) -> list[Item]:
    start, end = arrow
    return [(start, end, layer) for layer in range(layers[start] + 1, layers[end])]


def _rows(layers: list[int], lanes: Mapping[tuple[int, int], list[Item]]) -> list[list[Item]]:
    """The items of every layer, in an order with few crossings."""
    rows: list[list[Item]] = [[] for _ in range(max(layers) + 1)]
    for number, layer in enumerate(layers):
        rows[layer].append((number,))
    before, after = defaultdict(list), defaultdict(list)
    for (start, end), between in lanes.items():
        way = [(start,), *between, (end,)]
        for lane in between:
            rows[lane[2]].append(lane)
        for one, other in pairwise(way):
            before[other].append(one)
            after[one].append(other)
    # The barycenter heuristic: an order with no crossings at all is NP-hard to find, and plans are small.
    for sweep in range(_SWEEPS):
        forwards = sweep % 2 == 0
        for row in rows if forwards else reversed(rows):
            _sort(row, before if forwards else after, _middles(rows))
    return rows


def _sort(row: list[Item], neighbours: Mapping[Item, list[Item]], middles: Mapping[Item, float]) -> None:
    def wanted(item: Item) -> float:
        found = [middles[other] for other in neighbours.get(item, ())]
        return sum(found) / len(found) if found else middles[item]

    row.sort(key=wanted)


def _middles(rows: list[list[Item]]) -> dict[Item, float]:
    return _places(rows)[0]


def _places(rows: list[list[Item]]) -> tuple[dict[Item, float], float]:
    """The middle of every item, each layer in the middle of the whole; and how wide the widest layer is."""
    widths = [[_LANE if len(item) == 3 else 1.0 for item in row] for row in rows]
    breadth = max(map(sum, widths))
    places = {}
    for row, wide in zip(rows, widths, strict=True):
        here = (breadth - sum(wide)) / 2
        for item, width in zip(row, wide, strict=True):
            places[item] = here + width / 2
            here += width
    return places, breadth
