"""GridSample and the grids it takes.

Source: ONNX operator reference, GridSample-22, AffineGrid-20.
"""

from __future__ import annotations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.sampling import Sampler
from vitrify.importers.onnx.parts.places import Formula, computable
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.rules import limit
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import DType, Tensor

_MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest", "bicubic": "cubic", "cubic": "cubic"}
_PADDINGS = ("zeros", "border", "reflection")
MAX_POINTS = 2**23
"""Of a grid made at import: each is several numbers on the way."""


@lowering("GridSample")
def grid_sample(ctx: Context, node: SourceNode) -> None:
    """A picture or a volume read at a grid of points between -1 and 1."""
    x, grid = ctx.tensor(node, 0), ctx.tensor(node, 1)
    axes = len(x.shape) - 2
    if axes not in (1, 2, 3) or len(grid.shape) != axes + 2 or grid.shape[0] != x.shape[0] or grid.shape[-1] != axes:
        raise node.problem(f"a grid {grid.type} does not fit {x.type}")
    mode, padding = node.string("mode", "linear"), node.string("padding_mode", "zeros")
    if mode not in _MODES or padding not in _PADDINGS or (_MODES[mode] == "cubic" and axes == 3):
        raise node.problem(f"mode '{mode}' with padding_mode '{padding}' in {axes} dimensions")
    picture = computable(ctx, ctx.channel_last(x), (DType.FLOAT32,), DType.FLOAT32)
    extents, aligned = np.array(picture.shape[1:-1], np.float32), bool(node.integer("align_corners"))
    sampler = Sampler(ctx, node, picture, _MODES[mode], padding, *_borders(extents[::-1], aligned), last_first=True)
    points = _pixels(ctx, grid, extents, aligned)
    y = ctx.reshape(sampler.read(points), (*grid.shape[:-1], x.shape[1]))
    ctx.bind(node, Formula(ctx).cast(ctx.channel_first(y), x.dtype))


def _borders(extents: Array, aligned: bool) -> tuple[list[float], list[float]]:
    low = np.zeros_like(extents) if aligned else np.full_like(extents, -0.5)
    return low.tolist(), (extents - 1 - low).tolist()


def _pixels(ctx: Context, grid: Tensor, extents: Array, aligned: bool) -> Tensor:
    """The grid's numbers between -1 and 1 as pixels, in the grid's order, which names the last axis first."""
    formula, axes = Formula(ctx), len(extents)
    flat = ctx.reshape(grid, (grid.shape[0], grid.size // max(grid.shape[0] * axes, 1), axes))
    scale = (extents - 1) / 2 if aligned else extents / 2
    return formula.add(formula.mul(flat, scale[::-1].copy()), ((extents - 1) / 2)[::-1].copy())


@lowering("AffineGrid")
def affine_grid(ctx: Context, node: SourceNode) -> None:
    """The points of a picture or volume under one affine map per batch: one product with the constant points."""
    theta = ctx.tensor(node, 0)
    size = [int(d) for d in ctx.known(node, 1, "the size").ravel()]
    axes = len(size) - 2
    if axes not in (2, 3) or theta.shape != (size[0], axes, axes + 1):
        raise node.problem(f"maps {theta.type} do not fit the size {size}")
    if int(np.prod(limit(node, size[2:]), dtype=np.int64)) > MAX_POINTS:
        raise node.unsupported(f"a grid of {size[2:]}; at most {MAX_POINTS:,} points are made")
    aligned = bool(node.integer("align_corners"))
    lines = [_line(extent, aligned) for extent in size[2:]]
    places = [*reversed(np.meshgrid(*lines, indexing="ij")), np.ones(size[2:])]
    points = np.stack([p.ravel() for p in places], -1).astype(np.float32)[None]
    y = ctx.emit(ops.BatchMatMul(adj_y=True), [points, theta])
    ctx.bind(node, ctx.reshape(y, (size[0], *size[2:], axes)))


def _line(extent: int, aligned: bool) -> Array:
    if aligned:
        return np.linspace(-1, 1, extent) if extent > 1 else np.array([-1.0])
    return (np.arange(extent) * 2 + 1) / extent - 1
