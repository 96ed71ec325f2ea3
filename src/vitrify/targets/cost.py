"""A time with its bounds, and the amounts that every estimate counts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from vitrify.core.errors import VitrifyError
from vitrify.ir import Node
from vitrify.targets.base import Target


class Seconds(NamedTuple):
    """A time that is thought to lie between two bounds."""

    low: float
    likely: float
    high: float

    def __add__(self, other: object) -> Seconds:
        """Add bound by bound."""
        if not isinstance(other, Seconds):
            return NotImplemented
        return Seconds(self.low + other.low, self.likely + other.likely, self.high + other.high)

    def times(self, factor: float) -> Seconds:
        """Return all three, ``factor`` times."""
        return Seconds(self.low * factor, self.likely * factor, self.high * factor)


NOTHING = Seconds(0.0, 0.0, 0.0)


def total(times: Iterable[Seconds]) -> Seconds:
    """Return the sum, bound by bound."""
    return sum(times, NOTHING)


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
