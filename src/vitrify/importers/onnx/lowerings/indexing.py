"""Picking elements by index."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode


@lowering("Gather")
def gather(ctx: Context, node: SourceNode) -> None:
    """Slices at indices along one axis; one index, or a run of them, is a SLICE."""
    x = ctx.tensor(node, 0)
    axis = axis_of(node, node.integer("axis"), len(x.shape))
    indices = ctx.array(node, 1)
    if indices is None:
        return ctx.bind(node, ctx.emit(ops.Gather(axis=axis), [x, ctx.tensor(node, 1)]))
    extent = x.shape[axis]
    if indices.size and not (-extent <= indices.min() and indices.max() < extent):
        raise node.problem(f"indices {indices.min()} to {indices.max()} are outside axis {axis} of {x.type}")
    places = np.where(indices < 0, indices + extent, indices).astype(np.int32)
    shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
    flat = places.ravel()
    if flat.size and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)):
        ranges = [slice(0, d) for d in x.shape]
        ranges[axis] = slice(int(flat[0]), int(flat[0]) + flat.size)
        return ctx.bind(node, ctx.reshape(sliced(ctx, node, x, ranges), shape))
    return ctx.bind(node, ctx.emit(ops.Gather(axis=axis), [x, places]))
