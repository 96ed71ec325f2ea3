"""Where nodes without a partner went: into a node that shares their origin, or that does their work beside its own."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

from vitrify.matching.items import Item, Side, makers
from vitrify.matching.state import State

ACTIVATIONS = {"RELU": "RELU", "RELU6": "RELU6", "RELU_N1_TO_1": "RELU_N1_TO_1", "TANH": "TANH"}
"""Operators that others take in as their fused activation."""

ARITHMETIC = frozenset({"ADD", "SUB", "MUL", "DIV"})
"""With a constant, these go into the weights and the bias of a neighbour."""

WEIGHTED = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV", "CONV_3D", "BATCH_MATMUL"})

MOST_CANDIDATES = 48
MOST_LOOKED_AT = 256


def homes(state: State, lonely: list[Item], other: Side, *, by_origin: bool) -> dict[Item, Item]:
    """Return the node of the other side in which each lonely node lives on, where there is one."""
    found = _by_origin(state, lonely, other) if by_origin else {}
    for item in lonely:
        if item not in found:
            home = _taken_in(state, item)
            if home is not None:
                found[item] = home
    return found


def _by_origin(state: State, lonely: list[Item], other: Side) -> dict[Item, Item]:
    index: dict[str, list[Item]] = defaultdict(list)
    for item in other.items:
        for source in item.sources:
            index[source].append(item)
    found: dict[Item, Item] = {}
    for item in lonely:
        beside = _beside(state, item, found)
        near = _near(item, index)
        if near:
            found[item] = max(near, key=lambda home: (home in beside, _overlap(item, home), home not in state.partner,
                                                      home.kind == item.kind, -abs(home.place - item.place),
                                                      -home.place))
    return found


def _near(item: Item, index: dict[str, list[Item]]) -> list[Item]:
    """Nodes that share a source, in the order of sources; of very many, the first."""
    names = (source.name for source in item.node.origin.sources if source.name in item.sources)
    shared = (home for name in names for home in index.get(name, ())[:MOST_CANDIDATES])
    return list(islice(dict.fromkeys(islice(shared, MOST_LOOKED_AT)), MOST_CANDIDATES))


def _beside(state: State, item: Item, found: dict[Item, Item]) -> set[Item]:
    """The counterparts of the nodes next to one, those that were found for lonely ones included."""
    near = [feed for _, feed in makers(item)] + [reader for reader, _ in item.readers]
    return {home for one in near if (home := state.partner.get(one) or found.get(one)) is not None}


def _overlap(a: Item, b: Item) -> float:
    return len(a.sources & b.sources) / len(a.sources | b.sources)


def _taken_in(state: State, item: Item) -> Item | None:
    """The node whose partner does this node's work too, told by its attributes or its constants."""
    before = next((maker for _, maker in makers(item)), None)
    after = item.readers[0][0] if len({reader for reader, _ in item.readers}) == 1 else None
    if item.kind in ACTIVATIONS and before is not None:
        home = state.partner.get(before)
        if home is not None and _activation(home) == ACTIVATIONS[item.kind] != _activation(before):
            return home
    if item.kind in ARITHMETIC and item.constants and len(list(makers(item))) == 1:
        for beside in (before, after):
            home = state.partner.get(beside) if beside is not None else None
            if beside is not None and home is not None and beside.kind in WEIGHTED and beside.digest != home.digest:
                return home
    if item.kind in ("PAD", "PADV2", "MIRROR_PAD") and after is not None:
        home = state.partner.get(after)
        if home is not None and _padding(home) != _padding(after):
            return home
    return None


def _activation(item: Item) -> str:
    value = getattr(item.node.op, "fused_activation_function", None)
    return "" if value is None else str(getattr(value, "name", value))


def _padding(item: Item) -> str:
    value = getattr(item.node.op, "padding", None)
    return "" if value is None else str(getattr(value, "name", value))
