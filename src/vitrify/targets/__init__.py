"""Chips: their facts with sources, where nodes run on them, and what that costs. One folder per chip."""

from vitrify.targets.base import Fact, Target, load, names
from vitrify.targets.placement import Coverage, Crossing, Estimate, Memory, Partition, Placement, Reason, Verdict

__all__ = ["Coverage", "Crossing", "Estimate", "Fact", "Memory", "Partition", "Placement", "Reason", "Target",
           "Verdict", "load", "names"]
