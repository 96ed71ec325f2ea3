"""Groups the nodes of a graph into partitions that run on one side, and finds the tensors that cross."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Literal

from vitrify.ir import Graph, Node, Tensor
from vitrify.targets.placement import Crossing, Partition, Place

_FOLDED: tuple[Place, int] = ("folded", -1)


def partition(graph: Graph, places: Mapping[Node, Place], groups: Mapping[Node, int] | None = None,
              times_ms: Mapping[Node, float] | None = None) -> list[Partition]:
    """Return the partitions of ``graph`` in running order.

    Args:
        graph: the placed graph.
        places: the side of every node. Folded nodes go with the node that makes or takes their value.
        groups: NPU node -> number of the compiler's own group; nodes of different groups never share a partition.
        times_ms: what each node costs; zero where it is not said.
    """
    members: list[tuple[Literal["npu", "cpu"], int, list[Node]]] = []
    for node in _runs(graph, places, groups or {}):
        place = places[node]
        group = (groups or {}).get(node, -1) if place == "npu" else -1
        if place == "folded":
            continue
        side: Literal["npu", "cpu"] = "npu" if place == "npu" else "cpu"
        if members and members[-1][0] == side and members[-1][1] == group:
            members[-1][2].append(node)
        else:
            members.append((side, group, [node]))
    home = {node: index for index, (_, _, nodes) in enumerate(members) for node in nodes}
    _settle_folded(graph, places, home, members)
    costs = times_ms or {}
    return [_describe(index, side, nodes, home, sum(costs.get(node, 0.0) for node in nodes))
            for index, (side, _, nodes) in enumerate(members)]


def _runs(graph: Graph, places: Mapping[Node, Place], groups: Mapping[Node, int]) -> list[Node]:
    """Order the nodes so that as many as possible of one side and group follow each other."""
    waiting = {node: len(set(_producers(node))) for node in graph}
    ready: dict[tuple[Place, int], deque[Node]] = {}
    ordered: list[Node] = []
    current: tuple[Place, int] = ("folded", -1)

    def enter(node: Node) -> None:
        place = places[node]
        ready.setdefault((place, -1 if place == "folded" else groups.get(node, -1)), deque()).append(node)

    for node, count in waiting.items():
        if count == 0:
            enter(node)
    while ready:
        key = next((key for key in (_FOLDED, current) if key in ready), None)
        if key is None:
            # A group may start only once; take the earliest group, and the CPU's nodes before it.
            key = min(ready, key=lambda key: (key[0] == "npu", key[1]))
        node = ready[key].popleft()
        if not ready[key]:
            del ready[key]
        ordered.append(node)
        current = current if key == _FOLDED else key
        for user in dict.fromkeys(user for tensor in node.outputs for user in tensor.users):
            waiting[user] -= 1
            if waiting[user] == 0:
                enter(user)
    return ordered


def _settle_folded(graph: Graph, places: Mapping[Node, Place], home: dict[Node, int],
                   members: list[tuple[Literal["npu", "cpu"], int, list[Node]]]) -> None:
    """Give each folded node the partition of a neighbour: an NPU's where there is one, since it folds into that."""
    folded = [node for node in graph if places[node] == "folded"]
    on_npu = {index for index, (side, _, _) in enumerate(members) if side == "npu"}
    for allowed in (on_npu, set(range(len(members)))):
        for node in (*folded, *folded[::-1]):       # both ways, since folded nodes follow each other
            if node not in home:
                before = [home[other] for other in _producers(node) if other in home]
                after = [home[other] for other in _users(node) if other in home]
                choices = [index for index in (*before, *after) if index in allowed and index >= max(before, default=0)]
                if choices:
                    home[node] = choices[0]
                    members[home[node]][2].append(node)
    position = {node: index for index, node in enumerate(graph)}
    for _, _, nodes in members:
        nodes.sort(key=position.__getitem__)


def _producers(node: Node) -> list[Node]:
    return [tensor.producer for tensor in node.inputs if tensor is not None and tensor.producer is not None]


def _users(node: Node) -> list[Node]:
    return [user for tensor in node.outputs for user in tensor.users]


def _describe(index: int, side: Literal["npu", "cpu"], nodes: list[Node], home: Mapping[Node, int],
              time_ms: float) -> Partition:
    entering: dict[int, Tensor] = {}
    leaving: dict[int, Tensor] = {}
    for node in nodes:
        for tensor in node.inputs:
            if tensor is not None and not tensor.is_constant and \
                    (tensor.producer is None or home.get(tensor.producer) != index):
                entering[id(tensor)] = tensor
        for made in node.outputs:
            if made.is_output or any(home.get(user) != index for user in made.users):
                leaving[id(made)] = made
    return Partition(index=index, placement=side, nodes=tuple(node.name for node in nodes),
                     inputs=_crossings(entering), outputs=_crossings(leaving), time_ms=time_ms)


def _crossings(tensors: Mapping[int, Tensor]) -> tuple[Crossing, ...]:
    return tuple(Crossing(tensor=tensor.name, bytes=tensor.nbytes) for tensor in tensors.values())
