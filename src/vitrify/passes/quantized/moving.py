"""QUANTIZE and DEQUANTIZE past operators that only move values, so that both stand beside what computes."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import bypass, sweep
from vitrify.passes.quantized.steps import (
    fits_type,
    is_steps,
    moves_values,
    new_steps,
    quantized_constant,
    shared,
    steps_of,
    wanted_steps,
)


class SinkDequantize(Pass):
    """Move values as steps and make them real afterwards.

    Before:  %1 = DEQUANTIZE(%q);  %2 = RESHAPE(%1)
    After:   %1 = RESHAPE(%q);  %2 = DEQUANTIZE(%1)
    """

    name = "sink-dequantize"
    kinds = ()

    def run(self, graph: Graph) -> int:
        """Walk in order, so that one DEQUANTIZE passes a whole chain."""
        return sum(self._visit(graph, node) for node in graph if moves_values(node))

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Where all values come with one scale."""
        places = shared(node)
        sources = [steps_of(node.optional(i)) for i in places]
        first = sources[0] if sources else None
        if first is None or any(s is None or s.quantization != first.quantization or s.dtype is not first.dtype
                                for s in sources) or not fits_type(node, first.dtype):
            return False
        inputs: list[Tensor | None] = list(node.inputs)
        for place, source in zip(places, sources, strict=True):
            inputs[place] = source
        outputs = [new_steps(t, first.quantization, first.dtype) for t in node.outputs]
        graph.add(node.op, inputs, outputs, name=node.name, origin=self.made(node), before=node)
        for old, new in zip(node.outputs, outputs, strict=True):
            real = graph.add(ops.Dequantize(), [new], name=f"{node.name}_dequantize", origin=self.made(node),
                             before=node).output
            real.origin = old.origin
            graph.replace_uses(old, real)
        _drop(graph, node)
        return True


class HoistQuantize(Pass):
    """Turn values into steps before they are moved.

    Before:  %1 = CONCATENATION(%a, %b);  %2 = QUANTIZE(%1)
    After:   %1 = QUANTIZE(%a);  %2 = QUANTIZE(%b);  %3 = CONCATENATION(%1, %2)
    """

    name = "hoist-quantize"
    kinds = ()

    def run(self, graph: Graph) -> int:
        """Walk backwards, so that one QUANTIZE passes a whole chain."""
        return sum(self._visit(graph, node) for node in reversed(list(graph)) if moves_values(node))

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Where all readers want the same steps."""
        wanted = wanted_steps(node)
        if wanted is None or not fits_type(node, wanted.dtype) or any(
                u.output.quantization != wanted.quantization for t in node.outputs for u in t.users):
            return False
        if any(t is None or not t.dtype.is_float for t in (node.optional(i) for i in shared(node))):
            return False
        inputs = list(node.inputs)
        assert wanted.quantization is not None
        for place in shared(node):
            source = node.input(place)
            steps = new_steps(source, wanted.quantization, wanted.dtype)
            if source.data is not None:
                kind = np.int8 if wanted.dtype is DType.INT8 else np.int16
                steps = quantized_constant(source, wanted.quantization.quantize(source.data, kind),
                                           wanted.quantization, self.name)
            else:
                graph.add(ops.Quantize(), [source], [steps], name=steps.name, origin=self.made(node), before=node)
            inputs[place] = steps
        outputs = [new_steps(t, wanted.quantization, wanted.dtype) for t in node.outputs]
        graph.add(node.op, inputs, outputs, name=node.name, origin=self.made(node), before=node)
        for old, new in zip(node.outputs, outputs, strict=True):
            for user in old.users:
                graph.replace_uses(user.output, new)
                graph.remove(user)
        _drop(graph, node)
        return True


class MeetQuantize(Pass):
    """Change a scale in one go.

    Before:  %1 = DEQUANTIZE(%q);  %2 = QUANTIZE(%1)
    After:   %2 = QUANTIZE(%q), or %q itself where both have one scale
    """

    name = "meet-quantize"
    kinds = (ops.Quantize,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Read the steps instead of their real values."""
        source = steps_of(node.input(0))
        if source is None or not is_steps(node.output):
            return False
        old = node.input(0)
        if source.quantization == node.output.quantization and source.dtype is node.output.dtype \
                and bypass(graph, node, source):
            sweep(graph, old)
            return True
        graph.set_input(node, 0, source)
        sweep(graph, old)
        return True


def _drop(graph: Graph, node: Node) -> None:
    old = node.inputs
    graph.remove(node)
    sweep(graph, *old)
