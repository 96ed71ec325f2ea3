"""Where Resize looks: for each output place of an axis, the place in the input, by ONNX's rules and by TFLite's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from vitrify.importers.onnx.source import Array, SourceNode

MAX_PLACES = 2**24
"""Of one axis of the output: what is computed for each of them must not take all memory."""


def is_old(node: SourceNode) -> bool:
    """True for the forms before operator set 11, which have scales only and no coordinate modes."""
    return node.kind == "Upsample" or node.opset < 11


def extents(node: SourceNode, shape: Sequence[int], inputs: Sequence[Any]) -> tuple[list[int], list[float]]:
    """Output sizes and scales of every dimension, from attributes or inputs of any operator set.

    Raises:
        ModelError: neither scales nor sizes, or not one for each axis.
    """

    def known(index: int) -> Array | None:
        found = inputs[index] if index < len(inputs) else None
        return found if isinstance(found, np.ndarray) and found.size else None

    given = node.floats("scales")
    scales = np.array(given) if given is not None else known(1 if is_old(node) else 2)
    sizes = None if is_old(node) else known(3)
    axes = resized_axes(node, len(shape))
    chosen = scales if sizes is None else sizes
    if chosen is None or (scales is not None and sizes is not None) or len(axes) != chosen.size:
        raise node.problem("it needs scales or sizes, one for each axis")
    if not np.isfinite(chosen).all():
        raise node.problem(f"its scales are {chosen.tolist()}; they are to be finite numbers")
    result, factors = list(shape), [1.0] * len(shape)
    kept = _kept_ratio(node, [shape[a] for a in axes], chosen.tolist()) if sizes is not None else None
    for axis, value in zip(axes, chosen.tolist(), strict=True):
        if kept is not None:
            result[axis], factors[axis] = int(np.floor(kept * shape[axis] + 0.5)), kept
        elif sizes is not None:
            result[axis], factors[axis] = int(value), int(value) / max(shape[axis], 1)
        else:
            result[axis], factors[axis] = int(np.floor(np.float32(shape[axis]) * np.float32(value))), float(value)
    if min(result) < 1 or min(factors) <= 0:
        raise node.problem(f"its output would be {result}")
    if max(result) > MAX_PLACES:
        raise node.unsupported(f"its output would be {result}; at most {MAX_PLACES:,} places of an axis are made")
    return result, factors


def resized_axes(node: SourceNode, rank: int) -> list[int]:
    """The axes that scales, sizes and the region of interest speak of.

    Raises:
        ModelError: one is outside of the rank.
    """
    axes = node.ints("axes") or list(range(rank))
    if any(not -rank <= a < rank for a in axes):
        raise node.problem(f"axes {axes} are outside of {rank} dimensions")
    return [a % rank for a in axes]


def _kept_ratio(node: SourceNode, before: Sequence[int], sizes: Sequence[int]) -> float | None:
    """The one scale of all axes where their ratio is kept. Source: ONNX, Resize, keep_aspect_ratio_policy."""
    policy = node.string("keep_aspect_ratio_policy", "stretch")
    if policy == "stretch" or is_old(node):
        return None
    choice = {"not_larger": min, "not_smaller": max}.get(policy)
    if choice is None:
        raise node.problem(f"keep_aspect_ratio_policy '{policy}' is unknown")
    return float(choice(size / extent for size, extent in zip(sizes, before, strict=True)))


def coordinates(node: SourceNode) -> str:
    """The name of the coordinate mode."""
    return "asymmetric" if is_old(node) else node.string("coordinate_transformation_mode", "half_pixel")


def rounding(node: SourceNode) -> str:
    """The name of the rounding that nearest uses."""
    return "simple" if is_old(node) else node.string("nearest_mode", "round_prefer_floor")


def places(
    node: SourceNode, extent: int, size: int, scale: float, region: tuple[float, float] = (0.0, 1.0)
) -> Array:
    """The input coordinate of each output place. Source: ONNX, Resize, coordinate_transformation_mode.

    ``region`` is the part of the axis that tf_crop_and_resize takes.

    Raises:
        ModelError: unknown mode.
        UnsupportedError: the specification and ONNX Runtime disagree on the answer.
    """
    # In float32, as ONNX Runtime has it: at a border between two indices the rounding decides.
    at, step = np.arange(size, dtype=np.float32), np.float32(scale)
    half, mode = np.float32(0.5), coordinates(node)
    if mode == "tf_crop_and_resize":
        start, end = (np.float32(v) for v in region)
        last = np.float32(extent - 1)
        if size == 1:
            return (half * (start + end) * last).reshape(1)
        return np.asarray(start * last + at * (end - start) * last / np.float32(size - 1))
    if mode == "align_corners" and abs(extent * scale - size) > 1e-3:
        raise node.unsupported(
            f"align_corners with scale {scale:g}, which makes {extent * scale:g} of {extent}: the specification "
            "divides by that number, ONNX Runtime by the rounded one",
            f"give the size {size} instead of the scale (PyTorch: size= instead of scale_factor=)",
        )
    if mode == "align_corners":
        return at * np.float32(extent - 1) / np.float32(size - 1) if size > 1 else at * 0
    if mode == "asymmetric":
        return np.asarray(at / step)
    if mode == "tf_half_pixel_for_nn":
        return np.asarray((at + half) / step)
    if mode == "half_pixel_symmetric":
        shift = np.float32(extent / 2) * (1 - np.float32(size) / (step * np.float32(extent)))
        return np.asarray(shift + (at + half) / step - half)
    if mode == "pytorch_half_pixel" and size == 1:
        return at * 0
    if mode in ("half_pixel", "pytorch_half_pixel"):
        return np.asarray((at + half) / step - half)
    raise node.unsupported(f"coordinate_transformation_mode '{mode}' is not converted")


def nearest(node: SourceNode, at: Array, extent: int, scale: float) -> Array:
    """The input index that nearest takes at each coordinate. Source: ONNX, Resize, nearest_mode.

    Raises:
        ModelError: unknown rounding.
    """
    name = rounding(node)
    if name == "simple":  # ONNX Runtime's rule before operator set 11
        name = "ceil" if scale < 1 else "floor"
    rules = {
        "round_prefer_floor": lambda: np.ceil(at - 0.5),
        "round_prefer_ceil": lambda: np.floor(at + 0.5),
        "floor": lambda: np.floor(at),
        "ceil": lambda: np.ceil(at),
    }
    if name not in rules:
        raise node.problem(f"nearest_mode '{name}' is unknown")
    return np.clip(rules[name](), 0, extent - 1).astype(np.int64)


def tflite_places(mode: str, extent: int, size: int, align: bool, half: bool) -> Array:
    """TFLite's coordinate (linear) or index (nearest) for each output place, in its own float32 arithmetic.

    Source: TFLite kernels/internal/reference/resize_bilinear.h and resize_nearest_neighbor.h.
    """
    corners = align and size > 1
    scale = np.float32(extent - corners) / np.float32(size - corners)
    at, middle = np.arange(size, dtype=np.float32), np.float32(0.5)
    if mode == "nearest":
        moved = (at + middle if half else at) * scale
        index = np.floor(moved + middle) if align else np.floor(moved)
        return np.asarray(np.clip(index, 0, extent - 1).astype(np.int64))
    moved = (at + middle) * scale - middle if half else at * scale
    return np.asarray(np.clip(moved.astype(np.float64), 0, extent - 1))
