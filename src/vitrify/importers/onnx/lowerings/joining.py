"""Putting tensors together and taking them apart."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.rules import slices, split_sizes
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor


@lowering("Concat")
def concat(ctx: Context, node: SourceNode) -> None:
    """Along one axis; a single input passes through, empty ones are left out."""
    inputs = [ctx.tensor(node, i) for i in range(len(node.inputs))]
    axis = axis_of(node, node.integer("axis", 1), len(inputs[0].shape))
    if len({t.dtype for t in inputs}) > 1:
        raise node.problem(f"its inputs have different element types: {', '.join(str(t.type) for t in inputs)}")
    rests = {(*t.shape[:axis], *t.shape[axis + 1 :]) for t in inputs}
    if len(rests) > 1:
        raise node.problem(f"its inputs differ off axis {axis}: {', '.join(str(t.type) for t in inputs)}")
    filled = [t for t in inputs if t.shape[axis]] or inputs[:1]
    ctx.bind(node, filled[0] if len(filled) == 1 else ctx.emit(ops.Concatenation(axis=axis), filled))


@lowering("Split")
def split(ctx: Context, node: SourceNode) -> None:
    """Equal parts, or parts of given sizes, along one axis."""
    x = ctx.tensor(node, 0)
    axis = axis_of(node, node.integer("axis"), len(x.shape))
    given = ctx.known(node, 1, "the list of sizes").tolist() if ctx.present(node, 1) else None
    sizes = split_sizes(node, x.shape[axis], given)
    place = np.array(axis, np.int32)
    if len(sizes) == 1:
        return ctx.bind(node, x)
    if len(set(sizes)) == 1:
        return ctx.bind(node, *ctx.emit_all(ops.Split(num_splits=len(sizes)), [place, x]))
    filled = np.array([s for s in sizes if s], np.int32)
    if filled.size == 1:
        parts = iter([x])
    else:
        parts = iter(ctx.emit_all(ops.SplitV(num_splits=filled.size), [x, filled, place]))
    blank = np.zeros([0 if i == axis else d for i, d in enumerate(x.shape)], x.dtype.numpy)
    return ctx.bind(node, *(next(parts) if s else ctx.constant(blank) for s in sizes))


@lowering("Slice")
def slice_(ctx: Context, node: SourceNode) -> None:
    """Ranges along axes, with any step; the bounds are constants."""
    x = ctx.tensor(node, 0)
    bounds = [
        None,
        *(ctx.known(node, i, "a bound") if ctx.present(node, i) else None for i in range(1, len(node.inputs))),
    ]
    ctx.bind(node, sliced(ctx, node, x, slices(node, x.shape, bounds)))


def sliced(ctx: Context, node: SourceNode, x: Tensor, ranges: list[slice]) -> Tensor:
    """``x`` indexed with one Python slice per axis."""
    spans = [range(d)[r] for d, r in zip(x.shape, ranges, strict=True)]
    sizes = [len(s) for s in spans]
    if min(sizes, default=1) == 0:
        return ctx.constant(np.zeros(sizes, x.dtype.numpy))
    if all(s == range(d) for s, d in zip(spans, x.shape, strict=True)):
        return x
    spans = [s if len(s) > 1 else range(s[0], s[0] + 1) for s in spans]  # one element has no step
    begins = np.array([s[0] for s in spans], np.int32)
    if all(s.step == 1 for s in spans):
        return ctx.emit(ops.Slice(), [x, begins, np.array(sizes, np.int32)])
    ends = [s[-1] + (1 if s.step > 0 else -1) for s in spans]
    # An end before the first element cannot be written as a number (-1 means the last): the mask says "to the border".
    mask = sum(1 << i for i, end in enumerate(ends) if end < 0)
    return ctx.emit(
        ops.StridedSlice(end_mask=mask),
        [x, begins, np.array(ends, np.int32), np.array([s.step for s in spans], np.int32)],
    )
