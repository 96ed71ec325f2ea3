"""Strides beyond those of the NPU: convolutions on blocks of pixels laid out as channels, pools in two steps."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import Tensor
from vitrify.ir.graph import Array
from vitrify.ops.window import Window
from vitrify.passes.targets.catalogue import fix
from vitrify.passes.targets.place import Place
from vitrify.passes.targets.pools import averages, lowest_around
from vitrify.passes.targets.weights import Weights, repeated, weights_of

_LONGEST = 3


class _Along(NamedTuple):
    """One axis: its extent, the window over it, the results, and the zeros before."""

    extent: int
    window: Window
    results: int
    before: int

    @property
    def blocks(self) -> int:
        """How many blocks of one stride the window touches."""
        return -(-self.window.extent // self.window.stride)

    @property
    def wanted(self) -> int:
        """The elements of whole blocks that all windows together need."""
        return (self.results - 1 + self.blocks) * self.window.stride

    @property
    def after(self) -> int:
        """How many zeros behind make it whole blocks; negative where places are left over."""
        return self.wanted - self.extent - self.before


@fix("long-strides", ops.Conv2D, ops.DepthwiseConv2D, ops.MaxPool2D, ops.AveragePool2D, mends=("ethos-u.stride",),
     cheaper=True,
     says="lays the pixels of a block of one stride side by side as channels, and convolves with stride 1; a depthwise "
     "convolution or a pool steps by a divisor of its stride, and keeps every n-th row and column of that",
     wins="the compiler leaves a stride beyond 3 to the CPU, or unrolls it into one operation for each output "
     "position: 16x16 patches of 224x224 are 196 of them, more than ten times the time of one convolution")
def long_strides(place: Place) -> Tensor | None:
    """By operator."""
    op = place.node.op
    if isinstance(op, ops.Conv2D):
        return _convolution(place)
    if len(place.x.shape) != 4 or not place.is_static or max(op.stride_h, op.stride_w) <= _LONGEST:  # type: ignore[attr-defined]
        return None
    return averages(place) if isinstance(op, ops.AveragePool2D) else _in_steps(place)


def _convolution(place: Place) -> Tensor | None:
    """A stride beyond 3, or patches side by side."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.Conv2D)
    old = weights_of(place, 1, 2)
    if old is None or not place.is_static or len(x.shape) != 4 or old.data.shape[3] != x.shape[3]:
        return None
    high, wide = (_along(x.shape[axis], window, op.padding, place.output.shape[axis])
                  for axis, window in zip((1, 2), op.windows(old.data.shape), strict=True))
    if max(high.window.stride, wide.window.stride) > _LONGEST:
        return _on_blocks(place, old, high, wide)
    patches = all(a.window.taps == a.window.stride > 1 and a.window.dilation == 1 and a.before == a.after == 0
                  for a in (high, wide))
    return _on_rows(place, old, high, wide) if patches else None


def _along(extent: int, window: Window, padding: ops.Padding, results: int) -> _Along:
    return _Along(extent, window, results, window.pads(extent, padding)[0])


def _on_rows(place: Place, old: Weights, high: _Along, wide: _Along) -> Tensor:
    """Patches whose columns are channels; the rows of a patch stay rows, so nothing is moved."""
    x, op = place.x, place.node.op
    assert isinstance(op, ops.Conv2D)
    return _patches(place, x, old, high, wide, op)


def _on_blocks(place: Place, old: Weights, high: _Along, wide: _Along) -> Tensor:
    op = place.node.op
    assert isinstance(op, ops.Conv2D)
    x = _whole_blocks(place, place.x, high, wide)
    if high.blocks == wide.blocks == 1:
        return _patches(place, x, old, high, wide, op)
    count, height, width, channels = x.shape
    tall, broad = high.window.stride, wide.window.stride
    rows = place.reshape(x, (1, count * height // tall, tall, width * channels))
    shape = (count, height // tall, width // broad, broad * channels)
    parts = [place.reshape(place.cut(rows, 2, i, 1), shape) for i in range(place.count(tall))]
    data = _undilated(old, high, wide).reshape(-1, high.blocks, tall, wide.blocks, broad * channels)
    data = data.transpose(0, 1, 3, 2, 4).reshape(len(data), high.blocks, wide.blocks, tall * broad * channels)
    return place.add(_near(op), [place.concat(parts, 3), *repeated(place, old, data, 1)], place.output)


def _patches(place: Place, x: Tensor, old: Weights, high: _Along, wide: _Along, op: ops.Conv2D) -> Tensor:
    """A row of patches is an image of one row; their columns are channels."""
    count, height, width, channels = x.shape
    tall, broad = high.window.stride, wide.window.stride
    data = _undilated(old, high, wide).reshape(-1, tall, 1, broad * channels)
    flat = place.reshape(x, (count * height // tall, tall, width // broad, broad * channels))
    y = place.add(_near(op), [flat, *repeated(place, old, data, 1)], place.output)
    return place.reshape(y, place.output.shape)


def _near(op: ops.Conv2D) -> ops.Conv2D:
    return replace(op, stride_h=1, stride_w=1, dilation_h_factor=1, dilation_w_factor=1, padding=ops.Padding.VALID)


def _whole_blocks(place: Place, x: Tensor, high: _Along, wide: _Along) -> Tensor:
    """Pad, or leave away, until the image is whole blocks."""
    sizes = [x.shape[0], *(min(a.extent, a.wanted - a.before) for a in (high, wide)), x.shape[3]]
    x = place.slice(x, (0, 0, 0, 0), sizes)
    return place.pad(x, [(0, 0), *((a.before, max(a.after, 0)) for a in (high, wide)), (0, 0)])


def _undilated(old: Weights, high: _Along, wide: _Along) -> Array:
    """The kernel with its gaps, filled up to whole blocks by what stands for nothing."""
    outputs, _, _, channels = old.data.shape
    shape = (outputs, *(a.blocks * a.window.stride for a in (high, wide)), channels)
    data = np.full(shape, old.zero, old.data.dtype)
    data[:, :high.window.extent:high.window.dilation, :wide.window.extent:wide.window.dilation] = old.data
    return data


def _in_steps(place: Place) -> Tensor | None:
    """A depthwise convolution or a maximum."""
    op, x = place.node.op, place.x
    assert isinstance(op, ops.DepthwiseConv2D | ops.MaxPool2D)
    windows = op.windows(place.node.input(1).shape) if isinstance(op, ops.DepthwiseConv2D) else op.windows
    axes = [_along(x.shape[i + 1], window, op.padding, place.output.shape[i + 1]) for i, window in enumerate(windows)]
    steps = [max(d for d in range(1, _LONGEST + 1) if a.window.stride % d == 0) for a in axes]
    sizes = [min(a.extent, (a.results - 1) * a.window.stride + a.window.extent - a.before) for a in axes]
    amounts = [(a.before, max(0, (a.results - 1) * a.window.stride + a.window.extent - a.before - a.extent))
               for a in axes]
    x = place.slice(x, (0, 0, 0, 0), (x.shape[0], *sizes, x.shape[3]))
    x = place.pad(x, [(0, 0), *amounts, (0, 0)]) if isinstance(op, ops.DepthwiseConv2D) \
        else lowest_around(place, x, amounts)
    near = replace(op, stride_h=steps[0], stride_w=steps[1], padding=ops.Padding.VALID)
    y = place.add(near, [x, *place.node.inputs[1:]], place.output)
    skips = [a.window.stride // step for a, step in zip(axes, steps, strict=True)]
    return place.steps(y, (0, 0, 0, 0), (y.shape[0], *((a.results - 1) * skip + 1 for a, skip in
                                                       zip(axes, skips, strict=True)), y.shape[3]), (1, *skips, 1))
