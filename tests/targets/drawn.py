"""Draws small graphs of one operator for the rules of chips with closed compilers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from vitrify import ops
from vitrify.ir import DType, Graph, Node, Operator
from vitrify.targets import Target
from vitrify.targets.ethos_u.probes.sketch import Sketch
from vitrify.targets.rules import reasons

Draw = Callable[[Sketch], Node]


class Row(NamedTuple):
    """A node, and the codes without family that it breaks."""

    draw: Draw
    codes: tuple[str, ...] = ()


def graph(draw: Draw) -> Graph:
    made = Graph("probe")
    draw(Sketch(made, "probe"))
    return made


def broken(draw: Draw, target: Target) -> list[str]:
    """The codes that the node under test breaks, without family, sorted."""
    made = graph(draw)
    found = reasons(made, target).get(list(made)[-1], ())
    assert all(all((one.headline, one.why, one.source, one.versions)) for one in found)
    return sorted({one.code.partition(".")[2] for one in found})


def value(op: Operator, *shapes: Sequence[int], **given: object) -> Draw:
    """An operator on values of these shapes."""
    dtype = given.pop("dtype", DType.INT8)
    return lambda s: s.add(op, [s.value(shape, dtype) for shape in shapes], **given)  # type: ignore[arg-type]


def with_constant(op: Operator, shape: Sequence[int], *constants: object, scale: float | None = None,
                  **given: object) -> Draw:
    """An operator on one value and constant parameters."""
    return lambda s: s.add(op, [s.value(shape), *(s.constant(c, scale=scale) for c in constants)],
                           **given)  # type: ignore[arg-type]


def conv(*, size: int = 8, channels: int = 16, outputs: int = 16, kernel: tuple[int, int] = (1, 1), stride: int = 1,
         dilation: int = 1, batch: int = 1, groups: int = 1, weights: DType = DType.INT8, bias: DType = DType.INT32,
         wide: int | None = None, padding: ops.Padding = ops.Padding.VALID) -> Draw:
    def draw(s: Sketch) -> Node:
        op = ops.Conv2D(padding=padding, stride_h=stride, stride_w=stride, dilation_h_factor=dilation,
                        dilation_w_factor=dilation)
        x = s.value((batch, size, wide or size, channels))
        return s.add(op, [x, s.weights((outputs, *kernel, channels // groups), dtype=weights), s.bias(outputs, bias)])
    return draw


def depthwise(kernel: tuple[int, int] = (3, 3)) -> Draw:
    return lambda s: s.add(ops.DepthwiseConv2D(padding=ops.Padding.SAME, stride_h=1, stride_w=1, depth_multiplier=1),
                           [s.value((1, 8, 8, 16)), s.weights((1, *kernel, 16)), s.bias(16)])


def transposed(kernel: tuple[int, int], stride: tuple[int, int], channels: int = 16, outputs: int = 8,
               size: tuple[int, int] = (4, 4)) -> Draw:
    def draw(s: Sketch) -> Node:
        shape = [1, size[0] * stride[0], size[1] * stride[1], outputs]
        op = ops.TransposeConv(padding=ops.Padding.SAME, stride_h=stride[0], stride_w=stride[1])
        return s.add(op, [s.constant(shape), s.weights((outputs, *kernel, channels)), s.value((1, *size, channels))])
    return draw


def pool(kind: type[ops.MaxPool2D | ops.AveragePool2D], window: int, stride: int, *, size: int = 8, channels: int = 16,
         same: bool = False, batch: int = 1) -> Draw:
    padding = ops.Padding.SAME if same else ops.Padding.VALID
    op = kind(padding=padding, stride_h=stride, stride_w=1, filter_height=window, filter_width=1)
    return value(op, (batch, size, 4, channels))


def resize(kind: type[ops.ResizeBilinear | ops.ResizeNearestNeighbor], before: tuple[int, int], after: tuple[int, int],
           *, corners: bool = False, centres: bool = False, channels: int = 16) -> Draw:
    return with_constant(kind(align_corners=corners, half_pixel_centers=centres), (1, *before, channels), list(after))


def permuted(shape: Sequence[int], order: Sequence[int]) -> Draw:
    return with_constant(ops.Transpose(), shape, list(order))


def sliced(shape: Sequence[int], sizes: Sequence[int]) -> Draw:
    return with_constant(ops.Slice(), shape, [0] * len(shape), list(sizes))


def strided(shape: Sequence[int], ends: Sequence[int], steps: Sequence[int], ellipsis: int = 0, new: int = 0) -> Draw:
    op = ops.StridedSlice(begin_mask=0, end_mask=0, ellipsis_mask=ellipsis, new_axis_mask=new, shrink_axis_mask=0)
    return with_constant(op, shape, [0] * len(ends), list(ends), list(steps))


def padded(pads: Sequence[tuple[int, int]], op: Operator | None = None) -> Draw:
    return with_constant(op or ops.Pad(), (1, 8, 8, 16), np.array(pads))


def mean(shape: Sequence[int], axes: Sequence[int], keep: bool = True) -> Draw:
    return with_constant(ops.Mean(keep_dims=keep), shape, list(axes))


def matmul(left: Sequence[int], right: Sequence[int], *, zero: int = 0, x: bool = False, y: bool = False) -> Draw:
    return lambda s: s.add(ops.BatchMatMul(adj_x=x, adj_y=y), [s.value(left, zero=zero), s.value(right)])
