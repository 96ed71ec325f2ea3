"""A quantized graph as the float graph that it stands for, so that it can be quantized again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import is_dense

_STEPS = (DType.INT8, DType.UINT8, DType.INT16)
_ACTIVATION = "fused_activation_function"


class RealValues(Pass):
    """Let a graph compute with the real values that its integers stand for.

    Weights keep their values to the bit. An 8-bit value cannot leave its range, so a range that ends at 0 was a ReLU
    even where the file names none.

    Before:  %1 = QUANTIZE(%x);  %2: int8 = CONV_2D(%1, w: int8, b: int32);  %y = DEQUANTIZE(%2)
    After:   %y = CONV_2D(%x, w * scale, b * scale)
    """

    name = "real-values"
    exactness = Exactness.APPROXIMATE

    def run(self, graph: Graph) -> int:
        """Returns how many tensors became float."""
        biases = _bias_scales(graph)
        cut = [node for node in graph if _cut_at_zero(node)]
        changed = [tensor for tensor in graph.tensors() if self._widen(tensor, biases)]
        for node in cut:
            node.op = replace(node.op, **{_ACTIVATION: ops.Activation.RELU})
        for node in graph:
            node.extras.pop("intermediates", None)         # the ranges of an integer LSTM's gates
        for node in graph.nodes_of(ops.Quantize, ops.Dequantize):
            if node.input(0).dtype is DType.FLOAT32 and node.output.dtype is DType.FLOAT32:
                _bypass(graph, node)
        return len(changed)

    def _widen(self, tensor: Tensor, biases: dict[int, Any]) -> bool:
        quantization = tensor.quantization
        if tensor.dtype is DType.FLOAT32:
            tensor.quantization = None
            return False
        if tensor.dtype in _STEPS and quantization is not None and quantization.scale.size:
            if tensor.data is not None:
                if not is_dense(tensor):
                    return False
                tensor.data = quantization.dequantize(tensor.data)
        elif tensor.dtype in (DType.INT32, DType.INT64) and is_dense(tensor) and tensor.data is not None and (
                id(tensor) in biases or (quantization is not None and quantization.scale.size)):
            scale = biases.get(id(tensor), None if quantization is None else quantization.scale)
            assert scale is not None
            tensor.data = (tensor.data.astype(np.float64) * scale).astype(np.float32)
        else:
            return False
        tensor.dtype, tensor.quantization = DType.FLOAT32, None
        tensor.origin = tensor.origin.by(self.name)
        self.touch(str(tensor.origin) if tensor.origin.sources else "")
        return True


def _bias_scales(graph: Graph) -> dict[int, Any]:
    """What one step of each bias is worth: a step of the input times one of the weights, whatever its scale says."""
    found: dict[int, Any] = {}
    for node in graph:
        rule = node.op.int8
        if rule is None or rule.bias is None or rule.weight is None:
            continue
        bias, weight = node.optional(rule.bias), node.optional(rule.weight)
        places = [i for i in range(len(node.inputs)) if i not in (rule.bias, rule.weight, *rule.keep)]
        x = node.optional(places[0]) if places else None
        if bias is None or weight is None or x is None or weight.quantization is None or x.quantization is None:
            continue
        found[id(bias)] = weight.quantization.scale.astype(np.float64) * float(x.quantization.scale[0])
    return found


def _cut_at_zero(node: Node) -> bool:
    """True for an operator without an activation whose 8-bit output begins at 0, as a converter leaves of a ReLU."""
    made = node.outputs[0] if len(node.outputs) == 1 else None
    if made is None or made.quantization is None or made.dtype not in (DType.INT8, DType.UINT8):
        return False
    least = -128 if made.dtype is DType.INT8 else 0
    return (made.quantization.zero_point.tolist() == [least]
            and getattr(node.op, _ACTIVATION, None) is ops.Activation.NONE
            and not isinstance(node.op, (ops.Concatenation, ops.AveragePool2D, ops.MaxPool2D)))


def _bypass(graph: Graph, node: Node) -> None:
    """Take out a node that only changed how a value is stored."""
    source, made = node.input(0), node.output
    if made.is_output and (source.producer is None or source.is_output):
        return                        # an input given out again: something has to stand between
    graph.replace_uses(made, source)
    graph.remove(node)
