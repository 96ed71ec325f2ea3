"""Determinants of small matrices."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np

import vitrify.ops as ops
from vitrify.importers.onnx.context import Context
from vitrify.importers.onnx.lowerings.window import float_input
from vitrify.importers.onnx.parts.formulas import step
from vitrify.importers.onnx.registry import lowering
from vitrify.importers.onnx.source import Array, SourceNode
from vitrify.ir import Tensor

LARGEST = 6
"""Rows: 6 make 720 products. Elimination would need the largest pivot, whose place depends on the values."""


@lowering("Det")
def det(ctx: Context, node: SourceNode) -> None:
    """The sum over all permutations of the products of one element per row, with the permutation's sign."""
    x = float_input(ctx, node, 0)
    if len(x.shape) < 2 or x.shape[-1] != x.shape[-2]:
        raise node.problem(f"its input is {x.type}; it takes square matrices")
    size = x.shape[-1]
    if size > LARGEST:
        raise node.unsupported(
            f"matrices of {size} rows; up to {LARGEST} are converted", "compute the determinant after the model"
        )
    batch = x.shape[:-2]
    flat = ctx.reshape(x, (x.size // size**2, size * size))
    orders = np.array(list(permutations(range(size))), np.int32)
    product: Tensor | None = None
    for row in range(size):
        factor = ctx.emit(ops.Gather(axis=1), [flat, row * size + orders[:, row]], aside=True)
        product = factor if product is None else step(ctx, ops.Mul, product, factor)
    assert product is not None
    signed = step(ctx, ops.Mul, product, _signs(orders)[None])
    total = ctx.emit(ops.Sum(keep_dims=False), [signed, np.array([1], np.int32)])
    ctx.bind(node, ctx.reshape(total, batch))


def _signs(orders: Array) -> Array:
    """1 for an even number of inversions, -1 for an odd one."""
    inversions = np.zeros(len(orders), np.int64)
    for i, j in combinations(range(orders.shape[1]), 2):
        inversions += orders[:, i] > orders[:, j]
    return np.where(inversions % 2, np.float32(-1), np.float32(1))
