"""Stretches of a graph computed on unreshaped tensors, where that needs fewer reshapes."""

from __future__ import annotations

from vitrify.ir import Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import RESHAPES, bypass, sweep
from vitrify.passes.layout.rule import reshape_node
from vitrify.passes.reshaping.reshape_regions import Joining, Stretch, joining, source_of, stretch, unreshaped
from vitrify.passes.reshaping.reshapes import reshape_to

MOST_NODES = 20_000


class FewerReshapes(Pass):
    """Compute on tensors as they are, not on reshapes of them, where the reshape is undone later.

    Before:  %1 = RESHAPE(%x, [197,192]);  %2 = FULLY_CONNECTED(%1, w, b);  %3 = RESHAPE(%2, [1,197,192])
    After:   %3 = FULLY_CONNECTED(%x, w, b)      keeping dimensions
    Sums over several axes may add in another order.
    """

    name = "fewer-reshapes"
    kinds = RESHAPES

    def run(self, graph: Graph) -> int:
        """Change stretches until none has fewer reshapes another way."""
        changed = 0
        hopeless: dict[Tensor, Joining] = {}
        for node in graph.nodes_of(*self.kinds):
            join = joining(node) if node.graph is graph else None
            if join is None or hopeless.get(node.output) == join:
                continue
            found = stretch(node.output, join, MOST_NODES)
            if found is None or not found.nodes or found.gain() <= 0:
                hopeless.update(dict.fromkeys(found.shapes if found is not None else (), join))
                continue
            label = str(node.origin) if node.origin.sources else ""
            _Unreshaping(self, graph, found).run()
            self.touch(label)
            changed += 1
        return changed


class _Unreshaping:
    """One stretch being changed; ``held`` maps a tensor to what holds its values unreshaped."""

    def __init__(self, owner: Pass, graph: Graph, found: Stretch) -> None:
        self.owner, self.graph, self.found = owner, graph, found
        self.held: dict[Tensor, Tensor] = {}

    def run(self) -> None:
        """Write each node anew, serve the readers outside, and remove what was."""
        old = self.graph.in_order(self.found.nodes)
        for node in old:
            self._write(node)
        for node in old:
            for tensor in node.outputs:
                self._serve(tensor, node)
        for node in reversed(old):
            self.graph.remove(node)
        sweep(self.graph, *(tensor for tensor in self.found.shapes if tensor not in self.graph.inputs))

    def _write(self, node: Node) -> None:
        inputs = [self._holder(t, node) if t in self.found.shapes else t for t in node.inputs]
        op, inputs = unreshaped(node, self.found.join, inputs)
        outputs = []
        for tensor in node.outputs:
            origin = tensor.origin.by(self.owner.name)
            self.held[tensor] = Tensor(tensor.name, tensor.dtype, self.found.shapes[tensor], origin=origin)
            outputs.append(self.held[tensor])
        new = self.graph.add(op, inputs, outputs, name=node.name, origin=node.origin.by(self.owner.name), before=node)
        new.extras = dict(node.extras)

    def _holder(self, tensor: Tensor, node: Node) -> Tensor:
        if tensor not in self.held:
            shape = self.found.shapes[tensor]
            source = source_of(tensor, shape)
            self.held[tensor] = source if source is not None else reshape_node(
                self.graph, tensor, shape, tensor.origin.by(self.owner.name), before=node).output
        return self.held[tensor]

    def _serve(self, tensor: Tensor, node: Node) -> None:
        """Give readers outside the stretch what they read."""
        held = self.held[tensor]
        plain: Tensor | None = None
        for user, index in tensor.uses:
            if user in self.found.nodes:
                continue
            if isinstance(user.op, RESHAPES) and index == 0:
                self._skip(user, held)
                continue
            plain = plain or self._reshaped(held, tensor, node)
            self.graph.set_input(user, index, plain)
        if tensor.is_output:
            plain = plain or self._reshaped(held, tensor, node)
            self.graph.replace_uses(tensor, plain)

    def _reshaped(self, held: Tensor, tensor: Tensor, node: Node) -> Tensor:
        made = reshape_node(self.graph, held, tensor.shape, self.owner.made(node), before=node).output
        made.name, made.origin = tensor.name, tensor.origin
        if not held.is_output:
            held.name = f"{tensor.name}_whole"
        return made

    def _skip(self, reshape: Node, held: Tensor) -> None:
        """Let a reshape of a reshaped tensor read the unreshaped one, or go."""
        if reshape.output.shape == held.shape:
            self.graph.set_input(reshape, 0, held)
            if bypass(self.graph, reshape, held):
                return
        op, target = reshape_to(reshape)
        self.graph.replace_node(reshape, op, [held, target], origin=self.owner.made(reshape))
