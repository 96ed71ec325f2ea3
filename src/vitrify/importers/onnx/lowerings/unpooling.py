"""The way back from MaxPool."""

from __future__ import annotations

import math

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import fits
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor


@lowering("MaxUnpool")
def max_unpool(ctx: Context, node: SourceNode) -> None:
    """Each value at its index, zeros elsewhere. Windows that overlap may name one place several times, with one value.

    SCATTER_ND adds what meets at one place, so that there the sum is divided by how many came.
    Source: ONNX operator reference, MaxUnpool-22.
    """
    x, places = float_input(ctx, node, 0), ctx.tensor(node, 1)
    kernel, axes = node.ints("kernel_shape") or [], len(x.shape) - 2
    strides, pads = node.ints("strides") or [1] * axes, node.ints("pads") or [0] * (2 * axes)
    if len(kernel) != axes or len(strides) != axes or len(pads) != 2 * axes or places.shape != x.shape:
        raise node.problem(f"a kernel {kernel} with strides {strides}, pads {pads}, indices {places.type} for {x.type}")
    spatial = [(x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[axes + i] + kernel[i] for i in range(axes)]
    shape = fits(node, (*x.shape[:2], *spatial))
    if ctx.present(node, 2):
        wanted = tuple(int(d) for d in ctx.known(node, 2, "the output's shape").ravel())
        if wanted != shape:
            raise node.unsupported(
                f"an output of {list(wanted)} where its windows make {list(shape)}: by ONNX's own tests the indices "
                "count in the latter, in ONNX Runtime in the former",
                "choose sizes so that both are the same, and leave output_shape out",
            )
    rows = ctx.reshape(places, (x.size, 1))
    y = _placed(ctx, rows, ctx.reshape(x, (x.size,)), shape)
    if any(s < k for s, k in zip(strides, kernel, strict=True)):
        counts = _placed(ctx, rows, ctx.constant(np.ones(x.size, np.float32)), shape)
        y = step(ctx, ops.Div, y, step(ctx, ops.Maximum, counts, 1.0))
    ctx.bind(node, ctx.reshape(y, shape))


def _placed(ctx: Context, rows: Tensor, updates: Tensor, shape: tuple[int, ...]) -> Tensor:
    return ctx.emit(ops.ScatterND(), [rows, updates, np.array([math.prod(shape)], np.int32)])
