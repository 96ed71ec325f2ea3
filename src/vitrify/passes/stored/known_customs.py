"""Custom operators of public models that TFLite has operators of its own for."""

from __future__ import annotations

import struct

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import swap

TRANSPOSED = "Convolution2DTransposeBias"
_PADDINGS = {1: ops.Padding.SAME, 2: ops.Padding.VALID}
_OPTIONS = struct.Struct("<3i")


class KnownCustoms(Pass):
    """Put TRANSPOSE_CONV in the place of MediaPipe's transposed convolution with a bias.

    Before:  %1 = Convolution2DTransposeBias(%x, w, b)
    After:   %1 = TRANSPOSE_CONV(shape, w, %x, b)
    Its options are three int32: padding (1: same, 2: valid), stride over width, stride over height.
    Source: MediaPipe, util/tflite/operations/transpose_conv_bias.
    """

    name = "known-customs"
    kinds = (ops.Custom,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace one operator whose options are as they should be."""
        op = node.op
        if not isinstance(op, ops.Custom) or op.custom_code != TRANSPOSED or len(op.custom_options) != _OPTIONS.size:
            return False
        padding, stride_w, stride_h = _OPTIONS.unpack(op.custom_options)
        known = padding in _PADDINGS and min(stride_w, stride_h) >= 1
        if not known or len(node.inputs) != 3 or None in node.inputs or len(node.output.shape) != 4:
            return False
        extents = np.array(node.output.shape, np.int32)
        shape = Tensor(f"{node.name}/shape", DType.INT32, extents.shape, data=extents)
        new = ops.TransposeConv(padding=_PADDINGS[padding], stride_h=stride_h, stride_w=stride_w)
        swap(graph, node, new, [shape, node.input(1), node.input(0), node.input(2)], self.made(node))
        return True
