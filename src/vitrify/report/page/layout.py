"""Places the nodes of a graph in layers, from top to bottom, in Python: a page with thousands of nodes then only draws.

Layers by the longest path, order within a layer by the mean place of neighbours, and places by the least squares that
keep that order; long edges go through a bend in each layer that they pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

GAP = 1.0
"""The least distance of two nodes of a layer, in widths of a node; bends are narrower."""
BEND = 0.3
SWEEPS = 6
LONGEST = 60
"""Edges over more layers than this go straight: their bends would outnumber the nodes."""


@dataclass
class Layout:
    """Where each node is: ``x`` in widths of a node, ``layer`` from the top. ``bends`` of an edge are its ``x`` in each
    layer between its ends; edges without are left out."""

    x: list[float] = field(default_factory=list)
    layer: list[int] = field(default_factory=list)
    bends: dict[tuple[int, int], list[float]] = field(default_factory=dict)


def lay_out(after: Sequence[Sequence[int]]) -> Layout:
    """Place nodes, each given as the numbers of those it comes after; what names no earlier node is left out."""
    before = [[p for p in dict.fromkeys(ps) if 0 <= p < number] for number, ps in enumerate(after)]
    layer = _layers(before)
    drawing = _Drawing(before, layer)
    drawing.order()
    x = drawing.places()
    count = len(before)
    low = min(x[:count], default=0.0)
    return Layout([value - low for value in x[:count]], layer,
                  {edge: [x[bend] - low for bend in bends] for edge, bends in drawing.bends.items()})


def _layers(before: Sequence[Sequence[int]]) -> list[int]:
    """The longest path to each node; those that nothing leads to stand right above what they lead to."""
    layer = [0] * len(before)
    for number, makers in enumerate(before):
        layer[number] = max((layer[maker] + 1 for maker in makers), default=0)
    first_use: dict[int, int] = {}
    for number, makers in enumerate(before):
        for maker in makers:
            first_use[maker] = min(first_use.get(maker, layer[number]), layer[number])
    for number, makers in enumerate(before):
        if not makers and number in first_use:
            layer[number] = first_use[number] - 1
    return layer


class _Drawing:
    """Nodes and bends by layer, and the edges between neighbouring layers."""

    def __init__(self, before: Sequence[Sequence[int]], layer: Sequence[int]) -> None:
        self.count = len(before)
        self.rows: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
        self.above: list[list[int]] = [[] for _ in before]
        self.below: list[list[int]] = [[] for _ in before]
        self.bends: dict[tuple[int, int], list[int]] = {}
        for number, place in enumerate(layer):
            self.rows[place].append(number)
        for number, makers in enumerate(before):
            for maker in makers:
                self._connect(maker, number, layer)

    def _connect(self, maker: int, user: int, layer: Sequence[int]) -> None:
        span = range(layer[maker] + 1, layer[user])
        if len(span) > LONGEST:
            return
        last = maker
        made = []
        for place in span:
            bend = len(self.above)
            self.above.append([])
            self.below.append([])
            self.rows[place].append(bend)
            self._edge(last, bend)
            made.append(bend)
            last = bend
        self._edge(last, user)
        if made:
            self.bends[maker, user] = made

    def _edge(self, upper: int, lower: int) -> None:
        self.below[upper].append(lower)
        self.above[lower].append(upper)

    def order(self) -> None:
        """Bring nodes near their neighbours, so that fewer edges cross."""
        place = [0.0] * len(self.above)
        for row in self.rows:
            for number, item in enumerate(row):
                place[item] = number
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            near = self.above if down else self.below
            for row in self.rows if down else reversed(self.rows):
                if len(row) > 1:
                    row.sort(key=lambda item: sum(place[n] for n in near[item]) / len(near[item]) if near[item]
                             else place[item])
                for number, item in enumerate(row):
                    place[item] = number

    def places(self) -> list[float]:
        """Return the place of each node and bend, as near to its neighbours as the order lets it."""
        x = [0.0] * len(self.above)
        for row in self.rows:
            at = 0.0
            for item, room in zip(row, self._rooms(row), strict=True):
                x[item] = at = at + room
        for sweep in range(SWEEPS):
            down = sweep % 2 == 0
            first, second = (self.above, self.below) if down else (self.below, self.above)
            for row in self.rows if down else reversed(self.rows):
                wanted = [self._wanted(item, first, second, x) for item in row]
                for item, value in zip(row, _spaced(wanted, self._rooms(row)), strict=True):
                    x[item] = value
        return x

    def _wanted(self, item: int, first: list[list[int]], second: list[list[int]], x: list[float]) -> float:
        near = first[item] or second[item]
        return sum(x[n] for n in near) / len(near) if near else x[item]

    def _rooms(self, row: Sequence[int]) -> list[float]:
        """How far each item of a row is from the one before it, at least."""
        half = [(GAP if item < self.count else BEND) / 2 for item in row]
        return [0.0] * bool(row) + [one + other for one, other in pairwise(half)]


def _spaced(wanted: Sequence[float], rooms: Sequence[float]) -> list[float]:
    """Return the places nearest to ``wanted``, in squares, that keep the order and the room between neighbours."""
    offsets: list[float] = []
    at = 0.0
    for room in rooms:
        at += room
        offsets.append(at)
    blocks: list[tuple[float, int]] = []       # the sum and number of items that stand together
    for value, offset in zip(wanted, offsets, strict=True):
        total, number = value - offset, 1
        while blocks and blocks[-1][0] * number >= total * blocks[-1][1]:
            more, others = blocks.pop()
            total, number = total + more, number + others
        blocks.append((total, number))
    means = [total / number for total, number in blocks for _ in range(number)]
    return [mean + offset for mean, offset in zip(means, offsets, strict=True)]
