"""A latency without a compiler: what the array, the memory and the calls must cost at least, fitted to measurements.

The time of a node on the NPU is the longer of two: its products, each dot product filled up to the array's width and
the output channels to its pipelines, at the share of the peak that was measured; and its bytes from and to the memory
outside the chip, the weights wholly and the values by the share that does not stay inside.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from vitrify.ir import Graph, Node
from vitrify.targets.base import Target
from vitrify.targets.cost import NOTHING, Seconds, call_seconds, cpu_seconds, node_macs, total
from vitrify.targets.placement import Estimate, Place

_MS = 1e3
_NEEDED = ("npu_efficiency", "npu_node_s", "activation_share", "clock_hz", "macs_per_cycle", "dot_length")


def can_estimate(target: Target) -> bool:
    """True where the facts of a target allow an estimate without its compiler."""
    return all(name in target.facts for name in _NEEDED)


def node_seconds(graph: Graph, places: Mapping[Node, Place], target: Target) -> dict[Node, Seconds]:
    """Return the time of every node, on the side where it runs; without a compiler's facts, the NPU's is nothing."""
    able = can_estimate(target)
    times = {}
    for node in graph:
        place = places[node]
        if place == "cpu":
            times[node] = cpu_seconds(node, target)
        else:
            times[node] = npu_seconds(node, target) if able and place == "npu" else NOTHING
    return times


def npu_seconds(node: Node, target: Target) -> Seconds:
    """Return the time of ``node`` on the NPU."""
    efficiency, share, start = (target.fact(name) for name in ("npu_efficiency", "activation_share", "npu_node_s"))
    peak = target.value("macs_per_cycle") * target.value("clock_hz")
    products = filled_macs(node, target) / peak
    weights = sum(t.nbytes for t in node.inputs if t is not None and t.is_constant)
    values = sum(t.nbytes for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant)
    far = target.far_bytes_per_s

    def time(part: float, kept: float, rate: float, begin: float) -> float:
        return max(products / part, (weights + kept * values) / rate) + begin

    return Seconds(time(efficiency.bounds[1], share.bounds[0], far.bounds[1], start.bounds[0]),
                   time(efficiency.value, share.value, far.value, start.value),
                   time(efficiency.bounds[0], share.bounds[1], far.bounds[0], start.bounds[1]))


def filled_macs(node: Node, target: Target) -> float:
    """Return the products that the array does for ``node``, those with filling counted too."""
    macs = node_macs(node)
    if not macs:
        return 0.0
    width = int(target.value("dot_length"))
    pipelines = max(1, int(target.value("macs_per_cycle")) // width)
    depth, channels = _extents(node)
    return macs * _filled(depth, width) * _filled(channels, pipelines)


def _extents(node: Node) -> tuple[int, int]:
    """The length of a dot product along the channels, and the number of output channels."""
    weight = node.optional(1)
    shape = () if weight is None else weight.shape
    channels = node.output.shape[-1] if node.outputs and node.output.shape else 1
    if node.op.kind == "DEPTHWISE_CONV_2D":
        return 1, channels
    return (shape[-1] if shape else 1), channels


def _filled(count: int, width: int) -> float:
    return math.ceil(count / width) * width / count if count else 1.0


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
    return Estimate(latency_ms=both.likely * _MS, low_ms=both.low * _MS, high_ms=both.high * _MS, source=source,
                    npu_ms=npu.likely * _MS, cpu_ms=cpu.likely * _MS, driver_ms=driver.likely * _MS,
                    npu_cycles=round(npu.likely * target.value("clock_hz")), assumptions=tuple(target.doubts()))
