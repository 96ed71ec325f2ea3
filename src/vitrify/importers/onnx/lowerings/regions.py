"""Regions of a picture at a fixed size.

A mean over samples is linear in the picture and splits by axis, so each region is two matrix products with weights
made of its corners; the largest sample is gathered.
Source: ONNX operator reference, RoiAlign-22.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.places import Formula, bounded, indices_within
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import SourceNode
from vitrify.ir import DType, Tensor

MAX_SAMPLES = 4096
"""Along one side of a region."""


@dataclass
class Samples:
    """Where one axis is sampled: places [R, bins * ratio] within the picture, and 0 for those far outside, else 1."""

    places: Tensor
    inside: Tensor
    bins: int
    ratio: int
    extent: int


@lowering("RoiAlign")
def roi_align(ctx: Context, node: SourceNode) -> None:
    """Each region's bins as the mean, or the largest, of samples between the pixels."""
    x, rois = float_input(ctx, node, 0, (4,)), float_input(ctx, node, 1, (2,))
    ratio, mode = node.integer("sampling_ratio"), node.string("mode", "avg")
    if rois.shape[1] != 4 or ctx.value(node, 2).shape != rois.shape[:1] or mode not in ("avg", "max"):
        raise node.problem(f"regions {rois.type} in mode '{mode}'; four numbers and one batch index each are needed")
    if ratio < 1:
        raise node.unsupported(
            "sampling_ratio=0 takes as many samples as each region is large, which is known at run time only",
            "set a fixed sampling_ratio, 2 say, before the export",
        )
    default = "half_pixel" if node.opset >= 16 else "output_half_pixel"
    half = node.string("coordinate_transformation_mode", default) == "half_pixel"
    bins = node.integer("output_height", 1), node.integer("output_width", 1)
    if min(bins) < 1 or max(bins) * ratio > MAX_SAMPLES:
        text = f"{bins[0]} x {bins[1]} bins of {ratio} samples; at most {MAX_SAMPLES} on a side are read"
        raise node.unsupported(text)
    rows, columns = (_samples(ctx, node, rois, x, axis, bins[axis], ratio, half) for axis in (0, 1))
    lower = _means if mode == "avg" else _maxima
    ctx.bind(node, ctx.channel_first(lower(ctx, node, ctx.channel_last(x), rows, columns)))


def _samples(
    ctx: Context, node: SourceNode, rois: Tensor, x: Tensor, axis: int, bins: int, ratio: int, half: bool
) -> Samples:
    formula, extent = Formula(ctx), x.shape[2 + axis]
    scale, shift = np.array(node.number("spatial_scale", 1.0), np.float32), np.array(0.5 if half else 0, np.float32)
    corners = []
    for index in (1 - axis, 3 - axis):  # x1, y1, x2, y2
        corner = formula.part(rois, 1, index, index + 1)
        corner = corner if scale == 1 else formula.mul(corner, scale)
        corners.append(formula.sub(corner, shift) if half else corner)
    size = formula.sub(corners[1], corners[0])
    if not half:
        size = formula.largest(size, np.array(1, np.float32))
    steps = ((np.arange(bins * ratio) + 0.5) / (bins * ratio)).astype(np.float32).reshape(1, -1)
    places = formula.add(formula.mul(size, steps), corners[0])
    held = formula.clip(places, np.array(-1, np.float32), np.array(extent, np.float32))
    inside = formula.cast(ctx.emit(ops.Equal(), [places, held], aside=True), DType.FLOAT32)
    within = formula.clip(held, np.array(0, np.float32), np.array(extent - 1, np.float32))
    return Samples(within, inside, bins, ratio, extent)


def _means(ctx: Context, node: SourceNode, x: Tensor, rows: Samples, columns: Samples) -> Tensor:
    count, (batch, height, width, channels) = rows.places.shape[0], x.shape
    bounded(node, (count, rows.bins, width, channels), f"{count} regions")
    bounded(node, (count, rows.bins * rows.ratio, height), f"{count} regions")
    left, right = _weights(ctx, rows), _weights(ctx, columns)
    lines = ctx.reshape(x, (batch, height, width * channels))
    if batch > 1:
        bounded(node, (count, height, width, channels), f"{count} regions of {batch} pictures")
        lines = Formula(ctx).picked(lines, indices_within(ctx, node, 2, batch))
    else:
        left = ctx.reshape(left, (1, count * rows.bins, height))
    tall = ctx.emit(ops.BatchMatMul(), [left, lines], aside=True)
    tall = ctx.reshape(tall, (count, rows.bins, width, channels))
    right = ctx.reshape(right, (count, 1, columns.bins, width))
    return ctx.emit(ops.BatchMatMul(), [right, tall])


def _weights(ctx: Context, samples: Samples) -> Tensor:
    """How much each pixel of the axis counts for each bin: [R, bins, extent]."""
    formula, (count, taken) = Formula(ctx), samples.places.shape
    column = ctx.reshape(samples.places, (count, taken, 1))
    pixels = np.arange(samples.extent, dtype=np.float32).reshape(1, 1, -1)
    near = formula.sub(np.array(1, np.float32), formula.absolute(formula.sub(column, pixels)))
    near = ctx.emit(ops.Relu(), [near], aside=True)
    near = formula.mul(near, ctx.reshape(samples.inside, (count, taken, 1)))
    if samples.ratio == 1:
        return near
    parts = ctx.reshape(near, (count, samples.bins, samples.ratio, samples.extent))
    return ctx.emit(ops.Mean(keep_dims=False), [parts, np.array([2], np.int32)], aside=True)


def _maxima(ctx: Context, node: SourceNode, x: Tensor, rows: Samples, columns: Samples) -> Tensor:
    formula, count, (batch, height, width, channels) = Formula(ctx), rows.places.shape[0], x.shape
    (down, tall), (across, wide) = (_taps(ctx, s) for s in (rows, columns))
    high, long = down.shape[1], across.shape[1]
    bounded(node, (count, high, long, channels), f"{count} regions")
    places = formula.mul(ctx.reshape(down, (count, high, 1)), np.array(width, np.int32))
    places = formula.add(places, ctx.reshape(across, (count, 1, long)))
    if batch > 1:
        first = indices_within(ctx, node, 2, batch)
        column = first.reshape(count, 1, 1) if isinstance(first, np.ndarray) else ctx.reshape(first, (count, 1, 1))
        places = formula.add(places, formula.mul(column, np.array(height * width, np.int32)))
    picked = formula.picked(ctx.reshape(x, (batch * height * width, channels)), places)
    weight = formula.mul(ctx.reshape(tall, (count, high, 1)), ctx.reshape(wide, (count, 1, long)))
    weighed = formula.mul(picked, ctx.reshape(weight, (count, high, long, 1)))
    lines = ctx.reshape(weighed, (count * rows.bins, rows.ratio * 2, long, channels))
    lines = ctx.emit(ops.ReduceMax(keep_dims=False), [lines, np.array([1], np.int32)], aside=True)
    cells = ctx.reshape(lines, (count * rows.bins * columns.bins, columns.ratio * 2, channels))
    best = ctx.emit(ops.ReduceMax(keep_dims=False), [cells, np.array([1], np.int32)])
    return ctx.reshape(best, (count, rows.bins, columns.bins, channels))


def _taps(ctx: Context, samples: Samples) -> tuple[Tensor, Tensor]:
    """Both pixels beside each sample, and their weights: [R, samples * 2]."""
    formula, (count, taken) = Formula(ctx), samples.places.shape
    low = formula.floor(samples.places)
    share = ctx.reshape(formula.sub(samples.places, low), (count, taken, 1))
    pair = formula.add(ctx.reshape(low, (count, taken, 1)), np.array([0, 1], np.float32))
    pair = formula.cast(formula.smallest(pair, np.array(samples.extent - 1, np.float32)), DType.INT32)
    weights = formula.add(formula.mul(share, np.array([-1, 1], np.float32)), np.array([1, 0], np.float32))
    weights = formula.mul(weights, ctx.reshape(samples.inside, (count, taken, 1)))
    return ctx.reshape(pair, (count, taken * 2)), ctx.reshape(weights, (count, taken * 2))
