"""From broken rules to places: what breaks one stays on the CPU, renamings cost nothing, empty graphs are none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vitrify.ir import Graph, Node
from vitrify.targets.neutron.operators import CORES, ET
from vitrify.targets.placement import Place, Reason
from vitrify.targets.rules import Breach, Variant, rule, rules_of
from vitrify.targets.rules.roles import feature, ints
from vitrify.targets.rules.rule import Rule

_RENAMING = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
_EMPTY = "neutron.empty-graph"
_KEEPING = frozenset({"MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN", "PAD", "PADV2", "SLICE", "STRIDED_SLICE", "SPLIT"})
_CLAMPS = {"RELU": None, "RELU6": 6.0}
"""Where values above are cut off; all of them cut off what is below 0."""


@rule(_EMPTY, says="at least one node of a graph for the NPU computes something", confidence="documented",
      cores=CORES, why="nodes that only rename, or change no value, are folded away; a graph of nothing else reduces "
      "to nothing and is not made", source=ET, versions=">=1.0")
def empty(node: Node, variant: Variant) -> Iterator[Breach]:
    """Judged by what stands around a node (see ``alone``), never by the node itself."""
    yield from ()


def alone(graph: Graph, broken: Mapping[Node, Sequence[Reason]], core: str) -> dict[Node, tuple[Rule, Breach]]:
    """Return the nodes whose whole stretch on the NPU reduces to nothing."""
    (found,) = (one for one in rules_of("neutron") if one.code == _EMPTY)
    left: dict[Node, tuple[Rule, Breach]] = {}
    for group in _groups(graph, broken):
        if all(changes_nothing(node) for node in group):
            what = "it stands alone and changes no value" if len(group) == 1 else \
                f"it stands with {len(group) - 1} more that change no value either"
            left |= {node: (found, Breach(f"{what}, so no graph for the NPU is made of it", {"nodes": len(group)}))
                     for node in group}
    return left


def _groups(graph: Graph, broken: Mapping[Node, Sequence[Reason]]) -> list[list[Node]]:
    """Connected stretches of nodes that break no rule."""
    seen: set[Node] = set()
    groups = []
    for start in graph:
        if start in broken or start in seen:
            continue
        group, waiting = [], [start]
        seen.add(start)
        while waiting:
            node = waiting.pop()
            group.append(node)
            near = [t.producer for t in node.inputs if t is not None and t.producer is not None]
            near += [user for t in node.outputs for user in t.users]
            for other in near:
                if other not in broken and other not in seen:
                    seen.add(other)
                    waiting.append(other)
        groups.append(group)
    return groups


def changes_nothing(node: Node) -> bool:
    """True for a node that gives the values that it takes, if perhaps with another shape."""
    x = feature(node)
    if x is None or len(node.outputs) != 1 or x.size != node.output.size or x.dtype is not node.output.dtype:
        return False
    one, other = x.quantization, node.output.quantization
    same = one is other or (one is not None and other is not None and np.array_equal(one.scale, other.scale)
                            and np.array_equal(one.zero_point, other.zero_point))
    if not same:
        return False
    kind = node.op.kind
    if kind == "TRANSPOSE":
        order = ints(node.optional(1)) or ()
        kept = [axis for axis in order if len(order) == len(x.shape) and x.shape[axis] != 1]
        return bool(order) and kept == sorted(kept)
    if kind in _CLAMPS and one is not None and one.scale.size == 1 and x.dtype.numpy is not None:
        info = np.iinfo(x.dtype.numpy)
        zero, top = int(one.zero_point[0]), _CLAMPS[kind]
        return zero <= info.min and (top is None or round(top / float(one.scale[0])) + zero >= info.max)
    return kind in _RENAMING or kind in _KEEPING


def settle(graph: Graph, broken: Mapping[Node, Sequence[Reason]], core: str) -> dict[Node, Place]:
    """Return the place of every node of ``graph``."""
    return {node: "cpu" if node in broken else "folded" if node.op.kind in _RENAMING else "npu" for node in graph}
