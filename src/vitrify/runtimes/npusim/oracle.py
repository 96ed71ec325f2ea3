"""What a compiled file is held against: the model it was compiled from, with kernels that round as the NPU does.

LiteRT's reference kernel of FULLY_CONNECTED rounds once since release 1.4; the command stream, and the kernel of 2.14
before it, round twice, as a convolution does in both. So a dense layer is run as a 1x1 convolution. LiteRT's reference
kernel of int8 SUM gives wrong values (2.3): a sum is run as a mean whose scale is smaller by the number of elements.
"""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.core.words import counted
from vitrify.ir import DType, Graph, Model, Node, Quantization, Tensor


def oracle(model: Model) -> list[str]:
    """Rewrite ``model`` so that LiteRT's reference kernels give what the NPU must; return what was changed."""
    dense = sum(_as_convolution(graph, node) for graph in model.graphs for node in graph.nodes_of(ops.FullyConnected))
    sums = sum(_as_mean(graph, node) for graph in model.graphs for node in graph.nodes_of(ops.Sum))
    told = [f"{counted(dense, 'dense layer')} as a 1x1 convolution, which rounds as the NPU does"] if dense else []
    return told + ([f"{counted(sums, 'SUM')} as a MEAN of a smaller scale, as LiteRT's own kernel of int8 SUM is wrong"]
                   if sums else [])


def _as_mean(graph: Graph, node: Node) -> bool:
    op, x, out = node.op, node.input(0), node.output
    assert isinstance(op, ops.Sum)
    axes = node.input(1).data
    if axes is None or x.dtype is not DType.INT8 or out.quantization is None or not out.size:
        return False
    elements = x.size // out.size
    finer = Quantization.per_tensor(float(out.quantization.scale[0]) / elements, int(out.quantization.zero_point[0]))
    mean = Tensor(f"{out.name}/mean", out.dtype, out.shape, quantization=finer)
    graph.add(ops.Mean(keep_dims=op.keep_dims), [x, node.input(1)], [mean], before=node)
    graph.replace_node(node, ops.Reshape(new_shape=out.shape), [mean, _shape(out)])
    return True


def _as_convolution(graph: Graph, node: Node) -> bool:
    op, x, weights = node.op, node.input(0), node.input(1)
    assert isinstance(op, ops.FullyConnected)
    data, bias = weights.data, node.optional(2)
    if data is None or data.dtype != np.int8 or weights.quantization is None or op.weights_format \
            or x.dtype not in (DType.INT8, DType.INT16) or x.quantization is None:
        return False
    outputs, inputs = data.shape
    rows = node.output.size // outputs
    if rows * inputs != x.size:
        return False
    x_scales, scales = _as_multiplied(x.quantization, weights.quantization)
    filters = Tensor(f"{weights.name}/window", DType.INT8, (outputs, 1, 1, inputs),
                     data=data.reshape(outputs, 1, 1, inputs), quantization=scales)
    if bias is None:
        bias = _no_bias(x, scales, outputs)
    before = Tensor(f"{node.output.name}/rows", x.dtype, (1, 1, rows, inputs), quantization=x_scales)
    after = Tensor(f"{node.output.name}/dense", node.output.dtype, (1, 1, rows, outputs),
                   quantization=node.output.quantization)
    convolution = ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID,
                             fused_activation_function=op.fused_activation_function)
    graph.add(ops.Reshape(new_shape=before.shape), [x, _shape(before)], [before], before=node)
    graph.add(convolution, [before, filters, bias], [after], before=node)
    graph.replace_node(node, ops.Reshape(new_shape=node.output.shape), [after, _shape(node.output)])
    return True


def _as_multiplied(x: Quantization, weights: Quantization) -> tuple[Quantization, Quantization]:
    """One scale of weights is multiplied by the input's in 32 bits, by kernel and compiler alike; several in 64."""
    if len(weights.scale) > 1:
        return x, weights
    product = float(np.float32(x.scale[0]) * np.float32(weights.scale[0]))
    return Quantization.per_tensor(product, int(x.zero_point[0])), Quantization.per_tensor(1.0)


def _shape(tensor: Tensor) -> Tensor:
    data = np.array(tensor.shape, np.int32)
    return Tensor(f"{tensor.name}/shape", DType.INT32, data.shape, data=data)


def _no_bias(x: Tensor, scales: Quantization, outputs: int) -> Tensor:
    assert x.quantization is not None
    wide = x.dtype is DType.INT16
    product = (scales.scale * x.quantization.scale[0]).astype(np.float32)
    found = Quantization.per_axis(product, 0) if len(product) > 1 else Quantization.per_tensor(float(product[0]))
    return Tensor(f"{x.name}/no_bias", DType.INT64 if wide else DType.INT32, (outputs,),
                  data=np.zeros(outputs, np.int64 if wide else np.int32), quantization=found)
