"""Resizing of any axes.

Where one of TFLite's schemes for height and width gives exactly ONNX's answer, it is taken: both say for each output
place where it lies in the input, and the two must agree on both axes. All other forms are exact as well: nearest picks
by constant indices, linear and cubic are one constant matrix for each axis.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.indexing import GATHERED
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.interpolation import coordinates, extents, nearest, places, tflite_places
from vitrify.importers.onnx.parts.places import Formula, bounded, computable, weighed
from vitrify.importers.onnx.parts.resampling import Axis, mode_of, outside_mask, resampled_axes
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

_FLAGS = ((False, True), (False, False), (True, False))  # (align_corners, half_pixel_centers)


@lowering("Resize", "Upsample")
def resize(ctx: Context, node: SourceNode) -> None:
    """One of TFLite's two resizing operators where it is exact, else axis by axis."""
    mode = mode_of(node)
    x = ctx.tensor(node, 0) if mode == "nearest" else float_input(ctx, node, 0)
    known = [ctx.known(node, i, "an extent") if i and ctx.present(node, i) else None for i in range(len(node.inputs))]
    sizes, scales = extents(node, x.shape, known)
    bounded(node, sizes, "its output")
    y = _native(ctx, node, x, mode, sizes, scales)
    if y is None:
        axes = resampled_axes(node, x.shape, known)
        spatial = 3 <= len(x.shape) <= 5 and all(a.axis >= 2 for a in axes)
        y = _by_axis(ctx, x, axes, spatial)
        y = _extrapolated(ctx, node, y, axes)
    ctx.bind(node, y)


def _native(
    ctx: Context, node: SourceNode, x: Tensor, mode: str, sizes: list[int], scales: list[float]
) -> Tensor | None:
    """RESIZE_NEAREST_NEIGHBOR or RESIZE_BILINEAR; None where neither is exact."""
    odd = node.integer("antialias") or node.integer("exclude_outside") or coordinates(node) == "tf_crop_and_resize"
    if odd or mode == "cubic" or len(x.shape) not in (3, 4) or not x.dtype.is_float:
        return None
    if sizes[:2] != list(x.shape[:2]) or sizes == list(x.shape):
        return None
    axes = range(2, len(sizes))
    wanted = [_wanted(node, mode, x.shape[i], sizes[i], scales[i]) for i in axes]
    size = np.array([1, sizes[2]] if len(sizes) == 3 else sizes[2:], np.int32)
    for align, half in _FLAGS:
        own = [tflite_places(mode, x.shape[i], sizes[i], align, half) for i in axes]
        if all(_agree(a, b, x.shape[i]) for a, b, i in zip(own, wanted, axes, strict=True)):
            kind = ops.ResizeNearestNeighbor if mode == "nearest" else ops.ResizeBilinear
            y = ctx.emit(kind(align_corners=align, half_pixel_centers=half), [ctx.as_picture(x), size])
            return ctx.from_picture(y, len(x.shape))
    return None


def _wanted(node: SourceNode, mode: str, extent: int, size: int, scale: float) -> Array:
    at = places(node, extent, size, scale)
    return nearest(node, at, extent, scale) if mode == "nearest" else np.clip(at, 0, extent - 1)


def _agree(own: Array, wanted: Array, extent: int) -> bool:
    """Equal indices; coordinates equal up to the rounding of float32 at the far end of the axis."""
    return bool(np.abs(own - wanted).max() <= (0 if own.dtype.kind == "i" else 1e-6 * (extent + 1)))


def _by_axis(ctx: Context, x: Tensor, axes: list[Axis], spatial: bool) -> Tensor:
    """One operator for each axis, the one that shrinks most first; on channel-last data where only space changes."""
    y = ctx.channel_last(x) if spatial else x
    for axis in sorted(axes, key=lambda a: a.size / x.shape[a.axis]):
        place = axis.axis - 1 if spatial else axis.axis
        if axis.index is not None:
            picked = ctx.emit(ops.Gather(axis=place), [computable(ctx, y, GATHERED), axis.index.astype(np.int32)])
            y = Formula(ctx).cast(picked, y.dtype)
        elif axis.weights is not None:
            y = weighed(ctx, y, place, axis.weights.astype(np.float32))
    return ctx.channel_first(y) if spatial else y


def _extrapolated(ctx: Context, node: SourceNode, y: Tensor, axes: list[Axis]) -> Tensor:
    """The places outside of the input with the value that the node gives for them."""
    outside, value = outside_mask(axes, len(y.shape)), node.number("extrapolation_value")
    if outside is None:
        return y
    shape = [d if o > 1 else 1 for d, o in zip(y.shape, outside.shape, strict=True)]
    mask, formula = np.broadcast_to(outside, shape), Formula(ctx)
    if any(a.index is not None for a in axes):
        return formula.choose(np.ascontiguousarray(mask), np.array(value, y.dtype.numpy), y)
    return formula.add(y, mask.astype(np.float32) * np.float32(value)) if value else y
