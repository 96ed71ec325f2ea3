"""What one node takes: a time with bounds, what limits it, and where the figure is from."""

from __future__ import annotations

from typing import Literal, NamedTuple

from vitrify.targets.base import Target
from vitrify.targets.cost import NOTHING, Seconds

Bound = Literal["products", "values", "memory", "start", "nothing"]
"""What a node waits for: multiplications, work on values one by one, bytes of a memory, being started at all."""


class NodeTime(NamedTuple):
    """The time of one node, what it waits for, and where the figure is from."""

    seconds: Seconds
    bound: Bound
    source: str


FREE = NodeTime(NOTHING, "nothing", "")


def spread(likely: float, target: Target, fact: str) -> Seconds:
    """Return a time with the bounds that a fitted factor gives: measurements lay within it, above and below."""
    factor = target.value(fact)
    return Seconds(likely / factor, likely, likely * factor)
