"""What a node left to the CPU costs: an interval from the target's facts, as nothing published prices one operator."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vitrify.core.errors import VitrifyError
from vitrify.ir import Node
from vitrify.targets.base import Target


class Seconds(NamedTuple):
    """A time that is known to lie between two bounds."""

    low: float
    likely: float
    high: float

    def __add__(self, other: object) -> Seconds:
        """Add bound by bound."""
        if not isinstance(other, Seconds):
            return NotImplemented
        return Seconds(self.low + other.low, self.likely + other.likely, self.high + other.high)


NOTHING = Seconds(0.0, 0.0, 0.0)


def total(times: Iterable[Seconds]) -> Seconds:
    """Return the sum, bound by bound."""
    return sum(times, NOTHING)


def cpu_seconds(node: Node, target: Target) -> Seconds:
    """Return the time of ``node`` on one core: its MACs, or else its elements, plus the start of a kernel."""
    macs = node_macs(node)
    start, rate, element = (target.fact(name) for name in ("cpu_node_s", "cpu_macs_per_s", "cpu_element_s"))
    if macs:
        work = Seconds(macs / rate.bounds[1], macs / rate.value, macs / rate.bounds[0])
    else:
        touched = sum(t.size for t in (*node.inputs, *node.outputs) if t is not None and not t.is_constant)
        work = Seconds(touched * element.bounds[0], touched * element.value, touched * element.bounds[1])
    return work + Seconds(start.bounds[0], start.value, start.bounds[1])


def call_seconds(calls: int, target: Target) -> Seconds:
    """Return the time that ``calls`` calls of the NPU cost beside its work."""
    fact = target.fact("driver_call_s")
    return Seconds(calls * fact.bounds[0], calls * fact.value, calls * fact.bounds[1])


def node_macs(node: Node) -> int:
    """Return the multiply-accumulates of ``node``; 0 where there are none, or where its description cannot tell."""
    try:
        return node.op.macs(node)
    except (VitrifyError, IndexError, TypeError):      # an operator carried without description, or an odd one
        return 0
