"""Reading a picture at coordinates computed at run time: the taps around each point are gathered and weighed.

All points are read at once: a row of flat indices for each point, one GATHER for all taps, one product with the
weights. Space outside a picture is a border of zeros, or the indices are held within it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.parts.places import Formula, bounded
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

MODES = ("nearest", "linear", "cubic")
CUBIC = -0.75
"""Keys' coefficient that GridSample uses. Source: ONNX operator reference, GridSample-16."""


@dataclass
class Sampler:
    """Points of pictures [N, *extents, C], read at coordinates [N, P, axes] that count pixels.

    The coordinates are in the axes' order, or with ``last_first`` the other way round. ``low`` and ``high`` are the
    borders that ``reflection`` folds them at, in their own order.
    """

    ctx: Context
    node: SourceNode
    picture: Tensor
    mode: str
    padding: str = "zeros"
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    last_first: bool = False

    def __post_init__(self) -> None:
        self.formula = Formula(self.ctx)
        self.axes = len(self.picture.shape) - 2
        self.extents = self.picture.shape[1:-1]

    def read(self, points: Tensor) -> Tensor:
        """The values at the points: [N, P, C]."""
        batch, count, _ = points.shape
        taps, channels = {"nearest": 1, "linear": 2, "cubic": 4}[self.mode], self.picture.shape[-1]
        every = taps**self.axes
        bounded(self.node, (batch, count, every, channels), f"{count} points of {every} taps")
        points = self._folded(points)
        if self.mode == "nearest":
            base, share = self.ctx.emit(ops.Round(), [points], aside=True), None
        else:
            base = self.formula.floor(points)
            share = self.formula.sub(points, base)
        rows = self._rows(base, taps)
        picked = self.formula.picked(self._flat(), rows)
        if share is None:
            return self.ctx.reshape(picked, (batch, count, channels))
        weights = self._weights(share, taps)
        left = self.ctx.reshape(weights, (batch * count, 1, every))
        right = self.ctx.reshape(picked, (batch * count, every, channels))
        product = self.ctx.emit(ops.BatchMatMul(), [left, right], aside=True)
        return self.ctx.reshape(product, (batch, count, channels))

    def _folded(self, points: Tensor) -> Tensor:
        """Coordinates beyond the borders brought back by reflection, as often as it takes."""
        if self.padding != "reflection":
            return points
        return self._reflected(points, (1, 1, self.axes))

    def _reflected(self, x: Tensor, shape: Sequence[int]) -> Tensor:
        low = np.array(self.low, np.float32)
        span = np.maximum(np.array(self.high, np.float32) - low, np.float32(1e-6))
        low, span = low.reshape(shape), span.reshape(shape)
        formula = self.formula
        wave = formula.modulo(formula.absolute(formula.sub(x, low)), 2 * span)
        return formula.sub(low + span, formula.absolute(formula.sub(wave, span)))

    def _flat(self) -> Tensor:
        """The pictures as rows of channels, with a border of zeros where points may lie outside."""
        inner = self.picture
        if self.padding == "zeros":
            inner = self.formula.padded(inner, [(0, 0), *[(1, 1)] * self.axes, (0, 0)])
        return self.ctx.reshape(inner, (inner.size // inner.shape[-1], inner.shape[-1]))

    def _rows(self, base: Tensor, taps: int) -> Tensor:
        """For each point the flat index of each of its taps: [N, P, taps ** axes]."""
        formula, ctx = self.formula, self.ctx
        batch, count, axes = base.shape
        border = 1 if self.padding == "zeros" else 0
        offsets = (np.arange(taps, dtype=np.float32) - (taps // 2 - 1 if taps > 1 else 0) + border).reshape(1, 1, -1, 1)
        places = ctx.reshape(base, (batch, count, 1, axes))
        if offsets.any():
            places = formula.add(places, offsets)
        if self.padding == "reflection" and self.mode == "cubic":
            places = ctx.emit(ops.Round(), [self._reflected(places, (1, 1, 1, axes))], aside=True)
        sizes = [d + 2 * border for d in self.extents]
        strides = np.array([np.prod(sizes[i + 1 :], dtype=np.int64) for i in range(axes)], np.int32)
        last = np.array(sizes, np.float32) - 1
        if self.last_first:
            strides, last = strides[::-1].copy(), last[::-1].copy()
        places = formula.cast(formula.clip(places, np.array(0, np.float32), last), DType.INT32)
        total = formula.mul(places, strides) if axes > 1 else places
        rows = self._spread(total, taps, formula.add)
        if batch == 1:
            return rows
        first = np.arange(batch, dtype=np.int32) * np.int32(np.prod(sizes, dtype=np.int64))
        return formula.add(rows, first.reshape(batch, 1, 1))

    def _weights(self, share: Tensor, taps: int) -> Tensor:
        """For each point the weight of each of its taps: [N, P, taps ** axes]."""
        formula, ctx = self.formula, self.ctx
        batch, count, axes = share.shape
        column = ctx.reshape(share, (batch, count, 1, axes))
        if taps == 2:
            slope, start = np.array([-1, 1], np.float32), np.array([1, 0], np.float32)
            single = formula.add(formula.mul(column, slope.reshape(1, 1, 2, 1)), start.reshape(1, 1, 2, 1))
        else:
            a = CUBIC
            powers = np.array([[0, a, -2 * a, a], [1, 0, -(a + 3), a + 2], [0, -a, 2 * a + 3, -(a + 2)], [0, 0, a, -a]])
            terms = [np.asarray(powers[:, i], np.float32).reshape(1, 1, 4, 1) for i in range(4)]
            single = formula.add(formula.mul(column, terms[3]), terms[2])
            single = formula.add(formula.mul(column, single), terms[1])
            single = formula.add(formula.mul(column, single), terms[0])
        return self._spread(single, taps, formula.mul)

    def _spread(self, per_axis: Tensor, taps: int, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """[N, P, taps, axes] joined over all combinations of taps: the first axis outermost."""
        batch, count = per_axis.shape[:2]
        first, *others = self._split(per_axis)
        result = self.ctx.reshape(first, (batch, count, taps))
        for part in others:
            left = self.ctx.reshape(result, (batch, count, result.shape[2], 1))
            joined = join(left, self.ctx.reshape(part, (batch, count, 1, taps)))
            result = self.ctx.reshape(joined, (batch, count, joined.shape[2] * taps))
        return result

    def _split(self, per_axis: Tensor) -> tuple[Tensor, ...]:
        axes = per_axis.shape[3]
        if axes == 1:
            return (per_axis,)
        return self.ctx.emit_all(ops.Split(num_splits=axes), [np.array(3, np.int32), per_axis], aside=True)
