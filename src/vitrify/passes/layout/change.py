"""Rewriting the chosen part of a region onto stored (permuted) tensors."""

from __future__ import annotations

import msgspec.structs
import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Model, Node, Tensor
from vitrify.ir.graph import Array
from vitrify.ir.interface import OutputBinding
from vitrify.passes.layout.choice import Choice
from vitrify.passes.layout.perms import Perm, identity, inverse, is_identity, permute, then
from vitrify.passes.layout.region import Region
from vitrify.passes.layout.rule import RULES, Editor

NAME = "layout"


class Change:
    """One rewriting. ``stored`` maps a tensor to what holds its values permuted."""

    def __init__(self, model: Model, graph: Graph, region: Region, choice: Choice) -> None:
        self.model, self.graph, self.region, self.choice = model, graph, region, choice
        self.stored: dict[Tensor, Tensor] = {}
        self.constants: dict[tuple[Tensor, Perm], Tensor] = {}
        self.old: list[Node] = []
        self.transposes: list[Node] = []

    def run(self) -> None:
        """Rewrite every chosen node in order, then remove the old ones."""
        for tensor in list(self.graph.inputs):
            if tensor in self.choice.inputs:
                self._turn_input(tensor)
        for node in self.graph.in_order(self.choice.nodes):
            self._turn(node)
        for node in reversed(self.old):
            self.graph.remove(node)

    def _turn(self, node: Node) -> None:
        layouts = self.region.layouts[node]
        origin = node.origin.by(NAME)
        inputs = [self._operand(t, perm, node) for t, perm in zip(node.inputs, layouts.inputs, strict=True)]
        if isinstance(node.op, ops.Transpose):
            assert inputs[0] is not None
            made: tuple[Tensor, ...] = (inputs[0],)
        else:
            op, new_inputs = RULES[type(node.op)].rewrite(node, layouts, inputs, Editor(self.graph, node, origin))
            outputs = [_like(t, perm) for t, perm in zip(node.outputs, layouts.outputs, strict=True)]
            new = self.graph.add(op, new_inputs, outputs, name=node.name, origin=origin, before=node)
            new.extras = dict(node.extras)
            made = new.outputs
        for tensor, perm, holder in zip(node.outputs, layouts.outputs, made, strict=True):
            self._hand_on(node, tensor, perm, holder)
        self.old.append(node)

    def _operand(self, tensor: Tensor | None, perm: Perm | None, node: Node) -> Tensor | None:
        """The tensor that holds ``tensor`` by ``perm`` for a changed node."""
        if tensor is None or perm is None or tensor in self.stored:
            return tensor if tensor is None or perm is None else self.stored[tensor]
        if is_identity(perm):
            return tensor
        if tensor.data is not None:
            key = (tensor, perm)
            if key not in self.constants:
                self.constants[key] = _like(tensor, perm, tensor.data.transpose(perm))
            return self.constants[key]
        self.stored[tensor] = self._transpose(tensor, perm, _like(tensor, perm), node)
        return self.stored[tensor]

    def _transpose(self, source: Tensor, perm: Perm, result: Tensor, before: Node) -> Tensor:
        values = np.array(perm, np.int32)
        result.name = f"{result.name}_transposed"
        turn = Tensor(f"{source.name}_perm", DType.INT32, values.shape, data=values)
        origin = (source.origin if source.origin.sources else result.origin).by(NAME)
        self.transposes.append(self.graph.add(ops.Transpose(), [source, turn], [result], name=result.name,
                                              origin=origin, before=before))
        return result

    def _hand_on(self, node: Node, tensor: Tensor, perm: Perm, holder: Tensor) -> None:
        """Let the readers of ``tensor`` read what stands for it now; those that need it unchanged get it back."""
        self.stored[tensor] = holder
        kept = [(user, index) for user, index in tensor.uses
                if user not in self.choice.nodes or self._reads_plainly(user, index)]
        plain = [i for i, t in enumerate(self.graph.outputs) if t is tensor and i not in self.choice.outputs]
        turned = [i for i, t in enumerate(self.graph.outputs) if t is tensor and i in self.choice.outputs]
        if turned:
            self._turn_outputs(turned, node, tensor, perm)
        if not kept and not plain:
            return
        unchanged = holder if is_identity(perm) else self._transpose(holder, inverse(perm), _copy(tensor), node)
        for user, index in kept:
            self.graph.set_input(user, index, unchanged)
        if plain:
            self._set_outputs(plain, self._as_output(unchanged, tensor, node))

    def _reads_plainly(self, user: Node, index: int) -> bool:
        """True for a changed node that reads this input without a permutation of its own (an index, say)."""
        return self.region.layouts[user].inputs[index] is None

    def _turn_outputs(self, places: list[int], node: Node, tensor: Tensor, perm: Perm) -> None:
        self._set_outputs(places, self._as_output(self.stored[tensor], tensor, node))
        interface = self.model.interface
        if interface is None:
            return
        outputs = tuple(_turned(binding, places, inverse(perm)) for binding in interface.outputs)
        self.model.interface = msgspec.structs.replace(interface, outputs=outputs)

    def _as_output(self, holder: Tensor, old: Tensor, node: Node) -> Tensor:
        """``holder`` under the output's name; a copy when it is an input, or an output with a name already."""
        if holder.producer is None or (holder.is_output and holder is not old):
            sizes = np.array(holder.shape, np.int32)
            shape = Tensor(f"{old.name}_shape", DType.INT32, sizes.shape, data=sizes)
            copy = Tensor(old.name, holder.dtype, holder.shape, quantization=holder.quantization, origin=old.origin)
            return self.graph.add(ops.Reshape(new_shape=holder.shape), [holder, shape], [copy],
                                  origin=node.origin.by(NAME), before=node).output
        holder.name = old.name
        if old.origin.sources:
            holder.origin = old.origin
        return holder

    def _set_outputs(self, places: list[int], tensor: Tensor) -> None:
        self.graph.set_outputs(tensor if i in places else t for i, t in enumerate(self.graph.outputs))

    def _turn_input(self, tensor: Tensor) -> None:
        """Let a graph input take its values permuted, and the interface say so."""
        perm = self.region.perms[tensor]
        position = self.graph.inputs.index(tensor)
        new = _like(tensor, perm)
        self.graph.inputs[position] = new
        self.stored[tensor] = new
        unchanged = [(user, index) for user, index in tensor.uses
                     if user not in self.choice.nodes or self._reads_plainly(user, index)]
        if unchanged:
            back = self._transpose(new, inverse(perm), _copy(tensor), next(iter(self.graph)))
            for user, index in unchanged:
                self.graph.set_input(user, index, back)
        interface = self.model.interface
        assert interface is not None
        inputs = tuple(msgspec.structs.replace(b, perm=then(b.perm or identity(len(perm)), perm))
                       if b.position == position else b for b in interface.inputs)
        self.model.interface = msgspec.structs.replace(interface, inputs=inputs)


def _turned(binding: OutputBinding, places: list[int], back: Perm) -> OutputBinding:
    """The binding after the file's outputs at ``places`` were permuted; ``back`` undoes that."""
    parts = tuple(msgspec.structs.replace(part, perm=then(back, part.perm or identity(len(back))))
                  if part.position in places else part for part in binding.parts)
    return msgspec.structs.replace(binding, parts=parts)


def _like(tensor: Tensor, perm: Perm, data: Array | None = None) -> Tensor:
    """A tensor that stands for ``tensor`` permuted."""
    result = _copy(tensor)
    result.shape = permute(tensor.shape, perm)
    result.data = data
    if tensor.shape_signature:
        result.shape_signature = permute(tensor.shape_signature, perm)
    result.origin = tensor.origin.by(NAME)
    return result


def _copy(tensor: Tensor) -> Tensor:
    result = Tensor(tensor.name, tensor.dtype, tensor.shape, quantization=tensor.quantization, origin=tensor.origin)
    result.shape_signature = tensor.shape_signature
    return result
