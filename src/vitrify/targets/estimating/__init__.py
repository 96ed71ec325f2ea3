"""Latencies without a compiler: one model for the cores of a chip, one for NPUs that are an array before a memory.

Both price a node by the longest of what it must do (products, values, bytes) and the cost of starting it. Their
parameters are facts of the target; each time comes with an interval and says where it is from.
"""

from vitrify.targets.cost import NOTHING, Seconds, call_seconds, node_macs, total
from vitrify.targets.estimating.array import can_estimate, filled_macs, npu_seconds, npu_time
from vitrify.targets.estimating.cpu import cpu_seconds, cpu_time
from vitrify.targets.estimating.time import Bound, NodeTime
from vitrify.targets.estimating.whole import estimate, node_seconds, node_times

__all__ = ["NOTHING", "Bound", "NodeTime", "Seconds", "call_seconds", "can_estimate", "cpu_seconds", "cpu_time",
           "estimate", "filled_macs", "node_macs", "node_seconds", "node_times", "npu_seconds", "npu_time", "total"]
