"""Small rewrites that a float graph needs before it can be quantized."""

from __future__ import annotations

import numpy as np

from vitrify.ir import DType, Graph, Tensor
from vitrify.ops import Dequantize, Quantize, Relu0To1
from vitrify.quant.planning import Plan
from vitrify.quant.scales import activation_scale
from vitrify.quant.statistics import Range


def fold_half_weights(graph: Graph) -> int:
    """Turn DEQUANTIZE of float16 constants into float32 constants; returns how many.

    Before:  %w = DEQUANTIZE(w: float16)
    After:   w: float32
    Exact.
    """
    folded = 0
    for node in graph.nodes_of(Dequantize):
        source = node.input(0)
        if source.data is None or source.dtype is not DType.FLOAT16 or node.output.is_output:
            continue
        constant = Tensor(source.name, DType.FLOAT32, source.shape, data=source.data.astype(np.float32),
                          origin=source.origin)
        graph.replace_uses(node.output, constant)
        graph.remove(node)
        folded += 1
    return folded


def saturating_clips(graph: Graph, made: Plan) -> int:
    """Turn RELU_0_TO_1, which has no int8 kernel, into a requantization that saturates at 0 and 1; returns how many.

    Before:  %y = RELU_0_TO_1(%x)
    After:   %y = QUANTIZE(%x)      %y: scale 1/255, zero point -128, which is [0, 1]
    As exact as any int8 operator.
    """
    clips = graph.nodes_of(Relu0To1)
    for node in clips:
        graph.replace_node(node, Quantize(), [node.input(0)])
        made.activations[node.output] = activation_scale(Range(0.0, 1.0))
    return len(clips)
