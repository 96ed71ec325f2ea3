"""Unsigned 8-bit steps at the graph's ends as signed ones inside."""

from __future__ import annotations

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Quantization, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.quantized.steps import is_bridge

SHIFT = 128


class SignedSteps(Pass):
    """Compute with signed steps where the file gives or takes unsigned ones; the shift is exact.

    Before:  %1 = DEQUANTIZE(uint8 %q);  ...;  uint8 %9 = QUANTIZE(%8)
    After:   int8 %1 = QUANTIZE(%q);  %2 = DEQUANTIZE(%1);  ...;  int8 %9 = QUANTIZE(%8);  uint8 %10 = QUANTIZE(%9)
    """

    name = "signed-steps"
    kinds = (ops.Quantize, ops.Dequantize)

    def run(self, graph: Graph) -> int:
        """Only where something is computed between them."""
        if all(is_bridge(node) for node in graph):
            return 0
        return super().run(graph)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Put a change of type beside a node that reads or makes unsigned steps of real values."""
        source, result = node.input(0), node.output
        if isinstance(node.op, ops.Dequantize) and _is_unsigned(source):
            signed = _signed(source)
            graph.add(ops.Quantize(), [source], [signed], name=signed.name, origin=self.made(node), before=node)
            graph.set_input(node, 0, signed)
            return True
        if isinstance(node.op, ops.Quantize) and source.dtype is DType.FLOAT32 and _is_unsigned(result):
            signed = _signed(result)
            graph.add(ops.Quantize(), [source], [signed], name=signed.name, origin=self.made(node), before=node)
            graph.set_input(node, 0, signed)
            return True
        return False


def _is_unsigned(tensor: Tensor) -> bool:
    return (tensor.dtype is DType.UINT8 and tensor.data is None and tensor.quantization is not None
            and tensor.quantization.scale.size == 1)


def _signed(tensor: Tensor) -> Tensor:
    assert tensor.quantization is not None
    shifted = Quantization(tensor.quantization.scale, tensor.quantization.zero_point - SHIFT)
    return Tensor(f"{tensor.name}_int8", DType.INT8, tensor.shape, quantization=shifted)
