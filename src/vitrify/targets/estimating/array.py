"""A node on an NPU that is an array of multipliers before a memory: the longer of its products and its bytes.

Each dot product is filled up to the array's width and the output channels to its pipelines, at the share of the peak
that was measured. From and to the memory outside the chip go the weights wholly and the values by the share that does
not stay inside.
"""

from __future__ import annotations

import math

from vitrify.ir import Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds, node_macs
from vitrify.targets.estimating.time import Bound, NodeTime, spread
from vitrify.targets.estimating.work import work_of

_NEEDED = ("npu_efficiency", "npu_node_s", "activation_share", "clock_hz", "macs_per_cycle", "dot_length")


def can_estimate(target: Target) -> bool:
    """True where the facts of a target allow an estimate without its compiler."""
    return all(name in target.facts for name in _NEEDED)


def npu_seconds(node: Node, target: Target) -> Seconds:
    """Return the time of ``node`` on the NPU."""
    return npu_time(node, target).seconds


def npu_time(node: Node, target: Target) -> NodeTime:
    """Return the time of ``node`` on the NPU, and what it waits for."""
    products, memory = _parts(node, target, 1)
    bound: Bound = "products" if products >= memory else "memory"
    start = target.value("npu_node_s")
    source = f"Vitrify's own model of {target.npu}"
    likely = max(products, memory) + start
    if "npu_spread" in target.facts:
        return NodeTime(spread(likely, target, "npu_spread"), bound, source)
    return NodeTime(Seconds(max(_parts(node, target, 0)) + target.fact("npu_node_s").bounds[0], likely,
                            max(_parts(node, target, 2)) + target.fact("npu_node_s").bounds[1]), bound, source)


def _parts(node: Node, target: Target, bound: int) -> tuple[float, float]:
    """The seconds of products and of bytes, at the fast bound (0), as likely (1), at the slow bound (2)."""
    efficiency, share, far = target.fact("npu_efficiency"), target.fact("activation_share"), target.far_bytes_per_s
    part = (efficiency.bounds[1], efficiency.value, efficiency.bounds[0])[bound]
    kept = (share.bounds[0], share.value, share.bounds[1])[bound]
    rate = (far.bounds[1], far.value, far.bounds[0])[bound]
    work = work_of(node)
    peak = target.value("macs_per_cycle") * target.value("clock_hz")
    return filled_macs(node, target) / peak / part, (work.weight_bytes + kept * work.value_bytes) / rate


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
