"""Picking elements by index.

Source: ONNX operator reference, Gather-13, GatherElements-13, GatherND-13; TFLite kernels/gather.cc, gather_nd.cc.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.joining import sliced
from vitrify.importers.onnx.parts.places import Formula, computable, emit_as, flat_places, indices_within
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

GATHERED = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64, DType.BOOL)


@lowering("Gather")
def gather(ctx: Context, node: SourceNode) -> None:
    """Slices at indices along one axis; one index, or a run of them, is a SLICE."""
    x = ctx.tensor(node, 0)
    axis = axis_of(node, node.integer("axis"), len(x.shape))
    places = indices_within(ctx, node, 1, x.shape[axis])
    if isinstance(places, np.ndarray):
        shape = (*x.shape[:axis], *places.shape, *x.shape[axis + 1 :])
        flat = places.ravel()
        if flat.size and np.array_equal(flat, np.arange(flat[0], flat[0] + flat.size)):
            ranges = [slice(0, d) for d in x.shape]
            ranges[axis] = slice(int(flat[0]), int(flat[0]) + flat.size)
            return ctx.bind(node, ctx.reshape(sliced(ctx, node, x, ranges), shape))
    return ctx.bind(node, _gathered(ctx, x, places, axis))


def _gathered(ctx: Context, x: Tensor, places: Value, axis: int, batch_dims: int = 0) -> Tensor:
    return emit_as(ctx, ops.Gather(axis=axis, batch_dims=batch_dims), [computable(ctx, x, GATHERED), places], x.dtype)


@lowering("GatherElements")
def gather_elements(ctx: Context, node: SourceNode) -> None:
    """One element for each index, along one axis: whole rows where the indices repeat, a flat GATHER otherwise."""
    x, shape = ctx.tensor(node, 0), ctx.value(node, 1).shape
    axis = axis_of(node, node.integer("axis"), len(x.shape))
    others = [i for i in range(len(x.shape)) if i != axis]
    if len(shape) != len(x.shape) or any(shape[i] > x.shape[i] for i in others):
        raise node.problem(f"indices of shape {list(shape)} do not fit {x.type} along axis {axis}")
    places = indices_within(ctx, node, 1, x.shape[axis])
    rows = _rows(ctx, places, x.shape, axis)
    if rows is not None:
        batch = 0 if all(d == 1 for d in x.shape[:axis]) else axis
        kept = rows.shape[: axis + 1] if batch else rows.shape[axis : axis + 1]
        rows = rows.reshape(kept) if isinstance(rows, np.ndarray) else ctx.reshape(rows, kept)
        return ctx.bind(node, _gathered(ctx, x, rows, axis, batch))
    base, stride = flat_places(x.shape, axis, shape)
    if isinstance(places, np.ndarray):
        flat: Value = (places * stride + base).astype(np.int32)
    else:
        formula = Formula(ctx)
        flat = formula.add(places if stride == 1 else formula.mul(places, np.array(stride, np.int32)), base)
    return ctx.bind(node, _gathered(ctx, ctx.reshape(x, (x.size,)), flat, 0))


def _rows(ctx: Context, places: Value, shape: tuple[int, ...], axis: int) -> Value | None:
    """The indices with extent 1 behind the axis, when they are the same for all that lies there; None otherwise."""
    rank = len(shape)
    if places.shape[:axis] != shape[:axis] or places.shape[axis + 1 :] != shape[axis + 1 :]:
        return None
    if all(d == 1 for d in shape[axis + 1 :]):
        return places
    if isinstance(places, np.ndarray):
        first = places[(*[slice(None)] * (axis + 1), *[slice(0, 1)] * (rank - axis - 1))]
        return first if np.array_equal(np.broadcast_to(first, places.shape), places) else None
    made = places.producer
    if made is None or made.inputs[0] is None:
        return None
    if isinstance(made.op, ops.FloorMod) and made.inputs[1] is not None:
        core = _before_repeating(made.inputs[0], axis)
        return None if core is None else Formula(ctx).modulo(core, made.inputs[1])
    return _before_repeating(places, axis)


def _before_repeating(x: Tensor, axis: int) -> Tensor | None:
    """What a TILE or BROADCAST_TO repeated along all axes behind ``axis``, and along no other."""
    made = x.producer
    if made is None or not isinstance(made.op, ops.BroadcastTo | ops.Tile):
        return None
    core = made.inputs[0]
    if core is None or len(core.shape) != len(x.shape) or core.shape[: axis + 1] != x.shape[: axis + 1]:
        return None
    return core if all(d == 1 for d in core.shape[axis + 1 :]) else None


@lowering("GatherND")
def gather_nd(ctx: Context, node: SourceNode) -> None:
    """Elements or slices at tuples of indices; a single index per tuple, or batches, become a GATHER of rows."""
    x, shape = ctx.tensor(node, 0), ctx.value(node, 1).shape
    batch, depth = node.integer("batch_dims"), shape[-1] if shape else 0
    if depth < 1 or not 0 <= batch < len(shape) or batch + depth > len(x.shape) or shape[:batch] != x.shape[:batch]:
        raise node.problem(f"indices of shape {list(shape)} with {batch} batch dimensions do not fit {x.type}")
    extents = np.array(x.shape[batch : batch + depth], np.int32)
    places = indices_within(ctx, node, 1, extents)
    if batch == 0 and depth > 1:
        y = emit_as(ctx, ops.GatherND(), [computable(ctx, x, GATHERED), places], x.dtype)
        return ctx.bind(node, y)
    rows, tail = int(np.prod(x.shape[: batch + depth], dtype=np.int64)), x.shape[batch + depth :]
    flat = rows_at(ctx, places, x.shape[:batch], extents.tolist())
    return ctx.bind(node, _gathered(ctx, ctx.reshape(x, (rows, *tail)), flat, 0))


def rows_at(ctx: Context, places: Value, batch: tuple[int, ...], extents: list[int]) -> Value:
    """Tuples of indices [*batch, ..., depth] as one index each into the flattened axes ``batch`` and ``extents``."""
    strides = np.array([np.prod(extents[i + 1 :], dtype=np.int64) for i in range(len(extents))], np.int32)
    size, count = int(np.prod(extents, dtype=np.int64)), int(np.prod(batch, dtype=np.int64))
    base = (np.arange(count, dtype=np.int32) * size).reshape((*batch, *[1] * (len(places.shape) - 1 - len(batch))))
    if isinstance(places, np.ndarray):
        return np.asarray((places * strides).sum(-1) + base, np.int32)
    formula = Formula(ctx)
    if len(extents) == 1:
        flat = ctx.reshape(places, places.shape[:-1])
    else:
        flat = formula.total(formula.mul(places, strides), len(places.shape) - 1)
    return formula.add(flat, base) if count > 1 else flat
