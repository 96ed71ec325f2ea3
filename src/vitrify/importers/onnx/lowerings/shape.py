"""Operators that keep every value and change the shape or the element type."""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.registry import axes_of, axis_of, lowering
from vitrify.importers.onnx.rules import fits, target_shape
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType


@lowering("Identity")
def identity(ctx: Context, node: SourceNode) -> None:
    """The input itself."""
    ctx.bind(node, ctx.value(node, 0))


@lowering("Reshape")
def reshape(ctx: Context, node: SourceNode) -> None:
    """The shape is a constant, with 0 for "as before" and -1 for "what is left"."""
    x = ctx.tensor(node, 0)
    wanted = ctx.known(node, 1, "the shape").tolist() if ctx.present(node, 1) else node.ints("shape") or []
    ctx.bind(node, ctx.reshape(x, target_shape(node, x.shape, wanted)))


@lowering("Flatten")
def flatten(ctx: Context, node: SourceNode) -> None:
    """Two dimensions: what is before the axis, and the rest."""
    x = ctx.tensor(node, 0)
    axis = node.integer("axis", 1)
    axis += len(x.shape) if axis < 0 else 0
    rows = int(np.prod(x.shape[:axis], dtype=np.int64))
    ctx.bind(node, ctx.reshape(x, (rows, x.size // max(rows, 1))))


@lowering("Squeeze")
def squeeze(ctx: Context, node: SourceNode) -> None:
    """Without the named dimensions of extent 1, or without all of them."""
    x = ctx.tensor(node, 0)
    axes = axes_of(ctx, node, len(x.shape))
    gone = [i for i, d in enumerate(x.shape) if d == 1] if axes is None else axes
    if any(x.shape[a] != 1 for a in gone):
        raise node.problem(f"axes {gone} of {x.type} are not all of extent 1")
    ctx.bind(node, ctx.reshape(x, [d for i, d in enumerate(x.shape) if i not in gone]))


@lowering("Unsqueeze")
def unsqueeze(ctx: Context, node: SourceNode) -> None:
    """New dimensions of extent 1 at the named places of the result."""
    x = ctx.tensor(node, 0)
    given = node.ints("axes") or ctx.known(node, 1, "the list of axes").ravel().tolist()
    rank = len(x.shape) + len(given)
    axes = {axis_of(node, int(a), rank) for a in given}
    rest = iter(x.shape)
    ctx.bind(node, ctx.reshape(x, [1 if i in axes else next(rest) for i in range(rank)]))


@lowering("Transpose")
def transpose(ctx: Context, node: SourceNode) -> None:
    """Axes in another order; reversed when no order is given."""
    x = ctx.tensor(node, 0)
    perm = node.ints("perm") or list(range(len(x.shape)))[::-1]
    if sorted(perm) != list(range(len(x.shape))):
        raise node.problem(f"perm {perm} is no order of the {len(x.shape)} axes of {x.type}")
    if tuple(perm) == tuple(range(len(perm))):
        return ctx.bind(node, x)
    return ctx.bind(node, ctx.emit(ops.Transpose(), [x, np.array(perm, np.int32)]))


@lowering("Expand")
def expand(ctx: Context, node: SourceNode) -> None:
    """Broadcast to a constant shape (both ways: the shape may hold ones)."""
    x = ctx.tensor(node, 0)
    wanted = ctx.known(node, 1, "the shape").tolist()
    try:
        shape = fits(node, np.broadcast_shapes(x.shape, tuple(wanted)))
    except ValueError:
        raise node.problem(f"{x.type} does not broadcast to {wanted}") from None
    if x.size == int(np.prod(shape, dtype=np.int64)):
        return ctx.bind(node, ctx.reshape(x, shape))
    if x.dtype is DType.INT8:  # the reference kernels have no TILE for it
        return ctx.bind(node, ctx.emit(ops.BroadcastTo(), [x, np.array(shape, np.int32)]))
    x = ctx.reshape(x, (1,) * (len(shape) - len(x.shape)) + x.shape)  # NPUs have TILE, not BROADCAST_TO
    times = [wide // narrow if narrow else 1 for wide, narrow in zip(shape, x.shape, strict=True)]
    return ctx.bind(node, ctx.emit(ops.Tile(), [x, np.array(times, np.int32)]))


@lowering("Tile")
def tile(ctx: Context, node: SourceNode) -> None:
    """Repeat along every axis."""
    x, repeats = ctx.tensor(node, 0), ctx.known(node, 1, "the repeats").tolist()
    if len(repeats) != len(x.shape):
        raise node.problem(f"repeats {repeats} do not fit {x.type}")
    fits(node, [d * r for d, r in zip(x.shape, repeats, strict=True)])
    ctx.bind(node, x if set(repeats) == {1} else ctx.emit(ops.Tile(), [x, np.array(repeats, np.int32)]))
