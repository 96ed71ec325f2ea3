"""Patches put back where they came from.

Source: ONNX operator reference, Col2Im-18.
"""

from __future__ import annotations

import numpy as np

from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.parts.places import Formula, computable
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import fits
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType


@lowering("Col2Im")
def col2im(ctx: Context, node: SourceNode) -> None:
    """The sum of all patches at their places: one SCATTER_ND at constant indices, which adds up."""
    x, formula = ctx.tensor(node, 0), Formula(ctx)
    image, block = (ctx.known(node, i, what).ravel().tolist() for i, what in ((1, "the size"), (2, "the block")))
    axes, count = len(image), int(np.prod(block, dtype=np.int64))
    strides, dilations = (node.ints(name) or [1] * axes for name in ("strides", "dilations"))
    pads = node.ints("pads") or [0] * (2 * axes)
    if len({len(block), len(strides), len(dilations), len(pads) - axes, axes}) > 1 or len(x.shape) != 3:
        raise node.problem(f"blocks {block}, strides {strides}, dilations {dilations}, pads {pads} for a size {image}")
    whole = [d + pads[i] + pads[axes + i] for i, d in enumerate(image)]
    steps = [(w - (b - 1) * d - 1) // s + 1 for w, b, d, s in zip(whole, block, dilations, strides, strict=True)]
    if min(*steps, count, min(pads) + 1) < 1 or x.shape[1] % count or x.shape[2] != np.prod(steps, dtype=np.int64):
        raise node.problem(f"{x.type} does not hold {steps} patches of {block}")
    fits(node, [x.shape[0] * x.shape[1] // count, *whole])
    places = _places(block, steps, strides, dilations, whole)
    pictures = x.shape[0] * x.shape[1] // count
    rows = ctx.transpose(ctx.reshape(x, (pictures, places.size)), (1, 0))
    inner = computable(ctx, rows, (DType.FLOAT32, DType.INT32))
    total = formula.placed(places.reshape(-1, 1), inner, (int(np.prod(whole, dtype=np.int64)), pictures))
    y = ctx.reshape(ctx.transpose(total, (1, 0)), (x.shape[0], x.shape[1] // count, *whole))
    ranges = [slice(0, d) for d in y.shape[:2]] + [slice(pads[i], pads[i] + d) for i, d in enumerate(image)]
    ctx.bind(node, formula.cast(sliced(ctx, node, y, ranges), x.dtype))


def _places(block: list[int], steps: list[int], strides: list[int], dilations: list[int], whole: list[int]) -> Array:
    """The flat place in the padded picture of each element: patches' elements first, then the patches' order."""
    axes = len(block)
    total = np.zeros((1,) * (2 * axes), np.int64)
    for i in range(axes):
        own = np.arange(block[i])[:, None] * dilations[i] + np.arange(steps[i])[None] * strides[i]
        shape = [1] * (2 * axes)
        shape[i], shape[axes + i] = own.shape
        total = total + own.reshape(shape) * int(np.prod(whole[i + 1 :], dtype=np.int64))
    return total.ravel().astype(np.int32)
