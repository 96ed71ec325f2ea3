"""A graph placed by the rules alone: verdicts, partitions, and the share of nodes and MACs that leave the CPU."""

from __future__ import annotations

from collections.abc import Sequence

from vitrify.ir import Graph
from vitrify.targets.base import Target
from vitrify.targets.cost import cpu_seconds, node_macs
from vitrify.targets.partition import partition
from vitrify.targets.placement import Coverage, Placement, Verdict
from vitrify.targets.rules.judging import judge


def place(graph: Graph, target: Target) -> Placement:
    """Return where the rules put every node of ``graph``; what the NPU's share takes is not known to them."""
    return placed_as(graph, target, judge(graph, target))


def placed_as(graph: Graph, target: Target, verdicts: Sequence[Verdict]) -> Placement:
    """Return the placement that ``verdicts`` make, one for each node in the graph's order."""
    places = {node: verdict.placement for node, verdict in zip(graph, verdicts, strict=True)}
    costs = {node: cpu_seconds(node, target).likely * 1e3 for node, place in places.items() if place == "cpu"}
    macs = {node: node_macs(node) for node in places}
    off_cpu = [node for node, place in places.items() if place != "cpu"]
    share = Coverage(nodes=_share(len(off_cpu), len(places)),
                     macs=_share(sum(macs[node] for node in off_cpu), sum(macs.values())),
                     time=None)
    return Placement(target=target.name, coverage=share, verdicts=tuple(verdicts),
                     partitions=tuple(partition(graph, places, None, costs)))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
