"""Values cut along an axis and put together again, whether known now or computed at run time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import Tensor


def pieces(ctx: Context, node: SourceNode, value: Value, axis: int) -> list[Value]:
    """One value per index of ``axis``, without that axis: it is joined to the next one, which is then split."""
    if isinstance(value, np.ndarray):
        return [np.asarray(part) for part in np.moveaxis(value, axis, 0)]
    count, before, after = value.shape[axis], value.shape[:axis], value.shape[axis + 1 :]
    if count == 1:
        return [ctx.reshape(value, (*before, *after))]
    if not after:
        return list(ctx.emit_all(ops.Unpack(num=count, axis=axis), [value]))
    rows = ctx.reshape(value, (*before, count * after[0], *after[1:]))
    return parts(ctx, node, rows, [after[0]] * count, axis)


def parts(ctx: Context, node: SourceNode, value: Value, sizes: Sequence[int], axis: int) -> list[Value]:
    """Parts of given sizes along ``axis``."""
    if isinstance(value, np.ndarray):
        return list(np.split(value, np.cumsum(sizes)[:-1], axis))
    if min(sizes, default=0) < 1:
        raise node.unsupported(f"a part of {value.type} is empty")
    if len(sizes) == 1:
        return [value]
    place = np.array(axis, np.int32)
    if len(set(sizes)) == 1:
        return list(ctx.emit_all(ops.Split(num_splits=len(sizes)), [place, value]))
    return list(ctx.emit_all(ops.SplitV(num_splits=len(sizes)), [value, np.array(sizes, np.int32), place]))


def joined(ctx: Context, node: SourceNode, values: Sequence[Value], axis: int) -> Value:
    """The values one after the other along ``axis``."""
    shapes = {(*v.shape[:axis], *v.shape[axis + 1 :]) for v in values}
    if len(shapes) != 1:
        raise node.problem(f"values of the shapes {[list(v.shape) for v in values][:5]} do not join on axis {axis}")
    known = [v for v in values if isinstance(v, np.ndarray)]
    if len(known) == len(values):
        limit(node, [sum(v.size for v in known)])
        return np.concatenate(known, axis)
    tensors = [ctx.constant(v) if isinstance(v, np.ndarray) else v for v in values]
    return tensors[0] if len(tensors) == 1 else ctx.emit(ops.Concatenation(axis=axis), tensors)


def stacked(ctx: Context, node: SourceNode, values: Sequence[Value], axis: int) -> Value:
    """Values of one shape along a new axis: joined on the axis that stands there, and reshaped once."""
    shape = values[0].shape
    if any(v.shape != shape for v in values):
        raise node.problem(f"values of different shapes are stacked: {[list(v.shape) for v in values][:5]}")
    if axis == len(shape):
        widened = (*shape, 1)
        return joined(ctx, node, [_reshaped(ctx, v, widened) for v in values], axis)
    return _reshaped(ctx, joined(ctx, node, values, axis), (*shape[:axis], len(values), *shape[axis:]))


def _reshaped(ctx: Context, value: Value, shape: tuple[int, ...]) -> Value:
    if isinstance(value, Tensor):
        return ctx.reshape(value, shape)
    assert math.prod(shape) == value.size
    return value.reshape(shape)
