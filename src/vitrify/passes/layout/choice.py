"""Choosing the part of a region to change: the one whose remaining TRANSPOSEs move the fewest bytes."""

from __future__ import annotations

from dataclasses import dataclass, field

from vitrify import ops
from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.layout.cut import INFINITE, Network
from vitrify.passes.layout.perms import Perm, moves_only_ones
from vitrify.passes.layout.region import Region, permutation

RESHAPE_COST = 1
"""A TRANSPOSE that moves only axes of extent 1 becomes a RESHAPE; cheap, not free."""
INTERFACE_COST = 2
"""Changing what the file takes or gives to another order than channels last: never worth a RESHAPE."""
CHANNELS_LAST: Perm = (0, 2, 3, 1)


@dataclass
class Choice:
    """What changes: nodes, and the graph inputs and outputs (by position) that take the stored layout."""

    nodes: set[Node] = field(default_factory=set)
    inputs: set[Tensor] = field(default_factory=set)
    outputs: set[int] = field(default_factory=set)
    saved_bytes: int = 0


def cost(tensor: Tensor, perm: Perm) -> int:
    """What transposing ``tensor`` by ``perm`` costs."""
    return RESHAPE_COST if moves_only_ones(tensor.shape, perm) else tensor.nbytes + 2


def choose(graph: Graph, region: Region, free_inputs: set[Tensor], free_outputs: set[int]) -> Choice:
    """Choose by minimum cut: a node on the source's side changes, a tensor between both sides needs a TRANSPOSE."""
    network = Network()
    place = {node: network.node() for node in region.layouts}
    total = 0
    for node in place:
        if isinstance(node.op, ops.Transpose):
            turn = permutation(node)
            assert turn is not None
            price = cost(node.input(0), turn)
            network.edge(Network.SOURCE, place[node], price)
            total += price
    inputs = {t: network.node() for t in region.perms if t in free_inputs and t.producer is None}
    outputs = {i: network.node() for i, t in enumerate(graph.outputs) if i in free_outputs and t in region.perms}
    for tensor, free in (*inputs.items(), *((graph.outputs[i], free) for i, free in outputs.items())):
        if region.perms[tensor] != CHANNELS_LAST:
            network.edge(free, Network.SINK, INTERFACE_COST)
    given: dict[Tensor, set[int]] = {}
    for i, tensor in enumerate(graph.outputs):
        given.setdefault(tensor, set()).add(outputs.get(i, Network.SINK))
    for tensor, perm in region.perms.items():
        maker = tensor.producer
        start = inputs.get(tensor, Network.SINK) if maker is None else place.get(maker, Network.SINK)
        ends = {place[user] if user in place and region.layouts[user].inputs[index] is not None else Network.SINK
                for user, index in tensor.uses}
        ends |= given.get(tensor, set())
        _connect(network, start, ends, cost(tensor, perm))
    flow, side = network.cut()
    return Choice({n for n, i in place.items() if i in side}, {t for t, i in inputs.items() if i in side},
                  {o for o, i in outputs.items() if i in side}, total - flow)


def _connect(network: Network, start: int, ends: set[int], price: int) -> None:
    """Charge ``price`` once when any reader differs from the maker, in either direction."""
    ends = ends - {start}
    if not ends:
        return
    changed_maker, changed_reader = network.node(), network.node()
    network.edge(start, changed_maker, price)
    network.edge(changed_reader, start, price)
    for end in ends:
        network.edge(changed_maker, end, INFINITE)
        network.edge(end, changed_reader, INFINITE)


