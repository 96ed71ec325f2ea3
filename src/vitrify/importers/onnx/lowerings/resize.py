"""Resizing of height and width, where one of TFLite's schemes gives exactly ONNX's answer.

Both say for each output place where it lies in the input. A scheme is taken when the two agree on both axes; otherwise
the form is refused by name.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.interpolation import coordinates, extents, nearest, places, rounding, tflite_places
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode

_FLAGS = ((False, True), (False, False), (True, False))  # (align_corners, half_pixel_centers)


@lowering("Resize", "Upsample")
def resize(ctx: Context, node: SourceNode) -> None:
    """Nearest and linear, for the coordinate modes that TFLite has."""
    x = float_input(ctx, node, 0, (3, 4))
    known = [ctx.known(node, i, "an extent") if i and ctx.present(node, i) else None for i in range(len(node.inputs))]
    sizes, scales = extents(node, x.shape, known)
    if sizes[:2] != list(x.shape[:2]):
        raise node.unsupported(f"it resizes batch or channels: {list(x.shape)} to {sizes}")
    if sizes == list(x.shape):
        return ctx.bind(node, x)
    mode = _mode(ctx, node)
    axes = range(2, len(sizes))
    wanted = [_wanted(node, mode, x.shape[i], sizes[i], scales[i]) for i in axes]
    size = np.array([1, sizes[2]] if len(sizes) == 3 else sizes[2:], np.int32)
    for align, half in _FLAGS:
        own = [tflite_places(mode, x.shape[i], sizes[i], align, half) for i in axes]
        if all(_agree(a, b, x.shape[i]) for a, b, i in zip(own, wanted, axes, strict=True)):
            kind = ops.ResizeNearestNeighbor if mode == "nearest" else ops.ResizeBilinear
            y = ctx.emit(kind(align_corners=align, half_pixel_centers=half), [ctx.as_picture(x), size])
            return ctx.bind(node, ctx.from_picture(y, len(x.shape)))
    form = f"mode {mode}, coordinates {coordinates(node)}" + (f", {rounding(node)}" if mode == "nearest" else "")
    raise node.unsupported(
        f"{form} from {list(x.shape[2:])} to {sizes[2:]} has no equal in TFLite",
        "use half_pixel, asymmetric or align_corners (PyTorch: an integer scale factor, or align_corners=True)",
    )


def _mode(ctx: Context, node: SourceNode) -> str:
    mode = node.string("mode", "nearest")
    if mode not in ("nearest", "linear", "bilinear"):
        raise node.unsupported(f"mode '{mode}'; nearest and linear are converted")
    if node.integer("antialias"):
        raise node.unsupported("antialias=1 is not converted")
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    if policy != "stretch":
        raise node.unsupported(f"keep_aspect_ratio_policy '{policy}' is not converted")
    return mode


def _wanted(node: SourceNode, mode: str, extent: int, size: int, scale: float) -> Array:
    at = places(node, extent, size, scale)
    return nearest(node, at, extent, scale) if mode == "nearest" else np.clip(at, 0, extent - 1)


def _agree(own: Array, wanted: Array, extent: int) -> bool:
    """Equal indices; coordinates equal up to the rounding of float32 at the far end of the axis."""
    return bool(np.abs(own - wanted).max() <= (0 if own.dtype.kind == "i" else 1e-6 * (extent + 1)))
