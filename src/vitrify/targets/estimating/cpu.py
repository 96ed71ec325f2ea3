"""A node on the cores of a chip, by int8 kernels: products at a rate, values at a cost each, a start.

Convolutions that see one cell multiply in place; others copy patches together first. Where weights or values are not
used again (depthwise, one row by a matrix, a recurrent step) the rate is another. More threads share out a part of what
has products; the rest of a model runs on one core, as the plain kernels of LiteRT do it.
"""

from __future__ import annotations

from vitrify.ir import Node
from vitrify.targets.base import Target
from vitrify.targets.cost import Seconds
from vitrify.targets.estimating.time import Bound, NodeTime, spread
from vitrify.targets.estimating.work import RENAMING, SLOW, Work, work_of


def cpu_seconds(node: Node, target: Target, threads: int = 1) -> Seconds:
    """Return the time of ``node`` on ``threads`` cores."""
    return cpu_time(node, target, threads).seconds


def cpu_time(node: Node, target: Target, threads: int = 1) -> NodeTime:
    """Return the time of ``node`` on ``threads`` cores, and what it waits for."""
    work = work_of(node)
    parts = cpu_parts(work, target, threads)
    source = target.told(f"Vitrify's model of {target.cpu}, int8, {threads} thread{'s' * (threads > 1)}")
    bound = max(parts, key=parts.__getitem__)
    found = spread(sum(parts.values()), target, "cpu_spread") if "cpu_spread" in target.facts else _by_bounds(
        work, target)
    return NodeTime(found.times(target.correction("cpu", work.kind)), bound, source)


def cpu_parts(work: Work, target: Target, threads: int = 1) -> dict[Bound, float]:
    """Return the seconds of a node by what they are spent on."""
    start = target.value("cpu_node_s")
    if work.kind in RENAMING:
        return {"start": start}
    if not work.macs:
        special = target.known("cpu_slow_element_s") if work.kind in SLOW else None
        return {"values": work.values * (target.value("cpu_element_s") if special is None else special), "start": start}
    share = target.known("cpu_parallel_share") or 0.0
    slower = 1.0 - share + share / max(1, threads)
    if work.reuses_nothing:
        return {"products": work.macs * slower / _rate(target), "start": start}
    each = target.known("cpu_output_s") or 0.0
    return {"products": work.macs * slower / target.value("cpu_macs_per_s"),
            "values": (work.patches + work.written) * each * slower, "start": start}


def _rate(target: Target) -> float:
    """Products a second where nothing is used again; as any, where nothing tells them apart."""
    return target.known("cpu_single_macs_per_s") or target.value("cpu_macs_per_s")


def _by_bounds(work: Work, target: Target) -> Seconds:
    """The interval of a chip whose cores nothing published measures: the bounds of each fact."""
    start, rate, element = (target.fact(name) for name in ("cpu_node_s", "cpu_macs_per_s", "cpu_element_s"))
    if work.macs:
        low, likely, high = work.macs / rate.bounds[1], work.macs / rate.value, work.macs / rate.bounds[0]
    else:
        low, likely, high = (work.values * each for each in (element.bounds[0], element.value, element.bounds[1]))
    return Seconds(low + start.bounds[0], likely + start.value, high + start.bounds[1])
