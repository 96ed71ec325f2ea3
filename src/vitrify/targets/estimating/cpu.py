"""A node on the cores of a chip, by int8 kernels: products at a rate, values at a cost each, bytes from memory.

More threads share out the products of convolutions and matrices, less well than wholly; the rest of a model runs on
one core, as the plain kernels of LiteRT do it.
"""

from __future__ import annotations

from vitrify.ir import Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds
from vitrify.targets.estimating.time import Bound, NodeTime, spread
from vitrify.targets.estimating.work import FREE, SLOW, Work, work_of

_RECURRENT = ("LSTM", "RNN")


def cpu_seconds(node: Node, target: Target, threads: int = 1) -> Seconds:
    """Return the time of ``node`` on ``threads`` cores."""
    return cpu_time(node, target, threads).seconds


def cpu_time(node: Node, target: Target, threads: int = 1) -> NodeTime:
    """Return the time of ``node`` on ``threads`` cores, and what it waits for."""
    parts = cpu_parts(node, target, threads)
    likely = sum(parts.values())
    bound: Bound = max(parts, key=parts.__getitem__)
    source = f"Vitrify's model of {target.cpu}, int8, {threads} thread{'s' * (threads > 1)}"
    if "cpu_spread" in target.facts:
        return NodeTime(spread(likely, target, "cpu_spread"), bound, source)
    return NodeTime(_by_bounds(node, target), bound, source)


def cpu_parts(node: Node, target: Target, threads: int = 1) -> dict[Bound, float]:
    """Return the seconds of ``node`` by what they are spent on."""
    work, kind = work_of(node), node.op.kind
    start = target.value("cpu_node_s")
    if kind in FREE:
        return {"start": start, "memory": work.value_bytes / 2 / _bytes_per_s(target)}
    if not work.macs:
        each = target.known("cpu_slow_element_s") if kind in SLOW else None
        return {"values": work.values * (target.value("cpu_element_s") if each is None else each), "start": start}
    rate = _rate(kind, target) * _speedup(threads, target)
    products = max(work.macs / rate, work.weight_bytes / _bytes_per_s(target))
    return {"products": products, "values": (work.patches + _written(node)) * target.value("cpu_element_s") / (
        _speedup(threads, target)), "start": start}


def _written(node: Node) -> int:
    return sum(tensor.size for tensor in node.outputs)


def _rate(kind: str, target: Target) -> float:
    """Products a second on one core: depthwise ones reuse nothing, recurrent ones go step by step."""
    special = None
    if kind == "DEPTHWISE_CONV_2D":
        special = target.known("cpu_depthwise_macs_per_s")
    elif kind.endswith(_RECURRENT):
        special = target.known("cpu_step_macs_per_s")
    return target.value("cpu_macs_per_s") if special is None else special


def _bytes_per_s(target: Target) -> float:
    known = target.known("cpu_bytes_per_s")
    return target.far_bytes_per_s.value if known is None else known


def _speedup(threads: int, target: Target) -> float:
    """How much faster ``threads`` cores multiply: a share of the work is done by all of them (Amdahl)."""
    share = target.known("cpu_parallel_share") or 0.0
    return 1.0 / (1.0 - share + share / max(1, threads))


def _by_bounds(node: Node, target: Target) -> Seconds:
    """The interval of a chip whose cores nothing published measures: the bounds of each fact."""
    work: Work = work_of(node)
    start, rate, element = (target.fact(name) for name in ("cpu_node_s", "cpu_macs_per_s", "cpu_element_s"))
    if work.macs:
        low, likely, high = work.macs / rate.bounds[1], work.macs / rate.value, work.macs / rate.bounds[0]
    else:
        low, likely, high = (work.values * each for each in (element.bounds[0], element.value, element.bounds[1]))
    return Seconds(low + start.bounds[0], likely + start.value, high + start.bounds[1])
