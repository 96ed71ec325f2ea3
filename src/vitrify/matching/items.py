"""A graph as the matcher sees it: its nodes with what tells them apart, linked past the unpacking of constants."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property

from vitrify.ir import Graph, Node, Tensor
from vitrify.matching.digests import TELLING, digest

PLUMBING = frozenset({"TRANSPOSE", "RESHAPE", "QUANTIZE", "DEQUANTIZE", "SQUEEZE", "EXPAND_DIMS", "CAST"})
"""Operators that bring values into another form and compute nothing; a neighbour is looked for behind them."""

COMMUTATIVE = frozenset({"ADD", "MUL", "MAXIMUM", "MINIMUM", "ADD_N", "LOGICAL_AND", "LOGICAL_OR", "EQUAL",
                         "NOT_EQUAL", "SQUARED_DIFFERENCE"})

_UNPACKING = ("DEQUANTIZE", "DENSIFY")
_ENDING = re.compile(r"(_output_\d+|:\d+)$")
_PREFIX = re.compile(r"^(?:wa)?/+")

Feed = "Item | Tensor"


def plain_name(name: str) -> str:
    """A name without what exporters and converters put around it."""
    return _PREFIX.sub("", _ENDING.sub("", name))


class Item:
    """A node: ``place`` in running order, what it is (``kind``, ``shape``, ``weights``) and what it is called.

    ``shape`` are the extents of its outputs in any order without those that are 1, ``weights`` those of its telling
    constants. ``feeds`` has the maker of each input that is computed (an Item), or the graph's input (a Tensor).
    """

    __slots__ = ("_digest", "constants", "feeds", "kind", "names", "node", "place", "readers", "shape", "sources",
                 "weights")

    def __init__(self, node: Node, place: int, batch: int) -> None:
        self.node = node
        self.place = place
        self.kind = node.op.kind
        self.shape = tuple(sorted(extents(tensor, batch) for tensor in node.outputs))
        self.feeds: list[Item | Tensor | None] = []
        self.readers: list[tuple[Item, int]] = []
        self.constants: list[tuple[int, Tensor]] = []
        self.weights: tuple[tuple[int, ...], ...] = ()
        self.sources = frozenset(s.name for s in node.origin.sources)
        self.names = frozenset(plain for name in (node.name, *(t.name for t in node.outputs))
                               for part in name.split(";") if (plain := plain_name(part)))
        self._digest: tuple[tuple[int, int], ...] | None = None

    @property
    def digest(self) -> tuple[tuple[int, int], ...]:
        """The digests of its telling constants; computed when first asked for."""
        if self._digest is None:
            found = (digest(tensor) for _, tensor in self.constants)
            self._digest = tuple(sorted(value for value in found if value is not None))
        return self._digest

    @property
    def is_plumbing(self) -> bool:
        """True for what computes nothing."""
        return self.kind in PLUMBING

    def __repr__(self) -> str:
        return f"<{self.place} {self.kind} '{self.node.name}'>"


def extents(tensor: Tensor, batch: int) -> tuple[int, ...]:
    """The extents in any order, without ones and without the batch."""
    shape = tensor.shape[1:] if batch > 1 and tensor.shape[:1] == (batch,) else tensor.shape
    return tuple(sorted(extent for extent in shape if extent != 1))


def is_free(tensor: Tensor) -> bool:
    """True where a file leaves extents besides the batch to the run; those that stand there are place-holders."""
    return any(extent < 0 for extent in tensor.shape_signature[1:])


class Side:
    """One of two graphs that are matched."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        firsts = {t.shape[0] if t.shape else 1 for t in graph.inputs}
        self.batch = firsts.pop() if len(firsts) == 1 else 1
        self.items: list[Item] = []
        self.of: dict[Node, Item] = {}
        self.unpacked: dict[Tensor, Tensor] = {}
        self.unpacking: list[Node] = []
        for node in graph:
            if not self._unpacks(node):
                item = Item(node, len(self.items), self.batch)
                self.items.append(item)
                self.of[node] = item
        for item in self.items:
            self._link(item)

    def _unpacks(self, node: Node) -> bool:
        if node.op.kind not in _UNPACKING or not node.inputs or node.inputs[0] is None:
            return False
        stored = self.unpacked.get(node.inputs[0], node.inputs[0])
        if not stored.is_constant:
            return False
        self.unpacked[node.output] = stored
        self.unpacking.append(node)
        return True

    def _link(self, item: Item) -> None:
        weights = []
        for slot, tensor in enumerate(item.node.inputs):
            if tensor is None:
                item.feeds.append(None)
                continue
            stored = self.unpacked.get(tensor, tensor)
            if stored.is_constant:
                item.feeds.append(None)
                item.constants.append((slot, stored))
                if stored.size >= TELLING:
                    weights.append(extents(stored, 1))
                continue
            maker = self.of.get(tensor.producer) if tensor.producer is not None else None
            item.feeds.append(tensor if maker is None else maker)
            if maker is not None:
                maker.readers.append((item, slot))
        item.weights = tuple(sorted(weights))

    @cached_property
    def input_readers(self) -> dict[Tensor, list[tuple[Item, int]]]:
        """The nodes that read each input of the graph."""
        found: dict[Tensor, list[tuple[Item, int]]] = {tensor: [] for tensor in self.graph.inputs}
        for item in self.items:
            for slot, feed in enumerate(item.feeds):
                if isinstance(feed, Tensor) and feed in found:
                    found[feed].append((item, slot))
        return found

    def maker(self, tensor: Tensor) -> Item | None:
        """The node that makes a tensor."""
        return self.of.get(tensor.producer) if tensor.producer is not None else None


def makers(item: Item) -> Iterator[tuple[int, Item]]:
    """The inputs of a node that other nodes make."""
    return ((slot, feed) for slot, feed in enumerate(item.feeds) if isinstance(feed, Item))


def in_order(items: Iterable[Item]) -> list[Item]:
    """Items in running order, each once."""
    return sorted(set(items), key=lambda item: item.place)
