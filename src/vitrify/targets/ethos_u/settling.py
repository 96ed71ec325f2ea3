"""From broken rules to places: what breaks one stays on the CPU, and some nodes go where their neighbours go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vitrify.ir import Graph, Node
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
    places: dict[Node, Place] = {}
    for node in graph:
        places[node] = "cpu" if node in broken else "folded" if node.op.kind in _FOLDED else "npu"
    return places
