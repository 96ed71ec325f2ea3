"""Explicit paddings that the window operator behind can do itself."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Tensor
from vitrify.passes.base import Pass
from vitrify.passes.graphs import only_user, producer, swap

WINDOWS = (ops.Conv2D, ops.DepthwiseConv2D, ops.MaxPool2D)


def same_padding(size: int, window: int, stride: int, dilation: int = 1) -> tuple[int, int]:
    """What SAME pads before and after one axis.

    Source: TFLite kernels/padding.h (ComputePaddingWithOffset): the odd element goes behind.
    """
    needed = max(0, (-(-size // stride) - 1) * stride + (window - 1) * dilation + 1 - size)
    return needed // 2, needed - needed // 2


def pad_value(node: Node) -> float | None:
    """What a PAD or PADV2 pads with; None when it is not a known float."""
    if node.output.dtype is not DType.FLOAT32:
        return None
    if isinstance(node.op, ops.Pad):
        return 0.0
    value = node.input(2).data
    return None if value is None else float(value.reshape(-1)[0])


def is_lowest(value: float | None) -> bool:
    """True for a padding that never wins a maximum."""
    return value is not None and value <= float(np.finfo(np.float32).min)


def is_positive(tensor: Tensor) -> bool:
    """True when no value can be below 0."""
    maker = tensor.producer
    if maker is None:
        return False
    if isinstance(maker.op, ops.Relu | ops.Relu6 | ops.Relu0To1 | ops.Logistic | ops.Softmax):
        return True
    fused = getattr(maker.op, "fused_activation_function", None)
    return fused in (ops.Activation.RELU, ops.Activation.RELU6)


class FusePad(Pass):
    """Let a window operator pad, where that is exactly what SAME does.

    Before:  %1 = PAD(%x, 1 on each side);  %2 = CONV_2D[VALID, 3x3](%1)
    After:   %2 = CONV_2D[SAME, 3x3](%x)
    A MAX_POOL_2D leaves padded elements out, so it fuses a padding of the lowest float, or of 0 where no value is
    below 0.
    """

    name = "fuse-pad"
    kinds = WINDOWS

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Fuse where the padded value is used only here."""
        op: Any = node.op
        pad = producer(node.input(0), ops.Pad, ops.PadV2)
        if pad is None or op.padding is not ops.Padding.VALID or only_user(pad.output) is not node:
            return False
        if not _is_neutral(node, pad) or not _is_same(node, pad):
            return False
        inputs = [pad.input(0), *node.inputs[1:]]
        swap(graph, node, replace(op, padding=ops.Padding.SAME), inputs, self.made(pad, node))
        return True


def _is_neutral(node: Node, pad: Node) -> bool:
    """True when padded elements count for the operator as those that SAME pads."""
    value = pad_value(pad)
    if isinstance(node.op, ops.MaxPool2D):
        return is_lowest(value) or (value == 0 and is_positive(pad.input(0)))
    return value == 0 or (isinstance(pad.op, ops.Pad) and pad.output.quantization == pad.input(0).quantization)


def _is_same(node: Node, pad: Node) -> bool:
    """True when the amounts are those of SAME."""
    amounts, op = pad.input(1).data, node.op
    if amounts is None or amounts.shape != (4, 2):
        return False
    if isinstance(op, ops.MaxPool2D):
        window, dilation = (op.filter_height, op.filter_width), (1, 1)
    else:
        assert isinstance(op, ops.Conv2D | ops.DepthwiseConv2D)
        _, height, width, _ = node.input(1).shape
        window, dilation = (height, width), (op.dilation_h_factor, op.dilation_w_factor)
    _, rows, columns, _ = pad.input(0).shape
    wanted = [(0, 0), same_padding(rows, window[0], op.stride_h, dilation[0]),
              same_padding(columns, window[1], op.stride_w, dilation[1]), (0, 0)]
    return [tuple(map(int, pair)) for pair in amounts] == wanted


class ZeroPadBeforeMaxPool(Pass):
    """Pad with 0 instead of the lowest float before a MAX_POOL_2D of values that are not below 0.

    Before:  %1 = RELU(%x);  %2 = PADV2(%1, -3.4e38);  %3 = MAX_POOL_2D(%2)
    After:   %1 = RELU(%x);  %2 = PAD(%1);  %3 = MAX_POOL_2D(%2)
    An int8 scale that must hold the lowest float holds nothing else. A window wholly in the padding cannot occur: it
    would lie outside of the input.
    """

    name = "zero-pad-before-max-pool"
    kinds = (ops.PadV2,)

    def rewrite(self, graph: Graph, node: Node) -> bool:
        """Replace the operator when only max pools read it."""
        if not is_lowest(pad_value(node)) or not is_positive(node.input(0)) or node.output.is_output:
            return False
        if not all(isinstance(user.op, ops.MaxPool2D) for user in node.output.users):
            return False
        swap(graph, node, ops.Pad(), [node.input(0), node.input(1)], self.made(node))
        return True


