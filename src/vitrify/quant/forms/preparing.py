"""Small rewrites that a float graph needs before it can be quantized."""

from __future__ import annotations

import numpy as np

from vitrify.ir import DType, Graph, Tensor
from vitrify.ops import Dequantize


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
