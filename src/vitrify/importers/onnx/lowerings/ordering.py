"""Largest and smallest values and where they stand; hot positions; sequences backwards.

Source: ONNX operator reference, TopK-11, ArgMax-13, OneHot-11, ReverseSequence-10; TFLite kernels/topk_v2.cc,
arg_min_max.cc, one_hot.cc, reverse_sequence.cc.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.parts.places import Formula, computable, emit_as, is_natural
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.rules import fits
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

_RANKED = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT16, DType.INT32, DType.INT64)
_COMPARED = (DType.FLOAT32, DType.INT8, DType.UINT8, DType.INT32)
_HOT = (DType.FLOAT32, DType.BOOL, DType.INT8, DType.UINT8, DType.INT32)
_REVERSED = (DType.FLOAT32, DType.UINT8, DType.INT16, DType.INT32)


@lowering("TopK")
def top_k(ctx: Context, node: SourceNode) -> None:
    """The k largest or smallest along an axis, best first; of equal ones the first, as ONNX has it."""
    x = ctx.tensor(node, 0)
    axis = axis_of(node, node.integer("axis", -1), len(x.shape))
    given = ctx.known(node, 1, "k") if ctx.present(node, 1) else np.array(node.integer("k"))
    k, last = int(given.reshape(-1)[0]), len(x.shape) - 1
    if not x.shape or not 0 <= k <= x.shape[axis]:
        raise node.problem(f"the {k} best of {x.type} along axis {axis}")
    order = [i for i in range(last + 1) if i != axis] + [axis]
    moved = ctx.transpose(computable(ctx, x, _RANKED), order)
    turned = moved if node.integer("largest", 1) else _turned(ctx, moved)
    values, places = ctx.emit_all(ops.TopKV2(), [turned, np.array(k, np.int32)])
    values = values if turned is moved else _turned(ctx, values)
    back = [order.index(i) for i in range(last + 1)]
    ctx.bind(node, Formula(ctx).cast(ctx.transpose(values, back), x.dtype), ctx.transpose(places, back))


def _turned(ctx: Context, x: Tensor) -> Tensor:
    """The values in the opposite order, and back again; for integers -1 - x, which the smallest one survives."""
    formula = Formula(ctx)
    if x.dtype.is_float:
        return ctx.emit(ops.Neg(), [x], aside=True)
    wide = formula.cast(x, DType.INT32)
    return formula.sub(np.array(-1, np.int32), wide)


@lowering("ArgMax", "ArgMin")
def arg(ctx: Context, node: SourceNode) -> None:
    """The place of the largest (smallest) value along an axis, the first or the last of several equal ones."""
    x = ctx.tensor(node, 0)
    axis = axis_of(node, node.integer("axis"), len(x.shape))
    kind, place = ops.ArgMax if node.kind == "ArgMax" else ops.ArgMin, np.array(axis, np.int32)
    searched, backward = computable(ctx, x, _COMPARED), bool(node.integer("select_last_index"))
    if backward:
        searched = ctx.emit(ops.ReverseV2(), [searched, place.reshape(1)], aside=True)
    y = ctx.emit(kind(output_type=DType.INT32.value), [searched, place])
    if backward:
        y = Formula(ctx).sub(np.array(x.shape[axis] - 1, np.int32), y)
    shape = [*x.shape[:axis], 1, *x.shape[axis + 1 :]]
    ctx.bind(node, ctx.reshape(y, shape) if node.integer("keepdims", 1) else y)


@lowering("OneHot")
def one_hot(ctx: Context, node: SourceNode) -> None:
    """A new axis with one value on; negative indices count from its end, those outside of it turn nothing on."""
    formula, depth = Formula(ctx), int(ctx.known(node, 1, "the depth").reshape(-1)[0])
    places, values = formula.cast(ctx.tensor(node, 0), DType.INT32), ctx.tensor(node, 2)
    if values.size != 2 or depth < 0:
        raise node.problem(f"a depth of {depth} and values {values.type}; two values are needed, off and on")
    axis = axis_of(node, node.integer("axis", -1), len(places.shape) + 1)
    if not is_natural(places):
        from_end = formula.add(places, np.array(depth, np.int32))
        places = formula.choose(formula.below(places, np.array(0, np.int32)), from_end, places)
    fits(node, [*places.shape, depth])
    inner = ctx.reshape(computable(ctx, values, _HOT), (2,))
    off, on = (ctx.reshape(_element(ctx, inner, i), ()) for i in (0, 1))
    op = ops.OneHot(axis=-1 if axis == len(places.shape) else axis)
    ctx.bind(node, emit_as(ctx, op, [places, np.array(depth, np.int32), on, off], values.dtype))


def _element(ctx: Context, x: Tensor, index: int) -> Tensor:
    if x.data is not None:
        return ctx.constant(x.data[index : index + 1])
    return Formula(ctx).part(x, 0, index, index + 1)


@lowering("ReverseSequence")
def reverse_sequence(ctx: Context, node: SourceNode) -> None:
    """The first steps of every sequence backwards, as many as its length says."""
    x, lengths = ctx.tensor(node, 0), ctx.tensor(node, 1)
    time, batch = node.integer("time_axis"), node.integer("batch_axis", 1)
    if {time, batch} != {0, 1} or len(x.shape) < 2 or lengths.shape != (x.shape[batch],):
        raise node.problem(f"lengths {lengths.type} for {x.type} with time axis {time} and batch axis {batch}")
    op = ops.ReverseSequence(seq_dim=time, batch_dim=batch)
    ctx.bind(node, emit_as(ctx, op, [computable(ctx, x, _REVERSED), lengths], x.dtype))
