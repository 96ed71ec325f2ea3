"""A graph placed by the rules alone: verdicts, partitions, and the share of nodes, MACs and time that leave the CPU."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from vitrify.ir import Graph, Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds, node_macs
from vitrify.targets.estimating import can_estimate, estimate, node_seconds
from vitrify.targets.partition import partition
from vitrify.targets.placement import Coverage, Estimate, Placement, Verdict
from vitrify.targets.rules.judging import judge


def place(graph: Graph, target: Target) -> Placement:
    """Return where the rules put every node of ``graph``; where the target's facts allow it, with estimated times."""
    return placed_as(graph, target, judge(graph, target))


def placed_as(graph: Graph, target: Target, verdicts: Sequence[Verdict]) -> Placement:
    """Return the placement that ``verdicts`` make, one for each node in the graph's order."""
    places = {node: verdict.placement for node, verdict in zip(graph, verdicts, strict=True)}
    times = node_seconds(graph, places, target)
    costs = {node: found.likely * 1e3 for node, found in times.items()}
    parts = tuple(partition(graph, places, None, costs))
    share = _coverage(dict(zip(graph, verdicts, strict=True)), times if can_estimate(target) else None)
    return Placement(target=target.name, coverage=share, verdicts=tuple(verdicts), partitions=parts)


def estimated(graph: Graph, target: Target, placement: Placement) -> Estimate | None:
    """Return the latency of a graph placed so, by the target's facts; None where they do not allow it."""
    places = {node: verdict.placement for node, verdict in zip(graph, placement.verdicts, strict=True)}
    return estimate(node_seconds(graph, places, target), places, placement.npu_partitions, target)


def _coverage(verdicts: Mapping[Node, Verdict], times: Mapping[Node, Seconds] | None) -> Coverage:
    """The three shares off the CPU, and those that rest on what is inferred or unknown."""
    macs = {node: node_macs(node) for node in verdicts}

    def share(wanted: Callable[[Verdict], bool], weights: Mapping[Node, float]) -> float:
        whole = sum(weights.values())
        return sum(weights[node] for node, verdict in verdicts.items() if wanted(verdict)) / whole if whole else 0.0

    def off_cpu(verdict: Verdict) -> bool:
        return verdict.placement != "cpu"

    def unsure(verdict: Verdict) -> bool:
        return verdict.is_unsure

    each: dict[Node, float] = dict.fromkeys(verdicts, 1.0)
    likely = None if times is None else {node: found.likely for node, found in times.items()}
    return Coverage(nodes=share(off_cpu, each), macs=share(off_cpu, macs),
                    time=None if likely is None else share(off_cpu, likely), unsure_nodes=share(unsure, each),
                    unsure_macs=share(unsure, macs), unsure_time=None if likely is None else share(unsure, likely))
