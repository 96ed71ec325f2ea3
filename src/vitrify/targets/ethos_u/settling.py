"""From broken rules to places: what breaks one stays on the CPU, and some nodes go where their neighbours go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vitrify.ir import Graph, Node
from vitrify.ops import Reshape
from vitrify.targets.ethos_u.cores import core
from vitrify.targets.placement import Place, Reason
from vitrify.targets.rules.rule import Variant

_FOLDED = frozenset({"EXPAND_DIMS", "RESHAPE", "SQUEEZE"})
"""Operators that only rename what they are given."""


def variant(name: str) -> Variant:
    """Return the limits of a core."""
    return Variant(core=name, limits=core(name).limits)


def operators(name: str) -> frozenset[str]:
    """Return the operators that the compiler takes for a core, of some form."""
    return core(name).operators


def settle(graph: Graph, broken: Mapping[Node, Sequence[Reason]], name: str) -> dict[Node, Place]:
    """Return the place of every node of ``graph``."""
    unread = _unread(graph, broken) | _handles(graph, broken, name)
    return {node: "folded" if node in unread or (node.op.kind in _FOLDED and node not in broken) else
            "cpu" if node in broken else "npu" for node in graph}


def _unread(graph: Graph, broken: Mapping[Node, Sequence[Reason]]) -> set[Node]:
    """Return the nodes that only compute a shape that the compiler knows already; it drops them.

    Seen with Vela 5.2.0: SHAPE, STRIDED_SLICE and PACK in front of a RESHAPE that it takes are gone; in front of
    anything else they stay on the CPU.
    """
    unread: set[Node] = set()
    for node in reversed(graph.nodes):
        if node.outputs and all(not t.is_output and t.uses and all(
                user in unread or (isinstance(user.op, Reshape) and place == 1 and user not in broken)
                for user, place in t.uses) for t in node.outputs):
            unread.add(node)
    return unread


def _handles(graph: Graph, broken: Mapping[Node, Sequence[Reason]], name: str) -> set[Node]:
    """Return the variables' handles that vanish: where reading and writing a variable is the NPU's own business."""
    if "READ_VARIABLE" not in core(name).operators:
        return set()
    return {node for node in graph if node.op.kind == "VAR_HANDLE" and not any(user in broken
            for tensor in node.outputs for user in tensor.users)}
