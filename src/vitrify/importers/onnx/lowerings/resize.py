"""Resizing of height and width, where one of TFLite's schemes gives exactly ONNX's answer.

Both are compared as what they do along one axis: for each output place the input places and weights. A scheme is taken
when the two agree on both axes; otherwise the form is refused by name.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

_TOLERANCE = 1e-5  # of an interpolation weight
_FLAGS = ((False, True), (False, False), (True, False))  # (align_corners, half_pixel_centers)


@lowering("Resize", "Upsample")
def resize(ctx: Context, node: SourceNode) -> None:
    """Nearest and linear, for the coordinate modes that TFLite has."""
    x = float_input(ctx, node, 0, (3, 4))
    sizes, scales = _extents(ctx, node, x)
    if sizes[:2] != list(x.shape[:2]):
        raise ctx.unsupported(node, f"it resizes batch or channels: {list(x.shape)} to {sizes}")
    if sizes == list(x.shape):
        return ctx.bind(node, x)
    mode = node.string("mode", "nearest")
    form = _form(ctx, node, mode)
    wanted = [_matrix(node, mode, x.shape[i], sizes[i], scales[i]) for i in range(2, len(sizes))]
    if len(wanted) == 1:
        wanted.insert(0, np.ones((1, 1)))
    picture = ctx.as_picture(x)
    places = np.array([1, sizes[2]] if len(sizes) == 3 else sizes[2:], np.int32)
    kind = ops.ResizeNearestNeighbor if mode == "nearest" else ops.ResizeBilinear
    for align, half in _FLAGS:
        own = [_tflite(mode, m.shape[1], m.shape[0], align, half) for m in wanted]
        if all(np.abs(a - b).max() <= _TOLERANCE for a, b in zip(own, wanted, strict=True)):
            y = ctx.emit(kind(align_corners=align, half_pixel_centers=half), [picture, places])
            return ctx.bind(node, ctx.from_picture(y, len(x.shape)))
    raise ctx.unsupported(
        node,
        f"{form} from {list(x.shape[2:])} to {sizes[2:]} has no equal in TFLite",
        "use coordinate_transformation_mode half_pixel, asymmetric or align_corners (PyTorch: an integer "
        "scale factor, or align_corners=True)",
    )


def _form(ctx: Context, node: SourceNode, mode: str) -> str:
    if mode not in ("nearest", "linear", "bilinear"):
        raise ctx.unsupported(node, f"mode '{mode}'; nearest and linear are converted")
    if node.integer("antialias"):
        raise ctx.unsupported(node, "antialias=1 is not converted")
    if node.string("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise ctx.unsupported(
            node, f"keep_aspect_ratio_policy '{node.string('keep_aspect_ratio_policy')}' is not converted"
        )
    coordinates = _coordinates(node)
    return f"mode {mode}, coordinates {coordinates}" + (f", {_rounding(node)}" if mode == "nearest" else "")


def _extents(ctx: Context, node: SourceNode, x: Tensor) -> tuple[list[int], list[float]]:
    """Output sizes and scales of every dimension, from attributes or inputs of any operator set."""

    def known(index: int, what: str) -> Array | None:
        found = ctx.known(node, index, what) if ctx.present(node, index) else None
        return found if found is not None and found.size else None

    old = node.kind == "Upsample" or node.opset < 11
    given = node.floats("scales")
    scales = np.array(given) if given is not None else known(1 if old else 2, "the scales")
    sizes = None if old else known(3, "the sizes")
    axes = [axis_of(node, a, len(x.shape)) for a in node.ints("axes") or range(len(x.shape))]
    if (scales is None) == (sizes is None) or len(axes) != (scales if sizes is None else sizes).size:  # type: ignore[union-attr]
        raise node.problem("it needs scales or sizes, one for each axis")
    result, factors = list(x.shape), [1.0] * len(x.shape)
    for i, axis in enumerate(axes):
        if sizes is not None:
            result[axis] = int(sizes[i])
            factors[axis] = result[axis] / x.shape[axis]
        else:
            assert scales is not None
            factors[axis] = float(scales[i])
            result[axis] = int(np.floor(np.float32(x.shape[axis]) * np.float32(factors[axis])))
    if min(result) < 1:
        raise node.problem(f"its output would be {result}")
    return result, factors


def _coordinates(node: SourceNode) -> str:
    if node.kind == "Upsample" or node.opset < 11:
        return "asymmetric"
    return node.string("coordinate_transformation_mode", "half_pixel")


def _rounding(node: SourceNode) -> str:
    if node.kind == "Upsample" or node.opset < 11:
        return "simple"
    return node.string("nearest_mode", "round_prefer_floor")


def _source(node: SourceNode, extent: int, size: int, scale: float) -> Array:
    """Where each output place lies in the input. Source: ONNX, Resize, coordinate_transformation_mode."""
    places = np.arange(size, dtype=np.float64)
    mode = _coordinates(node)
    if mode == "align_corners":
        return places * ((extent - 1) / (size - 1)) if size > 1 else places * 0
    if mode == "asymmetric":
        return places / scale
    if mode == "tf_half_pixel_for_nn":
        return (places + 0.5) / scale
    if mode == "half_pixel_symmetric":
        adjustment = size / (scale * extent)
        return (extent / 2) * (1 - adjustment) + (places + 0.5) / scale - 0.5
    if mode == "pytorch_half_pixel" and size == 1:
        return places * 0
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return (places + 0.5) / scale - 0.5
    raise node.problem(f"coordinate_transformation_mode '{mode}'", "onnx.unsupported-form")


def _matrix(node: SourceNode, mode: str, extent: int, size: int, scale: float) -> Array:
    """ONNX's weights [size, extent] along one axis."""
    places = _source(node, extent, size, scale)
    if mode != "nearest":
        return _weights(np.clip(places, 0, extent - 1), extent)
    rounding = _rounding(node)
    rounded = {
        "round_prefer_floor": lambda: np.ceil(places - 0.5),
        "round_prefer_ceil": lambda: np.floor(places + 0.5),
        "floor": lambda: np.floor(places),
        "ceil": lambda: np.ceil(places),
        "simple": lambda: np.ceil(places) if scale < 1 else np.floor(places),
    }.get(rounding)
    if rounded is None:
        raise node.problem(f"nearest_mode '{rounding}' is unknown")
    return _one_hot(rounded(), extent)


def _one_hot(places: Array, extent: int) -> Array:
    return np.asarray(np.clip(places, 0, extent - 1)[:, None] == np.arange(extent), np.float64)


def _weights(places: Array, extent: int) -> Array:
    low = np.floor(places)
    part = (places - low)[:, None]
    return np.asarray(_one_hot(low, extent) * (1 - part) + _one_hot(low + 1, extent) * part)


def _tflite(mode: str, extent: int, size: int, align: bool, half: bool) -> Array:
    """TFLite's weights [size, extent] along one axis, in its own float32 arithmetic.

    Source: TFLite kernels/internal/reference/resize_bilinear.h and resize_nearest_neighbor.h.
    """
    scale = (
        np.float32(extent - 1) / np.float32(size - 1) if align and size > 1 else np.float32(extent) / np.float32(size)
    )
    places = np.arange(size, dtype=np.float32)
    if mode == "nearest":
        moved = (places + np.float32(0.5 if half else 0)) * scale
        return _one_hot(np.floor(moved + np.float32(0.5)) if align else np.floor(moved), extent)
    moved = (places + np.float32(0.5)) * scale - np.float32(0.5) if half else places * scale
    return _weights(np.clip(moved, 0, extent - 1).astype(np.float64), extent)
