"""The time of every node on the side where it runs, and of the whole inference."""

from __future__ import annotations

from collections.abc import Mapping

from vitrify.ir import Graph, Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds, call_seconds, total
from vitrify.targets.estimating.array import can_estimate, npu_time
from vitrify.targets.estimating.cpu import cpu_time
from vitrify.targets.estimating.time import FREE, NodeTime
from vitrify.targets.placement import Estimate, Place

_MS = 1e3


def node_times(graph: Graph, places: Mapping[Node, Place], target: Target, threads: int = 1) -> dict[Node, NodeTime]:
    """Return the time of every node of ``graph`` on the side where ``places`` puts it.

    Without facts that price the NPU (an Ethos-U, whose compiler does), a node there takes nothing, like a folded one.
    """
    able = can_estimate(target)
    times = {}
    for node in graph:
        place = places[node]
        if place == "cpu":
            times[node] = cpu_time(node, target, threads)
        else:
            times[node] = npu_time(node, target) if able and place == "npu" else FREE
    return times


def node_seconds(graph: Graph, places: Mapping[Node, Place], target: Target) -> dict[Node, Seconds]:
    """Return the bare times of ``node_times``."""
    return {node: time.seconds for node, time in node_times(graph, places, target).items()}


def estimate(times: Mapping[Node, Seconds], places: Mapping[Node, Place], calls: int, target: Target
             ) -> Estimate | None:
    """Return the latency of one inference; None where the facts do not allow one."""
    if not can_estimate(target):
        return None
    npu = total(times[node] for node, place in places.items() if place == "npu")
    cpu = total(times[node] for node, place in places.items() if place == "cpu")
    driver = call_seconds(calls, target)
    both = total((npu, cpu, driver))
    efficiency = target.fact("npu_efficiency")
    source = (f"Vitrify's own model of the chip, not its compiler: {target.value('macs_per_cycle'):g} MACs at "
              f"{target.value('clock_hz') / 1e9:g} GHz, {efficiency.value:.0%} of that ({efficiency.basis})")
    return Estimate(latency_ms=both.likely * _MS, low_ms=both.low * _MS, high_ms=both.high * _MS,
                    source=target.told(source),
                    npu_ms=npu.likely * _MS, cpu_ms=cpu.likely * _MS, driver_ms=driver.likely * _MS,
                    npu_cycles=round(npu.likely * target.value("clock_hz")), assumptions=tuple(target.doubts()))
