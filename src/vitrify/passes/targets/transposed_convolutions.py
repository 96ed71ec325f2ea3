"""TRANSPOSE_CONV of strides or shapes that the NPU lacks, as a convolution to more channels that become pixels."""

from __future__ import annotations

import numpy as np

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ir.graph import Array
from vitrify.ops.window import Window
from vitrify.passes.targets.block_moves import rows_from_channels
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place
from vitrify.passes.targets.weights import Weights, repeated, weights_of


@fix("transposed-shape", ops.TransposeConv, mends=("ethos-u.transpose-conv-shape",),
     says="does as 'transposed-strides', and takes the wanted part",
     wins="an up-sampling that would be left to the CPU")
@fix("transposed-strides", ops.TransposeConv, mends=("ethos-u.transpose-conv-stride",),
     says="computes the pixels between two input pixels as channels of one convolution, and lays them out",
     wins="an up-sampling that would be left to the CPU; sums the same products")
def transposed(place: Place) -> Tensor | None:
    """Output pixel s*j + r, counted from the padding, is channel group r of pixel j of a plain convolution."""
    op, old, x = place.node.op, weights_of(place, 1, 3), place.node.optional(2)
    assert isinstance(op, ops.TransposeConv)
    if old is None or x is None or len(x.shape) != 4 or not place.is_static or old.data.shape[3] != x.shape[3]:
        return None
    windows, shape = op.windows(old.data.shape), place.output.shape
    before = [window.pads(shape[i + 1], op.padding)[0] for i, window in enumerate(windows)]
    places = [-(-(shape[i + 1] + before[i]) // window.stride) for i, window in enumerate(windows)]
    taps = [-(-window.taps // window.stride) for window in windows]
    sizes = [min(x.shape[i + 1], places[i]) for i in range(2)]
    x = place.slice(x, (0, 0, 0, 0), (x.shape[0], *sizes, x.shape[3]))
    x = place.pad(x, [(0, 0), *((taps[i] - 1, places[i] - sizes[i]) for i in range(2)), (0, 0)])
    kernel = _kernel(old, windows, taps)
    steps = windows[0].stride * windows[1].stride
    plain = ops.Conv2D(stride_h=1, stride_w=1, padding=ops.Padding.VALID,
                       fused_activation_function=op.fused_activation_function)
    y = place.add(plain, [x, *repeated(place, old, kernel, steps)], place.output)
    y = rows_from_channels(place, y, windows[0].stride, windows[1].stride)
    return place.slice(y, (0, *before, 0), shape)


def _kernel(old: Weights, windows: tuple[Window, Window], taps: list[int]) -> Array:
    """The taps of each pixel between two input pixels, mirrored, as [rows, columns, outputs] of filters."""
    outputs, high, wide, channels = old.data.shape
    tall, broad = windows[0].stride, windows[1].stride
    full = np.full((outputs, taps[0] * tall, taps[1] * broad, channels), old.zero, old.data.dtype)
    full[:, :high, :wide] = old.data
    split = full.reshape(outputs, taps[0], tall, taps[1], broad, channels)[:, ::-1, :, ::-1]
    return split.transpose(2, 4, 0, 1, 3, 5).reshape(tall * broad * outputs, taps[0], taps[1], channels)
