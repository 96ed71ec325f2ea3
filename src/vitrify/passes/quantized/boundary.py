"""The graph's own inputs and outputs as steps, where the file quantizes them at once."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Graph
from vitrify.passes.base import Pass
from vitrify.passes.quantized.steps import is_bridge, is_steps, steps_of


class StepsAtBoundary(Pass):
    """Take and give steps: what runs the model scales them, and no operator has to.

    Before:  %1 = QUANTIZE(%input);  ...;  %output = DEQUANTIZE(%9)
    After:   %input and %output are int8
    """

    name = "steps-at-boundary"
    kinds = (ops.Quantize, ops.Dequantize)

    def run(self, graph: Graph) -> int:
        """Only where something computes with steps."""
        if not any(not is_bridge(n) and any(is_steps(t) for t in n.outputs) for n in graph):
            return 0
        return self._inputs(graph) + self._outputs(graph)

    def _inputs(self, graph: Graph) -> int:
        changed = 0
        for tensor in graph.inputs:
            users = tensor.users
            if tensor.dtype is not DType.FLOAT32 or tensor.is_output or not users or not all(
                    isinstance(u.op, ops.Quantize) and is_steps(u.output) and not u.output.is_output
                    and u.output.quantization == users[0].output.quantization
                    and u.output.dtype is users[0].output.dtype for u in users):
                continue
            tensor.dtype, tensor.quantization = users[0].output.dtype, users[0].output.quantization
            for user in users:
                graph.replace_uses(user.output, tensor)
                graph.remove(user)
            changed += 1
        return changed

    def _outputs(self, graph: Graph) -> int:
        outputs, changed = list(graph.outputs), 0
        for place, tensor in enumerate(outputs):
            source, node = steps_of(tensor), tensor.producer
            if source is None or node is None or source.producer is None or source.is_output or source in outputs \
                    or tensor.uses:
                continue
            source.name, tensor.name, source.origin = tensor.name, source.name, tensor.origin
            outputs[place] = source
            graph.set_outputs(outputs)
            graph.remove(node)
            changed += 1
        return changed
