"""The layout pass: floods from every TRANSPOSE, chooses, changes."""

from __future__ import annotations

from collections import deque

from vitrify import ops
from vitrify.ir import Graph, Model, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.layout.change import NAME, Change
from vitrify.passes.layout.choice import Choice, choose
from vitrify.passes.layout.perms import Perm, inverse, is_identity
from vitrify.passes.layout.region import Region, flood, permutation


class TurnLayout(Pass):
    """Store tensors in the order that their operators want, and remove the TRANSPOSEs that this saves.

    Before:  %1 = TRANSPOSE(%x, to NHWC);  %2 = CONV_2D(%1);  %3 = TRANSPOSE(%2, to NCHW);  %4 = ADD(%3, c[C,1,1])
    After:   %2 = CONV_2D(%x);  %4 = ADD(%2, c[1,1,C])
    Exact, but sums over several axes may add in another order.
    """

    name = NAME
    kinds = (ops.Transpose,)

    def __init__(self, model: Model, turn_inputs: bool = True, turn_outputs: bool = True) -> None:
        super().__init__()
        self.model = model
        self.turn_inputs, self.turn_outputs = turn_inputs, turn_outputs

    def again(self) -> TurnLayout:
        """The same pass with an empty record, for the next run."""
        return TurnLayout(self.model, self.turn_inputs, self.turn_outputs)

    def run(self, graph: Graph) -> int:
        """Change regions until none is worth it; returns the number of nodes rewritten."""
        changed = 0
        waiting = deque(graph.nodes_of(ops.Transpose))
        hopeless: set[tuple[Tensor, Perm]] = set()      # seen in floods that changed nothing, in the graph as it is
        while waiting:
            node = waiting.popleft()
            for seed, perm in _seeds(node) if node.graph is graph else ():
                if (seed, perm) in hopeless:
                    continue
                region = flood(seed, perm)
                choice = choose(graph, region, self._free_inputs(graph), self._free_outputs(graph))
                if not choice.nodes or choice.saved_bytes <= 0:
                    hopeless.update(region.perms.items())
                    continue
                waiting.extend(self._change(graph, region, choice))
                hopeless.clear()
                changed += len(choice.nodes)
                break
        return changed

    def _change(self, graph: Graph, region: Region, choice: Choice) -> list[Node]:
        """Rewrite what was chosen; returns the TRANSPOSEs that this needed."""
        for node in region.layouts:
            if node in choice.nodes:
                self.touch(str(node.origin) if node.origin.sources else "")
        change = Change(self.model, graph, region, choice)
        change.run()
        return change.transposes

    def _free_inputs(self, graph: Graph) -> set[Tensor]:
        """Graph inputs whose layout the interface can undo."""
        interface = self.model.interface
        if not self.turn_inputs or interface is None or graph is not self.model.main:
            return set()
        bound = {binding.position for binding in interface.inputs}
        return {t for i, t in enumerate(graph.inputs) if i in bound and not t.is_output}

    def _free_outputs(self, graph: Graph) -> set[int]:
        """Places of graph outputs whose layout the interface can undo."""
        interface = self.model.interface
        if not self.turn_outputs or interface is None or graph is not self.model.main:
            return set()
        return {part.position for binding in interface.outputs for part in binding.parts}


def _seeds(node: Node) -> list[tuple[Tensor, Perm]]:
    """The two ways to be rid of a TRANSPOSE: its input stored turned, or its output stored unturned."""
    turn = permutation(node)
    if turn is None or is_identity(turn) or node.input(0).is_constant:
        return []
    return [(node.input(0), turn), (node.output, inverse(turn))]
