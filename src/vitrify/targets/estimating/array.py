"""A node on an NPU that is an array of multipliers before a memory: the longer of its work and its bytes.

Products: each dot product is filled up to the array's width and the output channels to its pipelines, at the share of
the peak that was measured; depthwise ones may have a rate of their own. Operators without products go value by value,
some of them on slower units. From and to the memory outside the chip go the weights wholly and the values by the share
that does not stay inside. A recurrent layer starts several kernels for each of its steps.
"""

from __future__ import annotations

import math

from vitrify.ir import Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds
from vitrify.targets.estimating.time import Bound, NodeTime, spread
from vitrify.targets.estimating.work import SLOW, Work, work_of

_NEEDED = ("npu_efficiency", "npu_node_s", "activation_share", "clock_hz", "macs_per_cycle", "dot_length")


def can_estimate(target: Target) -> bool:
    """True where the facts of a target allow an estimate without its compiler."""
    return all(name in target.facts for name in _NEEDED)


def npu_seconds(node: Node, target: Target) -> Seconds:
    """Return the time of ``node`` on the NPU."""
    return npu_time(node, target).seconds


def npu_time(node: Node, target: Target) -> NodeTime:
    """Return the time of ``node`` on the NPU, and what it waits for."""
    work = work_of(node)
    parts = array_parts(work, target)
    start = parts.pop("start")
    bound: Bound = max(parts, key=parts.__getitem__)
    likely = parts[bound] + start
    if "npu_spread" in target.facts:
        found = spread(likely, target, "npu_spread")
    else:
        found = Seconds(_at_bound(work, target, True), likely, _at_bound(work, target, False))
    return NodeTime(found.times(target.correction("npu", work.kind)), bound if parts[bound] >= start else "start",
                    target.told(f"Vitrify's own model of {target.npu}"))


def array_parts(work: Work, target: Target) -> dict[Bound, float]:
    """Return the seconds of a node by what they are spent on; all but the start overlap."""
    moved = work.weight_bytes + target.value("activation_share") * work.value_bytes
    parts: dict[Bound, float] = {"memory": moved / target.far_bytes_per_s.value,
                                 "start": target.value("npu_node_s") * work.starts}
    depthwise = target.known("npu_depthwise_macs_per_s") if work.kind == "DEPTHWISE_CONV_2D" else None
    if depthwise is not None:
        parts["products"] = work.macs / depthwise
    elif work.macs:
        parts["products"] = _filled_products(work, target) / _peak(target) / target.value("npu_efficiency")
    else:
        slow = target.known("npu_slow_value_s") if work.kind in SLOW else None
        each = target.known("npu_value_s") or 0.0
        parts["values"] = work.values * (each if slow is None else slow)
    return parts


def _at_bound(work: Work, target: Target, fast: bool) -> float:
    """The time with every fact at its fast, or its slow, bound."""
    efficiency, share, far, start = (target.fact("npu_efficiency"), target.fact("activation_share"),
                                     target.far_bytes_per_s, target.fact("npu_node_s"))
    part, rate = (efficiency.bounds[fast], far.bounds[fast])
    kept, begin = (share.bounds[not fast], start.bounds[not fast])
    products = _filled_products(work, target) / _peak(target) / part
    return max(products, (work.weight_bytes + kept * work.value_bytes) / rate) + begin * work.starts


def filled_macs(node: Node, target: Target) -> float:
    """Return the products that the array does for ``node``, those with filling counted too."""
    return _filled_products(work_of(node), target)


def _filled_products(work: Work, target: Target) -> float:
    if not work.macs:
        return 0.0
    width = int(target.value("dot_length"))
    pipelines = target.known("channel_pipelines") or max(1, int(target.value("macs_per_cycle")) // width)
    return work.macs * _filled(work.depth, width) * _filled(work.channels, int(pipelines))


def _peak(target: Target) -> float:
    return target.value("macs_per_cycle") * target.value("clock_hz")


def _filled(count: int, width: int) -> float:
    return math.ceil(count / width) * width / count if count else 1.0
