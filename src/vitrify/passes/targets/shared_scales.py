"""One scale on both sides, for chips whose operators move or compare values as they are stored."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Exactness, Quantization, Tensor
from vitrify.passes.layout.rules_axes import axis_list
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place

_CODE = ("neutron.unequal-scales",)


@fix("joined-scales", ops.Concatenation, mends=_CODE, exactness=Exactness.ROUNDING,
     says="rescales the inputs that have another scale than the output before they are joined",
     wins="a join that the NPU takes only where all scales are equal")
def joined(place: Place) -> Tensor | None:
    """A QUANTIZE before each input that differs; constants are rescaled now."""
    wanted = place.output.quantization
    inputs = [t for t in place.node.inputs if t is not None]
    if wanted is None or any(t.quantization is None or t.dtype is not place.output.dtype for t in inputs) or any(
            t.data is not None and t.quantization != wanted for t in inputs):
        return None
    same = [t if t.quantization == wanted else place.add(ops.Quantize(), [t], place.output) for t in inputs]
    return None if same == inputs else place.add(place.node.op, same, place.output)


@fix("rescaled-results", ops.AveragePool2D, ops.Mean, ops.ReduceMax, ops.ReduceMin,
     mends=_CODE, exactness=Exactness.ROUNDING,
     says="averages by a depthwise convolution with equal weights, whose result has any scale; a largest or smallest "
     "value is found in the scale of the input, and rescaled",
     wins="a mean or a pool that the NPU takes only where both scales are equal")
def results(place: Place) -> Tensor | None:
    """By operator."""
    if not _differs(place):
        return None
    return _as_convolution(place) if isinstance(place.node.op, ops.AveragePool2D | ops.Mean) else _rescaled(place)


@fix("rescaled-moves", ops.Reshape, ops.Transpose, ops.Pad, ops.Slice, ops.StridedSlice,
     mends=_CODE, exactness=Exactness.APPROXIMATE, repairs=True,
     says="moves values in the scale of the input, and rescales what was moved",
     wins="the NPU takes the move, and it means what the file's scales say: kernels copy the stored integers")
def moves(place: Place) -> Tensor | None:
    """The operator with the scale of its input, then QUANTIZE."""
    return _rescaled(place) if _differs(place) else None


def _differs(place: Place) -> bool:
    x, wanted = place.x, place.output.quantization
    return wanted is not None and x.quantization is not None and x.quantization != wanted and \
        not x.quantization.is_per_axis and x.dtype is place.output.dtype


def _rescaled(place: Place) -> Tensor:
    inner = place.add(place.node.op, list(place.node.inputs), place.x)
    return place.add(ops.Quantize(), [inner], place.output)


def _as_convolution(place: Place) -> Tensor | None:
    """A window of equal weights for each channel; of a mean, one that sees all of height and width."""
    op, x = place.node.op, place.x
    if len(x.shape) != 4 or not place.is_static or x.dtype is not DType.INT8:
        return None
    if isinstance(op, ops.AveragePool2D):
        if op.padding is not ops.Padding.VALID:
            return None
        high, wide, down, right = op.filter_height, op.filter_width, op.stride_h, op.stride_w
        activation = op.fused_activation_function
    else:
        if set(axis_list(place.node.optional(1), 4) or ()) != {1, 2}:
            return None
        (high, wide), down, right, activation = x.shape[1:3], 1, 1, ops.Activation.NONE
    channels, count = x.shape[3], high * wide
    assert x.quantization is not None
    scales = np.full(channels, 1 / count, np.float32)
    ones = place.constant(np.ones((1, high, wide, channels), np.int8), Quantization.per_axis(scales, 3), "weights")
    bias = place.constant(np.zeros(channels, np.int32),
                          Quantization.per_axis(scales * x.quantization.scale[0], 0), "bias")
    window = ops.DepthwiseConv2D(padding=ops.Padding.VALID, stride_h=down, stride_w=right, depth_multiplier=1,
                                 fused_activation_function=activation)
    return place.reshape(place.add(window, [x, ones, bias], place.output), place.output.shape)
