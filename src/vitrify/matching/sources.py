"""What became of each node of a source file: the nodes that carry its name, or what it was folded into."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from vitrify.ir import Graph, Node

PASSING = frozenset({"Identity", "Unsqueeze", "Squeeze", "Reshape", "Flatten", "Transpose", "Concat", "Gather", "Slice",
                     "Cast", "Expand", "Dropout"})
"""Nodes that can give what they read; one of these that nothing is left of may be the end of what stands before it."""


class SourceEntry(NamedTuple):
    """A node of the source: its name, its kind and the names of the values it reads and makes."""

    name: str
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class Mapped(NamedTuple):
    """A node of the source, the nodes it lives on in, and how.

    ``how``: ``kept`` (one node that is of it alone), ``split`` (several), ``fused`` (a node that is of others too),
    ``folded`` (nothing computes it any more; ``nodes`` are those that use what it gave, or give what it gave),
    ``unused`` (nothing does).
    """

    source: SourceEntry
    nodes: tuple[Node, ...]
    how: str


def map_sources(sources: Sequence[SourceEntry], graph: Graph) -> list[Mapped]:
    """Find every node of the source in ``graph``, by origins, in the source's order."""
    carriers: dict[str, list[Node]] = defaultdict(list)
    for node in graph:
        for name in dict.fromkeys(source.name for source in node.origin.sources):
            carriers[name].append(node)
    readers: dict[str, list[int]] = defaultdict(list)
    for number, entry in enumerate(sources):
        for name in entry.inputs:
            readers[name].append(number)
    ends: list[tuple[Node, ...]] = [()] * len(sources)
    found: list[Mapped] = []
    for number in range(len(sources) - 1, -1, -1):          # a source's nodes stand in running order
        entry = sources[number]
        own = tuple(carriers.get(entry.name, ()))
        if own:
            ends[number] = own
            found.append(Mapped(entry, own, _how(own)))
            continue
        behind = dict.fromkeys(node for name in entry.outputs for reader in readers.get(name, ())
                               for node in ends[reader][:8])
        ends[number] = tuple(behind)
        found.append(Mapped(entry, ends[number], "folded" if behind else "unused"))
    return _with_makers(found[::-1])


def _with_makers(mapped: list[Mapped]) -> list[Mapped]:
    """Let what only passed a value on at the end of the model stand for the nodes that make it."""
    makers: dict[str, tuple[Node, ...]] = {}
    found = []
    for one in mapped:
        if one.how == "unused" and one.source.kind in PASSING:
            before = tuple(dict.fromkeys(node for name in one.source.inputs for node in makers.get(name, ())))
            one = Mapped(one.source, before, "folded") if before else one
        if one.how != "folded" or one.source.kind in PASSING:
            makers.update(dict.fromkeys(one.source.outputs, one.nodes))
        found.append(one)
    return found


def _how(own: tuple[Node, ...]) -> str:
    if len(own) > 1:
        return "split"
    return "fused" if len(own[0].origin.sources) > 1 else "kept"
