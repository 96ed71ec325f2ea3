"""Placing elements by index: Scatter, ScatterElements, ScatterND, TensorScatter.

Constant indices become slices put together, or one GATHER out of data and updates; indices computed at run time
become SCATTER_ND for sums, a choice between data and SCATTER_ND for replacement, and a table of all updates against
all places for products and extremes.
Source: ONNX operator reference, ScatterElements-18, ScatterND-18, TensorScatter-24; TFLite kernels/scatter_nd.cc.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context, Value
from vitrify.importers.onnx.lowerings.indexing import GATHERED, rows_at
from vitrify.importers.onnx.parts.places import Formula, bounded, flat_places, indices_within
from vitrify.importers.onnx.registry import axis_of, lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Operator, Tensor

REDUCTIONS = ("none", "add", "mul", "max", "min")
MAX_ROUNDS = 64
"""How often one place may be updated by constant indices, where each update needs a round of its own."""
_CHOSEN = (DType.FLOAT32, DType.INT32, DType.INT8, DType.UINT8)
_COMBINED = (DType.FLOAT32, DType.INT32)
_COMBINERS: dict[str, type[Operator]] = {"add": ops.Add, "mul": ops.Mul, "max": ops.Maximum, "min": ops.Minimum}


@dataclass
class Placing:
    """Rows of ``data`` [places, width] that the rows of ``updates`` [count, width] change, at ``rows`` [count]."""

    ctx: Context
    node: SourceNode
    data: Tensor
    rows: Value
    updates: Tensor
    reduction: str

    def result(self) -> Tensor:
        """The rows after the updates."""
        if isinstance(self.rows, np.ndarray):
            return self._constant(self.rows)
        if self.reduction == "add":
            return Formula(self.ctx).add(self.data, self._sums(self.updates))
        return self._replaced() if self.reduction == "none" else self._combined()

    def _sums(self, updates: Tensor) -> Tensor:
        shape = (self.data.shape[0], *updates.shape[1:])
        rows = self.rows
        column = rows.reshape(-1, 1) if isinstance(rows, np.ndarray) else self.ctx.reshape(rows, (rows.size, 1))
        return Formula(self.ctx).placed(column, updates, shape)

    def _constant(self, rows: Array) -> Tensor:
        """Constant rows: replacing takes the last update of each place; all else goes round by round."""
        formula, ctx = Formula(self.ctx), self.ctx
        if self.reduction == "none":
            return self._taken(rows, self.data, self.updates)
        if self.reduction == "add" and len(np.unique(rows)) < rows.size:
            return formula.add(self.data, self._sums(self.updates))
        order = np.argsort(rows, kind="stable")
        starts = np.searchsorted(rows[order], rows[order])
        turn = np.empty(rows.size, np.int64)
        turn[order] = np.arange(rows.size) - starts
        if turn.max(initial=0) >= MAX_ROUNDS:
            raise self.node.unsupported(f"{turn.max() + 1} updates of one place; at most {MAX_ROUNDS} are combined")
        data = self.data
        for current in range(int(turn.max(initial=-1)) + 1):
            chosen = np.flatnonzero(turn == current)
            updates = self.updates
            if chosen.size < rows.size:
                updates = formula.picked(updates, chosen.astype(np.int32))
            places = rows[chosen]
            old = data if np.array_equal(places, np.arange(data.shape[0])) else formula.picked(data, places)
            data = self._taken(places, data, ctx.emit(_COMBINERS[self.reduction](), [old, updates], aside=True))
        return data

    def _taken(self, rows: Array, data: Tensor, updates: Tensor) -> Tensor:
        """Each place from data or from the last update of it."""
        source = np.arange(data.shape[0], dtype=np.int32)
        source[rows] = data.shape[0] + np.arange(rows.size, dtype=np.int32)
        changed = np.flatnonzero(source >= data.shape[0])
        formula = Formula(self.ctx)
        if changed.size == 0:
            return data
        start, stop = int(changed[0]), int(changed[-1]) + 1
        if np.array_equal(source[start:stop], data.shape[0] + np.arange(rows.size)):  # a run: slices put together
            parts = [(data, 0, start), (updates, 0, rows.size), (data, stop, data.shape[0])]
            return formula.joined([formula.part(t, 0, a, b) for t, a, b in parts if b > a], 0)
        return formula.picked(formula.joined([data, updates], 0), source)

    def _replaced(self) -> Tensor:
        """Run-time rows: a place with an update takes it. Two updates of one place have no defined result in ONNX."""
        formula = Formula(self.ctx)
        if self.data.data is not None and not self.data.data.any():
            return self._sums(self.updates)
        ones = self.ctx.constant(np.ones((self.updates.shape[0], 1), np.int32))
        hit = formula.below(np.array(0, np.int32), self._sums(ones))
        return formula.choose(hit, self._sums(self.updates), self.data)

    def _combined(self) -> Tensor:
        """Run-time rows: every update against every place, with what changes nothing where they do not meet."""
        formula, ctx = Formula(self.ctx), self.ctx
        places, count, width = self.data.shape[0], *self.updates.shape
        bounded(self.node, (count, places, width), f"reduction '{self.reduction}' with indices computed at run time")
        assert isinstance(self.rows, Tensor)
        column = ctx.reshape(self.rows, (count, 1, 1))
        meets = ctx.emit(
            ops.Equal(), [column, np.arange(places, dtype=np.int32).reshape(1, places, 1)], aside=True
        )
        is_float = self.data.dtype.is_float
        bound = np.finfo(np.float32) if is_float else np.iinfo(np.int32)
        neutral = {"mul": 1, "max": bound.min, "min": bound.max}[self.reduction]
        blank = np.array(neutral, np.float32 if is_float else np.int32)
        table = formula.choose(meets, ctx.reshape(self.updates, (count, 1, width)), blank)
        kinds = {"mul": ops.ReduceProd, "max": ops.ReduceMax, "min": ops.ReduceMin}
        single = ctx.emit(kinds[self.reduction](keep_dims=False), [table, np.array([0], np.int32)], aside=True)
        return ctx.emit(_COMBINERS[self.reduction](), [self.data, single], aside=True)


def _placed(ctx: Context, node: SourceNode, data: Tensor, rows: Value, updates: Tensor, reduction: str) -> Tensor:
    """Run a placing in an element type that its operators compute in."""
    formula, constant = Formula(ctx), isinstance(rows, np.ndarray)
    free = constant and reduction == "none"
    types = GATHERED if free else _CHOSEN if reduction == "none" else _COMBINED
    inner = data.dtype if data.dtype in types else DType.INT32
    made = Placing(ctx, node, formula.cast(data, inner), rows, formula.cast(updates, inner), reduction).result()
    return formula.cast(made, data.dtype)


def _reduction(node: SourceNode) -> str:
    found = node.string("reduction", "none")
    if found not in REDUCTIONS:
        raise node.problem(f"reduction '{found}' is not one of {', '.join(REDUCTIONS)}")
    return found


@lowering("Scatter", "ScatterElements")
def scatter_elements(ctx: Context, node: SourceNode) -> None:
    """One update for each index, along one axis."""
    data, updates, shape = ctx.tensor(node, 0), ctx.tensor(node, 2), ctx.value(node, 1).shape
    axis = axis_of(node, node.integer("axis"), len(data.shape))
    fits = len(shape) == len(data.shape) and all(
        i == axis or a <= b for i, (a, b) in enumerate(zip(shape, data.shape, strict=True))
    )
    if not fits or updates.shape != shape or updates.dtype is not data.dtype:
        raise node.problem(f"indices {list(shape)} and updates {updates.type} do not fit {data.type} on axis {axis}")
    if 0 in shape:
        return ctx.bind(node, data)
    places = indices_within(ctx, node, 1, data.shape[axis])
    base, stride = flat_places(data.shape, axis, shape)
    if isinstance(places, np.ndarray):
        rows: Value = (places * stride + base).ravel().astype(np.int32)
    else:
        formula = Formula(ctx)
        scaled = places if stride == 1 else formula.mul(places, np.array(stride, np.int32))
        rows = ctx.reshape(formula.add(scaled, base), (updates.size,))
    one = ctx.reshape(data, (data.size, 1)), rows, ctx.reshape(updates, (updates.size, 1))
    return ctx.bind(node, ctx.reshape(_placed(ctx, node, *one, _reduction(node)), data.shape))


@lowering("ScatterND")
def scatter_nd(ctx: Context, node: SourceNode) -> None:
    """Updates of elements or slices at tuples of indices; a box of constant ones is put between slices."""
    data, updates, shape = ctx.tensor(node, 0), ctx.tensor(node, 2), ctx.value(node, 1).shape
    depth = shape[-1] if shape else 0
    if not 1 <= depth <= len(data.shape) or updates.shape != (*shape[:-1], *data.shape[depth:]):
        raise node.problem(f"indices {list(shape)} and updates {updates.type} do not fit {data.type}")
    if 0 in shape:
        return ctx.bind(node, data)
    extents, reduction = data.shape[:depth], _reduction(node)
    places = indices_within(ctx, node, 1, np.array(extents, np.int32))
    box = _box(places) if isinstance(places, np.ndarray) and reduction == "none" else None
    if box is not None:
        inner = ctx.reshape(updates, (*(len(r) for r in box), *data.shape[depth:]))
        return ctx.bind(node, _put(ctx, data, inner, box))
    count, width = int(np.prod(shape[:-1])), int(np.prod(data.shape[depth:], dtype=np.int64))
    flat = rows_at(ctx, places, (), list(extents))
    rows = flat.ravel() if isinstance(flat, np.ndarray) else ctx.reshape(flat, (count,))
    two = ctx.reshape(data, (data.size // width, width)), rows, ctx.reshape(updates, (count, width))
    return ctx.bind(node, ctx.reshape(_placed(ctx, node, *two, reduction), data.shape))


def _box(places: Array) -> list[range] | None:
    """The ranges whose product, in order, the tuples are; None when they are no box."""
    tuples = places.reshape(-1, places.shape[-1])
    first, last = tuples[0], tuples[-1]
    if (last < first).any():
        return None
    sizes = (last - first + 1).astype(np.int64)
    if sizes.prod() != len(tuples):
        return None
    grid = np.stack(np.unravel_index(np.arange(len(tuples)), tuple(sizes.tolist())), -1) + first
    ranges = [range(int(a), int(b) + 1) for a, b in zip(first, last, strict=True)]
    return ranges if np.array_equal(grid, tuples) else None


def _put(ctx: Context, data: Tensor, inner: Tensor, box: list[range]) -> Tensor:
    """``data`` with ``inner`` in the place of a box of its first axes."""
    formula, layers = Formula(ctx), [data]
    for axis, span in enumerate(box):
        layers.append(formula.part(layers[-1], axis, span.start, span.stop))
    for axis, span in reversed(list(enumerate(box))):
        outer = layers[axis]
        before = [formula.part(outer, axis, 0, span.start)] if span.start else []
        after = [formula.part(outer, axis, span.stop, outer.shape[axis])] if span.stop < outer.shape[axis] else []
        inner = formula.joined([*before, inner, *after], axis)
    return inner


@lowering("TensorScatter")
def tensor_scatter(ctx: Context, node: SourceNode) -> None:
    """A cache with new steps written from an index on, one for each batch; circular ones begin again at the start."""
    cache, update = ctx.tensor(node, 0), ctx.tensor(node, 1)
    axis = axis_of(node, node.integer("axis", -2), len(cache.shape))
    rest = [i for i in range(len(cache.shape)) if i != axis]
    if (
        axis == 0
        or update.dtype is not cache.dtype
        or len(update.shape) != len(cache.shape)
        or any(update.shape[i] != cache.shape[i] for i in rest)
        or update.shape[axis] > cache.shape[axis]
    ):
        raise node.problem(f"{update.type} does not fit into {cache.type} along axis {axis}")
    circular, batch = node.string("mode", "linear") == "circular", cache.shape[0]
    starts = indices_within(ctx, node, 2, cache.shape[axis]) if ctx.present(node, 2) else np.zeros(batch, np.int32)
    if starts.shape != (batch,):
        raise node.problem(f"{list(starts.shape)} write indices for {batch} batches")
    if isinstance(starts, np.ndarray) and not circular and len(set(starts.tolist())) == 1:
        box = [*(range(d) for d in cache.shape[:axis]), range(int(starts[0]), int(starts[0]) + update.shape[axis])]
        return ctx.bind(node, _put(ctx, cache, update, box))
    if batch == 1 and not circular and isinstance(starts, Tensor):
        zeros = [ctx.constant(np.zeros(n, np.int32)) for n in (axis, len(cache.shape) - axis - 1)]
        begin = Formula(ctx).joined([zeros[0], starts, zeros[1]], 0)
        return ctx.bind(node, ctx.emit(ops.DynamicUpdateSlice(), [cache, update, begin]))
    return ctx.bind(node, _written(ctx, cache, update, starts, axis, circular))


def _written(ctx: Context, cache: Tensor, update: Tensor, starts: Value, axis: int, circular: bool) -> Tensor:
    """For each place of the cache the step that it holds, and whether that is one of the new ones."""
    formula, (batch, steps, length) = Formula(ctx), (cache.shape[0], update.shape[axis], cache.shape[axis])
    column = starts.reshape(batch, 1) if isinstance(starts, np.ndarray) else ctx.reshape(starts, (batch, 1))
    step = formula.sub(np.arange(length, dtype=np.int32).reshape(1, length), column)
    if circular:
        step = formula.modulo(step, np.array(length, np.int32))
    bounds = np.array(0, np.int32), np.array(steps - 1, np.int32)
    held = formula.clip(step, *bounds)
    fresh = ctx.emit(ops.Equal(), [step, held], aside=True)
    moved = ctx.transpose(update, (0, axis, *(i for i in range(1, len(cache.shape)) if i != axis)))
    rows = ctx.reshape(moved, (batch * steps, *moved.shape[2:]))
    base = (np.arange(batch, dtype=np.int32) * steps).reshape(batch, 1)
    picked = formula.picked(rows, formula.add(held, base) if batch > 1 else held)
    order = [0, *range(2, axis + 1), 1, *range(axis + 1, len(cache.shape))]
    back = ctx.transpose(picked, order)
    shape = [batch if i == 0 else length if i == axis else 1 for i in range(len(cache.shape))]
    return formula.choose(ctx.reshape(fresh, shape), back, cache)
