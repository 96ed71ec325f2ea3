"""Nodes whose results nobody uses."""

from __future__ import annotations

from vitrify.ir import Graph
from vitrify.passes.base import Pass
from vitrify.passes.graphs import is_pure


class DeadCode(Pass):
    """Remove nodes whose outputs nobody uses.

    Before:  %1 = EXP(%x);  %2 = ABS(%x);  return %2
    After:   %2 = ABS(%x);  return %2
    """

    name = "dead-code"

    def run(self, graph: Graph) -> int:
        """Remove from the end backwards; nodes with side effects stay."""
        return graph.remove_dead(keep=lambda node: not is_pure(node))


